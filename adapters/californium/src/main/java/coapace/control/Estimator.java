package coapace.control;

/** SRTT and RTTVAR (RFC 6298 §2), in spans. SRTT is 0 before the first sample, and never after. */
final class Estimator {

    long srtt;
    private long rttvar;

    /** Takes in a sample. RTTVAR is 1/2^first of the first one. Later ones weigh 1/2^gain in it. */
    void learn(long rtt, int first, int gain) {
        if (srtt == 0) {
            srtt = rtt;
            rttvar = Spans.part(rtt, first);
        } else {
            rttvar = Spans.blend(rttvar, Math.abs(srtt - rtt), gain);
            srtt = Spans.blend(srtt, rtt, 3);
        }
    }

    /** Returns SRTT + max(G, k · RTTVAR) within bounds. G, the granularity of clocks, is 1 ms. */
    long estimate(int k, long shortest, long longest) {
        long rto = srtt + Math.max(k * rttvar, Spans.millis(1));
        return Math.min(Math.max(rto, shortest), longest);
    }
}
