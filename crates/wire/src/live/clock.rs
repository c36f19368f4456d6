//! The clock of a live run.

use std::time::{Duration, Instant};

use coapace_sim::Time;

/// A clock that shows the time since the start of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock(Instant);

impl Clock {
    /// Starts a run.
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns the present moment of the run.
    pub(super) fn now(&self) -> Time {
        Time::from_nanos(self.0.elapsed().as_nanos() as u64)
    }

    /// Returns the time from now to a moment, zero if it has passed.
    pub(super) fn until(&self, moment: Time) -> Duration {
        Duration::from_nanos((moment - self.now()).as_nanos())
    }
}
