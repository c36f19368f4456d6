package coapace.control;

/** draft-ietf-core-cocoa-03 §4. The estimator of {@link Controller} is the strong one. */
final class CocoaController extends Controller {

    private static final long LONGEST_RTO = Spans.seconds(60);

    private final Estimator weak = new Estimator();
    /** 0 before the first sample. */
    private long rto;
    /** The moment of the last change of the RTO, in milliseconds. */
    private long renewedMillis;

    @Override
    long arm(Exchange exchange, long nowMicros, long draw, int outstanding) {
        if (exchange.retransmits > 0) {
            // A first timeout of more than 32 s stays.
            long backedOff = Math.min(Spans.part(exchange.timeout * exchange.factor, 1), Spans.seconds(32));
            exchange.timeout = Math.max(exchange.timeout, backedOff);
            return exchange.timeout;
        }
        // Before the first sample, the k-th exchange under way waits k times the RTO (§4.4).
        long times = rto == 0 ? Math.max(outstanding, 1) : 1;
        if (rto != 0) {
            age(nowMicros);
        }
        long start = rto();
        exchange.factor = start < Spans.seconds(1) ? 6 : start > Spans.seconds(3) ? 3 : 4;
        long timeout = start * times;
        exchange.timeout = Math.min(timeout + Spans.drawn(Spans.part(timeout, 1), draw), LONGEST_RTO);
        return exchange.timeout;
    }

    /** Ages an RTO that was not renewed (§4.3). Below 1 s it doubles after 16 RTO. Above 3 s it halves after 4 RTO. */
    private void age(long nowMicros) {
        long idleMicros = 1000 * (nowMicros / 1000 - renewedMillis);
        while (rto < Spans.seconds(1) || rto > Spans.seconds(3)) {
            long patienceMicros = Spans.toMicros(rto) * (rto < Spans.seconds(1) ? 16 : 4);
            if (idleMicros <= patienceMicros) {
                return;
            }
            idleMicros -= patienceMicros;
            rto = rto < Spans.seconds(1) ? 2 * rto : Spans.seconds(1) + Spans.part(rto, 1);
            renewedMillis = Math.max(nowMicros - idleMicros, 0) / 1000;
        }
    }

    @Override
    void end(Exchange exchange, Sample sample, long nowMicros) {
        if (sample == null || sample.retransmits > 2) {
            return;
        }
        boolean isStrong = sample.retransmits == 0;
        Estimator estimator = isStrong ? this.estimator : weak;
        // In quarters of the RTO. K, 4 or 1, is its square.
        int weight = isStrong ? 2 : 1;
        long before = rto();
        estimator.learn(Spans.ofRtt(sample.sinceFirst), 1, 2);
        long estimate = estimator.estimate(weight * weight, 0, Spans.LONGEST);
        rto = Spans.part(before * (4 - weight) + estimate * weight, 2);
        rto = Math.min(Math.max(rto, Spans.millis(50)), LONGEST_RTO);
        renewedMillis = nowMicros / 1000;
    }

    @Override
    long rto() {
        return rto != 0 ? rto : Spans.seconds(2);
    }
}
