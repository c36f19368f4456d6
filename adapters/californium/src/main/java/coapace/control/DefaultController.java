package coapace.control;

/** RFC 7252 §4.2: nothing is measured. Every timeout is computed from the draw, so that errors of rounding do not add up. */
final class DefaultController extends Controller {

    @Override
    long arm(Exchange exchange, long nowMicros, long draw, int outstanding) {
        if (exchange.retransmits == 0) {
            exchange.timeout = draw;
        }
        long leastMicros = 2_000_000L << Math.min(exchange.retransmits, 5);
        long micros = leastMicros + Spans.drawn(leastMicros / 2, exchange.timeout);
        return Spans.ofMicros(Math.min(micros, 60_000_000));
    }

    @Override
    void end(Exchange exchange, Sample sample, long nowMicros) {
        // Nothing is learnt.
    }

    @Override
    long rto() {
        return Spans.seconds(2);
    }
}
