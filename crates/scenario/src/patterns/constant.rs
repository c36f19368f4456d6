//! Messages at equal intervals.

use coapace_sim::Time;

use super::{Pace, Pattern, Timing, Turn};

pub(super) const PATTERN: Pattern = Pattern {
    name: "constant",
    summary: "a message every interval; each client begins at a random moment of the first",
    is_common: false,
    has_pauses: false,
    pace: Pace::Clock(next),
};

fn next(timing: &Timing, turn: Turn) -> Time {
    match turn.number {
        // A phase of its own for each client: without it all would send at the same moments.
        0 => timing.within(turn.last, timing.interval, turn, 0),
        _ => turn.last + timing.interval,
    }
}
