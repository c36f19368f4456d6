//! The clients of one mechanism among others.

use serde::Serialize;

/// The clients of one mechanism in one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Population {
    /// The mechanism, as it was asked for.
    pub mechanism: String,
    /// How many clients have it.
    pub clients: u32,
    /// Exchanges that they completed.
    pub exchanges: u64,
    /// Exchanges completed per second: each client's over its own time, until its last response if it has one, summed.
    pub throughput: f64,
    /// Requests that they sent, retransmissions included.
    pub requests_sent: u64,
    /// Requests that they sent again.
    pub retransmissions: u64,
    /// How long the completed exchanges took in all, from the first request to the response, in microseconds.
    pub exchange_time_us: u64,
    /// Jain's index over the rates of these clients alone.
    pub jain: Option<f64>,
}

impl Population {
    /// Nobody yet.
    pub(crate) fn new(mechanism: &str) -> Self {
        Self { mechanism: mechanism.to_owned(), ..Self::default() }
    }

    /// Takes away what was counted until an earlier moment of the same run.
    pub(super) fn leave_out(&mut self, earlier: &Self) {
        self.exchanges -= earlier.exchanges;
        self.requests_sent -= earlier.requests_sent;
        self.retransmissions -= earlier.retransmissions;
        self.exchange_time_us -= earlier.exchange_time_us;
    }
}
