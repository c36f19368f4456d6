//! The result of one run: one seed of one cell.

use coapace_scenario::Hash64;
use serde::{Deserialize, Serialize};

use super::{Delays, Film, FlowResult, MeshResult, Series, Settling, Timeouts, TransferResult, jain_index};

/// The measurements of one run.
///
/// Serialised, it lacks the film of a mesh.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The seed. With the commit and the scenario it determines the run.
    pub seed: u64,
    /// The hash of all events of the run.
    #[serde(default)]
    pub trace_hash: Hash64,
    /// Events that the simulator handled.
    pub events: u64,
    /// The simulated time that was measured in seconds, the warm-up left out.
    pub duration_s: f64,
    /// The flow completion time of each client in seconds, from its first request to its last response; `None` for a client
    /// that gave up. Empty if clients go on until the run ends.
    pub fct_s: Vec<Option<f64>>,
    /// Exchanges that each client completed.
    pub exchanges: Vec<u32>,
    /// Exchanges given up.
    pub given_up: u64,
    /// Requests sent again.
    pub retransmissions: u64,
    /// Spurious retransmissions: an earlier copy of the message had arrived. They are counted when the reply to the copy comes.
    pub unnecessary: u64,
    /// Packets that found a queue full, or that its management dropped.
    pub drops: u64,
    /// Packets that a link lost.
    pub losses: u64,
    /// Marks by queue management; `None` if no packet is ECN-capable.
    #[serde(default)]
    pub ecn: Option<EcnResult>,
    /// Payload of completed exchanges, in bits per second over all clients.
    pub goodput_bps: f64,
    /// Completed exchanges per second of the measured time, over all clients.
    pub throughput: f64,
    /// Requests sent, retransmissions included.
    pub requests_sent: u64,
    /// Responses sent, answers to duplicates included.
    pub responses_sent: u64,
    /// The clients by their mechanism; empty over TCP.
    pub populations: Vec<Population>,
    /// The flows, in the order of the scenario.
    #[serde(default)]
    pub flows: Vec<FlowResult>,
    /// The transfers, in the order of the scenario. Their clients are not among the clients of the other fields.
    #[serde(default)]
    pub transfers: Vec<TransferResult>,
    /// The times of completed exchanges after the warm-up, if other clients transfer bodies.
    #[serde(default)]
    pub exchange_times: Delays,
    /// The timeouts that the clients armed, after the warm-up; empty over TCP.
    pub timeouts: Timeouts,
    /// The settling of the network after an event, if there was one.
    #[serde(default, with = "super::settling::whole")]
    pub settling: Option<Settling>,
    /// Counts and energy of the radios, if there are any.
    #[serde(default)]
    pub mesh: Option<MeshResult>,
    /// The RTO over time in seconds, for a few clients or as the mean of all.
    pub rto: Vec<Series>,
    /// The bytes of bodies that a few clients have moved over time.
    #[serde(default)]
    pub arrived: Vec<Series>,
    /// The number of each block that a few clients have sent or asked for, when that departed for the first time.
    #[serde(default)]
    pub departed: Vec<Series>,
    /// The number of each block that departed again.
    #[serde(default)]
    pub departed_again: Vec<Series>,
    /// The blocks that a few clients may have under way over time.
    #[serde(default)]
    pub windows: Vec<Series>,
    /// The length of each queue over time in bytes, with the name of its hop.
    pub queues: Vec<Series>,
    /// The film of a mesh, if one was made.
    #[serde(skip)]
    pub film: Option<Box<Film>>,
}

impl RunResult {
    /// Returns the number of exchanges that all clients completed.
    pub fn completed(&self) -> u64 {
        self.exchanges.iter().map(|&count| u64::from(count)).sum()
    }

    /// Subtracts the counts at an earlier moment of the same run.
    pub(crate) fn leave_out(&mut self, earlier: &Self) {
        for (count, earlier) in self.exchanges.iter_mut().zip(&earlier.exchanges) {
            *count -= earlier;
        }
        self.given_up -= earlier.given_up;
        self.retransmissions -= earlier.retransmissions;
        // A reply in the measured time may show that a retransmission of the warm-up was spurious.
        self.unnecessary = (self.unnecessary - earlier.unnecessary).min(self.retransmissions);
        self.drops -= earlier.drops;
        self.losses -= earlier.losses;
        if let (Some(ecn), Some(earlier)) = (&mut self.ecn, &earlier.ecn) {
            ecn.leave_out(earlier);
        }
        self.requests_sent -= earlier.requests_sent;
        self.responses_sent -= earlier.responses_sent;
        if let (Some(mesh), Some(earlier)) = (&mut self.mesh, &earlier.mesh) {
            mesh.leave_out(earlier);
        }
        for (transfer, earlier) in self.transfers.iter_mut().zip(&earlier.transfers) {
            transfer.leave_out(earlier);
        }
        for (population, earlier) in self.populations.iter_mut().zip(&earlier.populations) {
            population.leave_out(earlier);
        }
    }

