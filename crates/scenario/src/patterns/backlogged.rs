//! A client that always has something to send.

use super::{Pace, Pattern};

pub(super) const PATTERN: Pattern = Pattern {
    name: "backlogged",
    summary: "the next message as soon as the exchange before is over",
    is_common: false,
    has_pauses: false,
    pace: Pace::Backlogged,
};
