//! Bounds that a server has run into, logged once a second at most.

use std::time::Duration;

use crate::{ServerHandle, Stats};

/// The time between two looks at the counters.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);

/// Looks at a server's counters from time to time. An event that happens often is one line for each look, with its count,
/// and costs nothing where it happens.
#[derive(Debug)]
pub(crate) struct Limits {
    server: ServerHandle,
    before: Stats,
}

impl Limits {
    pub(crate) fn new(server: ServerHandle) -> Self {
        let before = server.stats();
        Self { server, before }
    }

    /// Logs what has happened since the last look.
    pub(crate) fn look(&mut self) {
        let now = self.server.stats();
        let before = std::mem::replace(&mut self.before, now);
        for ((counter, now), (_, before)) in now.counters().zip(before.counters()) {
            let count = now.saturating_sub(before);
            if let Some(what) = counter.warning.filter(|_| count > 0) {
                tracing::warn!(target: "coapace_net::limit", what, count, "limit reached");
            }
        }
    }
}
