//! The clients of one mechanism in a mix.

use serde::{Deserialize, Serialize};

/// The clients of one mechanism in one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Population {
    /// The text that named the mechanism.
    pub mechanism: String,
    /// The number of its clients.
    pub clients: u32,
    /// Exchanges that they completed.
    pub exchanges: u64,
    /// Exchanges completed per second: the sum of the clients' rates. A client's rate is over its own time, until its last
    /// response if it has one.
    pub throughput: f64,
    /// Requests that they sent, retransmissions included.
    pub requests_sent: u64,
    /// Requests that they sent again.
    pub retransmissions: u64,
    /// The total time of the completed exchanges, from the first request to the response, in microseconds.
    pub exchange_time_us: u64,
    /// Jain's fairness index over the rates of these clients alone.
    pub jain: Option<f64>,
}

impl Population {
    /// Makes a population without clients.
    pub(crate) fn new(mechanism: &str) -> Self {
        Self { mechanism: mechanism.to_owned(), ..Self::default() }
    }

    /// Subtracts what an earlier moment of the same run had counted.
    pub(super) fn leave_out(&mut self, earlier: &Self) {
        self.exchanges -= earlier.exchanges;
        self.requests_sent -= earlier.requests_sent;
        self.retransmissions -= earlier.retransmissions;
        self.exchange_time_us -= earlier.exchange_time_us;
    }
}
