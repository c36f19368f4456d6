//! The medium that carries the packets of a run.

use coapace_sim::{Medium, Time};

use crate::nodes::Host;
use crate::results::{FilmMoment, RunResult};

/// A medium that adds what it has counted to the results of its run.
pub(super) trait CountingMedium: Medium {
    /// Adds what it has counted up to `now` to the results of its run.
    fn count(&self, _now: Time, _result: &mut RunResult) {}

    /// Returns whether things go on happening in it when no host has anything to do.
    fn never_rests(&self) -> bool {
        false
    }

    /// Returns what its nodes are and have done up to `now`, if it has nodes.
    fn moments(&self, _now: Time, _hosts: &[Host]) -> Vec<FilmMoment> {
        Vec::new()
    }
}
