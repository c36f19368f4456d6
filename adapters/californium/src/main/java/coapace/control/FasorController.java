package coapace.control;

/**
 * draft-ietf-core-fasor-02. An exchange has one of three series of timeouts. With f, the fast RTO with its dither, and s, the slow
 * RTO, they are: f, 2f, 4f…; f, max(s, 2f), 2f, 4f…; s, f, 2f, 4f…
 */
final class FasorController extends Controller {

    private static final int FAST = 0;
    private static final int FAST_SLOW_FAST = 1;
    private static final int SLOW_FAST = 2;
    private static final long LONGEST_TIMEOUT = Spans.seconds(60);

    private long slow;
    private int series = FAST;
    /** Counts ambiguous answers. */
    private int ambiguous;

    @Override
    long rto() {
        return estimator.srtt == 0 ? Spans.seconds(2) : estimator.estimate(4, Spans.millis(50), Spans.seconds(60));
    }

    @Override
    long arm(Exchange exchange, long nowMicros, long draw, int outstanding) {
        int doublings = exchange.retransmits;
        if (doublings == 0) {
            long srtt = estimator.srtt != 0 ? estimator.srtt : (Spans.seconds(2) + 1) / 3;
            long quarter = Spans.part(srtt, 2);
            exchange.fast = Math.min(rto() + quarter + Spans.drawn(srtt - quarter, draw), Spans.LONGEST);
            exchange.timeout = 0;
            exchange.slow = slow;
            exchange.series = series;
            exchange.round = ambiguous;
        }
        long timeout = exchange.fast;
        if (exchange.series == SLOW_FAST && doublings == 0) {
            timeout = exchange.slow;
        } else if (exchange.series == FAST_SLOW_FAST && doublings == 1) {
            timeout = Math.max(exchange.slow, 2 * timeout);
        }
        if (exchange.series != FAST && doublings > 0) {
            doublings--;
        }
        for (; doublings > 0 && timeout < LONGEST_TIMEOUT; doublings--) {
            timeout *= 2;
        }
        timeout = Math.min(timeout, LONGEST_TIMEOUT);
        exchange.timeout = Math.min(exchange.timeout + timeout, Spans.LONGEST);
        return timeout;
    }

    @Override
    void end(Exchange exchange, Sample sample, long nowMicros) {
        long rtt = Sample.clearRtt(sample);
        if (rtt != 0) {
            estimator.learn(rtt, 3, 2);
        }
        if (sample != null && sample.retransmits == 0) {
            // An exchange that began before the last ambiguous answer does not return to the fast RTO.
            if (exchange.round == ambiguous) {
                series = FAST;
            }
            return;
        }
        long elapsed = sample == null ? exchange.timeout : Spans.ofRtt(sample.sinceFirst);
        slow = Math.min(Spans.part(3 * elapsed, 1), Spans.LONGEST);
        ambiguous++;
        series = series == FAST ? FAST_SLOW_FAST : SLOW_FAST;
    }
}
