//! Something happens that every client tells once.

use super::{Pace, Pattern, Timing, Turn};
use coapace_sim::Time;

pub(super) const PATTERN: Pattern = Pattern {
    name: "event",
    summary: "one message of every client at the start, within the spread",
    has_interval: false,
    pace: Pace::Clock(next),
};

fn next(timing: &Timing, turn: Turn) -> Option<Time> {
    (turn.number == 0).then(|| timing.within(timing.start, timing.spread_ns, turn, 0))
}
