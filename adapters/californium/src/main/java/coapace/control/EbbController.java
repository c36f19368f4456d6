package coapace.control;

/** Coapace's own mechanism: docs/ebb.md. */
final class EbbController extends Controller {

    private static final long LONGEST_FIRST = Spans.seconds(247);

    /** The least round-trip time; 0 before the first sample. */
    private long least;
    /** A backed-off timeout that outlives its exchange, or 0. */
    private long held;

    /** Returns whether there is no standing queue, by SRTT and by how late an answer came. Not before a sample. */
    private boolean isCalm(long late) {
        long longer = Math.max(estimator.srtt, late);
        return least != 0 && (longer * 20 <= least * 23 + 10 || longer <= least + Spans.millis(60));
    }

    @Override
    long rto() {
        // Also the least RTO with a queue.
        long rto = Spans.seconds(2);
        if (least != 0) {
            rto = estimator.estimate(3, isCalm(0) ? Spans.millis(50) : rto, LONGEST_FIRST);
        }
        return Math.max(rto, held);
    }

    @Override
    long arm(Exchange exchange, long nowMicros, long draw, int outstanding) {
        if (exchange.retransmits == 0) {
            long rto = rto();
            exchange.timeout = Math.min(rto + Spans.drawn(Spans.part(rto, 2), draw), LONGEST_FIRST);
        } else {
            // Twice the factor of the backoff: 3/2, or while nothing is measured 3 and then 2.
            int factor = least != 0 ? 3 : exchange.retransmits == 1 ? 6 : 4;
            long backedOff = Math.min(Spans.part(exchange.timeout * factor, 1), Spans.seconds(60));
            exchange.timeout = Math.max(exchange.timeout, backedOff);
        }
        return exchange.timeout;
    }

    @Override
    void end(Exchange exchange, Sample sample, long nowMicros) {
        boolean holds = true;
        if (sample != null) {
            long rtt = Sample.clearRtt(sample);
            long late = 0;
            boolean isSpurious = sample.answered >= 0 && sample.answered < sample.retransmits;
            if (rtt == 0 && sample.retransmits == 1 && 2 * Spans.ofMicros(sample.sinceLast) < least) {
                // The copy cannot have been answered in half of the shortest time before. The first one was.
                rtt = Spans.ofRtt(sample.sinceFirst);
                isSpurious = true;
            }
            if (rtt != 0) {
                estimator.learn(rtt, 1, 1);
                // It rises by 1/64 of its distance to SRTT, so that a longer route is learnt.
                least = Math.min(least != 0 ? Spans.blend(least, estimator.srtt, 6) : rtt, rtt);
            } else {
                late = Spans.ofMicros(sample.sinceLast);
            }
            holds = sample.retransmits > 0 && !isSpurious && !isCalm(late);
        }
        held = holds ? exchange.timeout : 0;
    }
}
