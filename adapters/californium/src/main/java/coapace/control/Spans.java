package coapace.control;

/** Spans: times in units of 1/4096 µs, at most {@link #LONGEST}. Averages in whole microseconds would stall. */
final class Spans {

    /** 268 s. */
    static final long LONGEST = (1L << 40) - 1;

    private Spans() {
    }

    static long millis(long millis) {
        return 4_096_000 * millis;
    }

    static long seconds(long seconds) {
        return millis(1000 * seconds);
    }

    static long ofMicros(long micros) {
        return micros >> 28 == 0 ? micros << 12 : LONGEST;
    }

    /** A measured time is 1 µs at least: 0 means that there is none. */
    static long ofRtt(long micros) {
        return ofMicros(Math.max(micros, 1));
    }

    static long toMicros(long span) {
        return span + 2048 >> 12;
    }

    /** Returns value / 2^shift, to the nearest integer, halves up. */
    static long part(long value, int shift) {
        return value + (1L << shift >> 1) >> shift;
    }

    /** Returns a step of a moving average, with a weight of 1/2^shift for the new value. */
    static long blend(long before, long now, int shift) {
        return part((before << shift) - before + now, shift);
    }

    /** Returns U(0, value), to the nearest integer. The draw is one of 32 bits. */
    static long drawn(long value, long draw) {
        // The product of two numbers of 32 bits takes 64, so it is shifted as an unsigned one.
        return (value >> 32) * draw + ((value & 0xffffffffL) * draw + (1L << 31) >>> 32);
    }
}
