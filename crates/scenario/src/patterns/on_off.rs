//! Periods of messages and pauses between them.

use coapace_sim::{Span, Time};

use super::{Pace, Pattern, Timing, Turn};

pub(super) const PATTERN: Pattern = Pattern {
    name: "on-off",
    summary: "a message every interval in periods of the mean length `on`, pauses of the mean length `off` between them",
    is_common: false,
    has_pauses: true,
    pace: Pace::Clock(next),
};

/// Returns the time of the next message. After each message the period ends with a fixed probability, which gives
/// periods their mean length. An exponentially distributed pause follows. The first message comes after a pause.
fn next(timing: &Timing, turn: Turn) -> Time {
    let pause = || timing.exponential(timing.off, turn, 1);
    if turn.number == 0 {
        return turn.last + pause();
    }
    let draw = timing.stream.unit(u64::from(turn.client), u64::from(turn.number), 0);
    // With probability interval/on, a period has on/interval messages on average.
    // `on` may be 0 s, and then every period ends after one message.
    let is_over = draw * (timing.on.as_nanos().max(1) as f64) < timing.interval.as_nanos() as f64;
    turn.last + timing.interval + if is_over { pause() } else { Span::ZERO }
}
