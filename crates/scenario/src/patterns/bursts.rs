//! Bursts: after each interval, every client offers one message.

use coapace_sim::Time;

use super::{Pace, Pattern, Timing, Turn};

pub(super) const PATTERN: Pattern = Pattern {
    name: "bursts",
    summary: "one message of every client every interval, within the spread, the first at the start",
    is_common: true,
    has_pauses: false,
    pace: Pace::Clock(next),
};

fn next(timing: &Timing, turn: Turn) -> Time {
    // Counted from the start, so that the spread of a burst does not shift the later ones.
    let burst = timing.start + timing.interval * u64::from(turn.number);
    timing.within(burst, timing.spread, turn, 0)
}
