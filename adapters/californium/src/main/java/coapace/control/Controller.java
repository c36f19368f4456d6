package coapace.control;

/**
 * The state of a {@link Mechanism} for one destination. It uses integers alone, and neither a clock nor random numbers of its own.
 *
 * <p>Times are in microseconds. A moment counts from an origin that the caller chooses once, and is not negative. A draw is a random
 * number of 32 bits, taken as unsigned: uniform in units of 2<sup>-32</sup>, another one for every call. Exchanges with one
 * destination may overlap. The caller takes care that calls for one destination do not.
 *
 * <p>An exchange that was reset or cancelled ends without a call.
 */
public abstract class Controller {

    /** The estimator of round-trip times. */
    final Estimator estimator = new Estimator();

    /** Only the mechanisms of this package extend it. */
    Controller() {
    }

    /** One confirmable message with its retransmissions. The timeouts of an exchange come from its controller. */
    public static final class Exchange {
        int retransmits;
        /** The last timeout, in spans. With FASOR the sum of all, with {@code default} the draw. */
        long timeout;
        /** CoCoA: the factor of the backoff, in halves. */
        int factor;
        /** FASOR: the series, the number of ambiguous answers at the start, and the two RTOs. */
        int series;
        int round;
        long fast;
        long slow;
    }

    /**
     * Starts an exchange, as its first transmission departs.
     *
     * @param exchange a new exchange, or one that is over
     * @param nowMicros the present moment
     * @param draw a random number
     * @param outstanding the exchanges with this destination that have departed and are not over, this one included; 1 at least
     * @return the time to wait for an answer, in microseconds: 1 ms to 268 s
     */
    public final long onStart(Exchange exchange, long nowMicros, int draw, int outstanding) {
        exchange.retransmits = 0;
        return Spans.toMicros(arm(exchange, nowMicros, draw & 0xffffffffL, outstanding));
    }

    /**
     * Backs off, as the timeout has passed and a retransmission departs.
     *
     * @param exchange an exchange that was started and is not over
     * @param nowMicros the present moment
     * @param draw a random number
     * @param outstanding the exchanges with this destination that have departed and are not over, this one included; 1 at least
     * @return the time to wait for an answer, in microseconds: 1 ms to 268 s
     */
    public final long onRetransmit(Exchange exchange, long nowMicros, int draw, int outstanding) {
        exchange.retransmits = Math.min(exchange.retransmits + 1, 255);
        return Spans.toMicros(arm(exchange, nowMicros, draw & 0xffffffffL, outstanding));
    }

    /**
     * Learns from an answer. The exchange is over.
     *
     * @param exchange an exchange that was started
     * @param sample the facts of the answer
     * @param nowMicros the present moment
     */
    public final void onAnswer(Exchange exchange, Sample sample, long nowMicros) {
        end(exchange, sample, nowMicros);
    }

    /**
     * Learns that an exchange was given up: the timeout after the last retransmission has passed. The exchange is over.
     *
     * @param exchange an exchange that was started
     * @param nowMicros the present moment
     */
    public final void onGiveUp(Exchange exchange, long nowMicros) {
        end(exchange, null, nowMicros);
    }

    /**
     * Returns the RTO: the estimate that the next exchange starts from, before its random part.
     *
     * @return microseconds
     */
    public final long rtoMicros() {
        return Spans.toMicros(rto());
    }

    /** Returns the timeout of a transmission, in spans. {@code exchange.retransmits} counts it if it is a copy. */
    abstract long arm(Exchange exchange, long nowMicros, long draw, int outstanding);

    /** Learns from the end of an exchange. The sample is null if the exchange was given up. */
    abstract void end(Exchange exchange, Sample sample, long nowMicros);

    /** Returns the RTO, in spans. */
    abstract long rto();
}
