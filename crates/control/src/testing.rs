//! Helpers for tests of mechanisms: exchanges described by their round-trip times.

use crate::{Controller, Cue, Draw, Duration, Instant, Outcome, Sample};

/// Returns a cue for the time `ms`, in milliseconds, with the smallest random number and one outstanding exchange.
pub(crate) fn at(ms: u64) -> Cue {
    Cue { now: Instant::from_millis(ms), draw: Draw::ZERO, outstanding: 1 }
}

/// Returns the outcome of an exchange that was acknowledged `ms` after its first transmission, after this many
/// retransmissions.
pub(crate) fn acked(ms: u64, retransmits: u8) -> Outcome {
    Outcome::Acked(Sample::unmarked(Duration::from_millis(ms), Duration::from_millis(ms), retransmits))
}

/// Starts an exchange at time zero and retransmits this many times. Returns the exchange, and its timeouts in
/// milliseconds, with zeros after the last one.
pub(crate) fn timeouts<C: Controller>(
    mechanism: &C,
    state: &mut C::State,
    retransmits: u8,
) -> (C::Exchange, [u64; 5]) {
    let mut armed = [0; 5];
    let ms = |timeout: Duration| (timeout.as_micros() + 500) / 1_000;
    let (mut exchange, first) = mechanism.on_start(state, at(0));
    armed[0] = ms(first);
    for armed in armed.iter_mut().skip(1).take(retransmits.into()) {
        *armed = ms(mechanism.on_retransmit(state, &mut exchange, at(0)));
    }
    (exchange, armed)
}

/// Makes an exchange that starts at time zero and is acknowledged `ms` milliseconds later, after this many
/// retransmissions. Returns the RTO after the exchange, in microseconds.
pub(crate) fn exchange<C: Controller>(mechanism: &C, state: &mut C::State, ms: u64, retransmits: u8) -> u64 {
    let (exchange, _) = timeouts(mechanism, state, retransmits);
    mechanism.on_end(state, exchange, acked(ms, retransmits), at(ms));
    mechanism.gauges(state).rto.as_micros()
}
