//! The medium that carries the packets of a run.

use coapace_sim::{Medium, Time};

use crate::nodes::Host;
use crate::results::{FilmMoment, RunResult};

/// A medium that adds its counts to the results of a run.
pub(super) trait CountingMedium: Medium {
    /// Adds the counts up to `now` to the results.
    fn count(&self, _now: Time, _result: &mut RunResult) {}

    /// Returns whether events go on in the medium when no host has anything to do.
    fn never_rests(&self) -> bool {
        false
    }

    /// Returns the state of each node at `now`; empty if the medium has no nodes of its own.
    fn moments(&self, _now: Time, _hosts: &[Host]) -> Vec<FilmMoment> {
        Vec::new()
    }
}
