//! An event that every client reports once.

use coapace_sim::Time;

use super::{Pace, Pattern, Timing, Turn};

pub(super) const PATTERN: Pattern = Pattern {
    name: "event",
    summary: "one message of every client at the start, within the spread",
    is_common: true,
    has_pauses: false,
    pace: Pace::Once(at),
};

fn at(timing: &Timing, turn: Turn) -> Time {
    timing.within(timing.start, timing.spread, turn, 0)
}
