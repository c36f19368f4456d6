package coapace.control;

/** The facts of an answer. Times are in microseconds and not negative. */
public final class Sample {

    /** The time since the first transmission departed. */
    public final long sinceFirst;
    /** The time since the last transmission departed. */
    public final long sinceLast;
    /** The retransmissions made. */
    public final int retransmits;
    /** The ordinal of the transmission that was answered, 0 for the first; −1 if no marking tells. */
    public final int answered;
    /** The time since the transmission that was answered departed; only if {@link #answered} is known. */
    public final long sinceAnswered;

    /**
     * Makes a sample of an answer that does not tell which transmission it answers.
     *
     * @param sinceFirst the time since the first transmission departed, in microseconds
     * @param sinceLast the time since the last transmission departed, in microseconds
     * @param retransmits the retransmissions made
     */
    public Sample(long sinceFirst, long sinceLast, int retransmits) {
        this(sinceFirst, sinceLast, retransmits, -1, 0);
    }

    /**
     * Makes a sample of an answer that tells which transmission it answers.
     *
     * @param sinceFirst the time since the first transmission departed, in microseconds
     * @param sinceLast the time since the last transmission departed, in microseconds
     * @param retransmits the retransmissions made
     * @param answered the ordinal of the transmission that was answered, 0 to {@code retransmits}
     * @param sinceAnswered the time since that transmission departed, in microseconds
     */
    public Sample(long sinceFirst, long sinceLast, int retransmits, int answered, long sinceAnswered) {
        this.sinceFirst = sinceFirst;
        this.sinceLast = sinceLast;
        this.retransmits = retransmits;
        this.answered = answered;
        this.sinceAnswered = sinceAnswered;
    }

    /** Returns the round-trip time as a span, or 0 if it is ambiguous (Karn's algorithm) or there is no sample. */
    static long clearRtt(Sample sample) {
        if (sample == null || sample.answered < 0 && sample.retransmits > 0) {
            return 0;
        }
        return Spans.ofRtt(sample.answered >= 0 ? sample.sinceAnswered : sample.sinceFirst);
    }
}
