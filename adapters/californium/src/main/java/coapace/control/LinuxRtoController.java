package coapace.control;

/** RFC 6298, with the backed-off RTO kept until the next clear sample (§5.5 to §5.7). */
final class LinuxRtoController extends Controller {

    private static final long LONGEST_RTO = Spans.seconds(60);

    private long rto = Spans.seconds(2);

    @Override
    long arm(Exchange exchange, long nowMicros, long draw, int outstanding) {
        if (exchange.retransmits == 0) {
            exchange.timeout = rto;
        } else {
            exchange.timeout = Math.min(2 * exchange.timeout, LONGEST_RTO);
            // Exchanges that overlap lose the same packets. Their backoffs do not add up: the longest is kept.
            rto = Math.max(rto, exchange.timeout);
        }
        return exchange.timeout;
    }

    @Override
    void end(Exchange exchange, Sample sample, long nowMicros) {
        long rtt = Sample.clearRtt(sample);
        if (rtt != 0) {
            estimator.learn(rtt, 1, 2);
            rto = estimator.estimate(4, Spans.seconds(1), LONGEST_RTO);
        }
    }

    @Override
    long rto() {
        return rto;
    }
}