    /// Returns the delays of all flows.
    pub fn delays(&self) -> Delays {
        Delays::of(std::slice::from_ref(self))
    }

    /// Returns Jain's fairness index over the clients' rates of completed exchanges. A client's time is its FCT, or the whole
    /// run if it did not finish.
    pub fn fairness(&self) -> Option<f64> {
        jain_index(self.rates())
    }

    /// Returns the completed exchanges per second of each client.
    pub(crate) fn rates(&self) -> impl Iterator<Item = f64> {
        self.exchanges.iter().enumerate().map(|(client, &count)| {
            let time_s = self.fct_s.get(client).copied().flatten().unwrap_or(self.duration_s);
            if time_s > 0.0 { f64::from(count) / time_s } else { 0.0 }
        })
    }
}

/// Marks, and exchanges that carried them (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EcnResult {
    /// Packets marked.
    pub marks: u64,
    /// Exchanges of which a request reached its server with CE.
    pub requests: u64,
    /// Exchanges of which a response reached its client with CE.
    pub responses: u64,
}

impl EcnResult {
    /// Subtracts the counts at an earlier moment of the same run.
    fn leave_out(&mut self, earlier: &Self) {
        self.marks -= earlier.marks;
        self.requests -= earlier.requests;
        self.responses -= earlier.responses;
    }
}

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
    /// The transfers of its clients, if the mechanisms are compared by these. Then the number and Jain's index are of the clients that
    /// transfer bodies over UDP, exchanges are counted of other clients, and their throughput is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfers: Option<PopulationTransfers>,
}

/// The transfers of the clients of one mechanism in one run, over UDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PopulationTransfers {
    /// Transfers that were completed.
    pub completed: u64,
    /// Transfers that were given up, or whose body was not the one that was sent.
    pub failed: u64,
    /// The total time of the completed transfers in microseconds.
    pub time_us: u64,
    /// Requests that asked for a block or brought one, those made again included.
    pub blocks_sent: u64,
    /// Blocks that were asked for again, or sent again.
    pub blocks_again: u64,
    /// Bits of bodies that arrived a second, failed transfers left out: the sum of the clients' rates. A client's rate is over its own
    /// time, from the beginning of its first transfer to the end of its last.
    pub goodput_bps: f64,
    /// The share of the slowest hop that these bodies had from the first beginning to the last end of these transfers, headers not
    /// counted, from 0 to 1; `None` if no hop has a rate.
    pub link_share: Option<f64>,
}

impl Population {
    /// Makes a population without clients. If `transfers` is true, it is compared by transfers.
    pub(crate) fn new(mechanism: &str, transfers: bool) -> Self {
        let transfers = transfers.then(PopulationTransfers::default);
        Self { mechanism: mechanism.to_owned(), transfers, ..Self::default() }
    }

    /// Subtracts the counts at an earlier moment of the same run.
    fn leave_out(&mut self, earlier: &Self) {
        self.exchanges -= earlier.exchanges;
        self.requests_sent -= earlier.requests_sent;
        self.retransmissions -= earlier.retransmissions;
        self.exchange_time_us -= earlier.exchange_time_us;
        if let (Some(own), Some(earlier)) = (&mut self.transfers, &earlier.transfers) {
            own.completed -= earlier.completed;
            own.failed -= earlier.failed;
            own.time_us -= earlier.time_us;
            own.blocks_sent -= earlier.blocks_sent;
            own.blocks_again -= earlier.blocks_again;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_takes_twice_as_long_costs_fairness() {
        let mut run = RunResult {
            fct_s: vec![Some(10.0), Some(10.0)],
            exchanges: vec![50, 50],
            duration_s: 20.0,
            ..RunResult::default()
        };
        assert_eq!(run.completed(), 100);
        assert!((run.fairness().unwrap() - 1.0).abs() < 1e-12);
        run.fct_s[1] = Some(20.0);
        assert!((run.fairness().unwrap() - 0.9).abs() < 1e-12);
    }

    #[test]
    fn without_flow_completion_times_fairness_is_over_exchange_counts() {
        let run = RunResult { exchanges: vec![2, 4], duration_s: 60.0, ..RunResult::default() };
        assert!((run.fairness().unwrap() - 0.9).abs() < 1e-12);
    }
}
