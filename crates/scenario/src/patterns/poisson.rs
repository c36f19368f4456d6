//! Messages at random times that do not depend on each other.

use coapace_sim::Time;

use super::{Pace, Pattern, Timing, Turn};

pub(super) const PATTERN: Pattern = Pattern {
    name: "poisson",
    summary: "exponentially distributed times from message to message, an interval on average",
    is_common: false,
    has_pauses: false,
    pace: Pace::Clock(next),
};

fn next(timing: &Timing, turn: Turn) -> Time {
    turn.last + timing.exponential(timing.interval, turn, 0)
}
