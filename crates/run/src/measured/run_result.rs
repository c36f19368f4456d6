//! The result of one run.

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
    /// The number of events that the simulator handled.
    pub events: u64,
    /// The simulated time that was measured, without the warm-up, in seconds.
    pub duration_s: f64,
    /// The flow completion time of each client in seconds, from its first request to its last response; `None` for a
    /// client that gave up an exchange or did not finish. Empty if clients go on until the run ends.
    pub fct_s: Vec<Option<f64>>,
    /// For each client, the number of exchanges that it completed.
    pub exchanges: Vec<u32>,
    /// Exchanges that clients gave up.
    pub given_up: u64,
    /// Retransmissions of messages, or of segments over TCP.
    pub retransmissions: u64,
    /// Spurious retransmissions: an earlier copy of the message had arrived. A spurious retransmission is counted when
    /// the reply to it arrives.
    pub spurious: u64,
    /// Packets that a full queue or its queue management dropped.
    pub drops: u64,
    /// Packets that a link lost.
    pub losses: u64,
    /// Packets and exchanges that were marked CE; `None` if packets are not ECN-capable.
    #[serde(default)]
    pub ecn: Option<EcnResult>,
    /// The goodput of all clients: payload of completed exchanges, in bits per second.
    pub goodput_bps: f64,
    /// Completed exchanges per second of the measured time, over all clients.
    pub throughput: f64,
    /// Requests that clients sent, including retransmissions.
    pub requests_sent: u64,
    /// Responses that were sent, including answers to duplicates.
    pub responses_sent: u64,
    /// The clients, grouped by their mechanism; empty over TCP.
    pub populations: Vec<Population>,
    /// The flows, sorted as in the scenario file.
    #[serde(default)]
    pub flows: Vec<FlowResult>,
    /// The transfers, sorted as in the scenario file. The other fields leave out clients with transfers.
    #[serde(default)]
    pub transfers: Vec<TransferResult>,
    /// The durations of exchanges that were completed after the warm-up, if other clients transfer bodies.
    #[serde(default)]
    pub exchange_times: Delays,
    /// The timeouts that the clients armed after the warm-up; empty over TCP.
    pub timeouts: Timeouts,
    /// How long the network took to settle after an event; `None` without an event.
    #[serde(default, with = "super::settling::whole")]
    pub settling: Option<Settling>,
    /// The counts and the energy of the radios; `None` if there are no radios.
    #[serde(default)]
    pub mesh: Option<MeshResult>,
    /// The RTO over time in seconds, for a few clients or as the mean of all.
    pub rto: Vec<Series>,
    /// The bytes of bodies over time that a few recorded clients have moved.
    #[serde(default)]
    pub arrived: Vec<Series>,
    /// For each recorded client, the numbers of the blocks that it sent or requested for the first time, over time.
    #[serde(default)]
    pub departed: Vec<Series>,
    /// For each recorded client, the numbers of the blocks that it sent or requested again, over time.
    #[serde(default)]
    pub departed_again: Vec<Series>,
    /// The window of each recorded client over time: how many blocks may be outstanding.
    #[serde(default)]
    pub windows: Vec<Series>,
    /// The length of each queue over time in bytes, with the name of its hop.
    pub queues: Vec<Series>,
    /// The film of a mesh; `None` if no film was made.
    #[serde(skip)]
    pub film: Option<Box<Film>>,
}

impl RunResult {
    /// Returns the number of exchanges that all clients completed.
    pub fn completed(&self) -> u64 {
        self.exchanges.iter().map(|&count| u64::from(count)).sum()
    }

    /// Subtracts the counts that the same run had at an earlier time, the end of the warm-up.
    pub(crate) fn leave_out(&mut self, earlier: &Self) {
        // The same hosts counted both, and they only count up, so no subtraction underflows.
        for (count, earlier) in self.exchanges.iter_mut().zip(&earlier.exchanges) {
            *count -= earlier;
        }
        self.given_up -= earlier.given_up;
        self.retransmissions -= earlier.retransmissions;
        // A reply in the measured time may show that a retransmission of the warm-up was spurious.
        self.spurious = (self.spurious - earlier.spurious).min(self.retransmissions);
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

    /// Returns Jain's fairness index of the clients' rates, in completed exchanges per second. A client's rate is over
    /// its FCT, or over the whole run if it did not finish. Returns `None` if there are no clients or all rates are 0.
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

/// Packets and exchanges that were marked CE by queue management (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EcnResult {
    /// Packets that queue management marked.
    pub marks: u64,
    /// Exchanges whose request reached the server with CE.
    pub requests: u64,
    /// Exchanges whose response reached the client with CE.
    pub responses: u64,
}

impl EcnResult {
    /// Subtracts the counts that the same run had at an earlier time, the end of the warm-up.
    fn leave_out(&mut self, earlier: &Self) {
        self.marks -= earlier.marks;
        self.requests -= earlier.requests;
        self.responses -= earlier.responses;
    }
}

/// The clients of one mechanism in one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Population {
    /// The text that the mechanism was read from.
    pub mechanism: String,
    /// The number of clients in the population.
    pub clients: u32,
    /// Exchanges that the clients completed.
    pub exchanges: u64,
    /// Exchanges completed per second: the sum of the clients' rates. A client's rate is over the time until its last
    /// response, or over the whole run if it did not finish.
    pub throughput: f64,
    /// Requests that the clients sent, including retransmissions.
    pub requests_sent: u64,
    /// Requests that the clients sent again.
    pub retransmissions: u64,
    /// The sum of the durations of completed exchanges, each from the first transmission of the request to the
    /// response, in microseconds.
    pub exchange_time_us: u64,
    /// Jain's fairness index of the rates of these clients; `None` if it is not defined.
    pub jain: Option<f64>,
    /// The transfers of these clients; `None` if mechanisms are not compared by transfers. If they are, `clients` and
    /// `jain` are about the clients that transfer bodies over UDP, the counts of exchanges and requests are about the
    /// other clients, and `throughput` is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfers: Option<PopulationTransfers>,
}

/// The transfers of the clients of one mechanism in one run, over UDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PopulationTransfers {
    /// Transfers that were completed.
    pub completed: u64,
    /// Transfers that were given up, or whose body arrived changed.
    pub failed: u64,
    /// The sum of the durations of completed transfers, in microseconds.
    pub time_us: u64,
    /// Requests that fetched or uploaded a block, including repetitions.
    pub blocks_sent: u64,
    /// Blocks that were requested again, or sent again.
    pub blocks_again: u64,
    /// The bits of bodies that arrived per second, without failed transfers: the sum of the clients' rates. A client's
    /// rate is over the time from the beginning of its first transfer to the end of its last.
    pub goodput_bps: f64,
    /// The share of the slowest hop's rate that these bodies used, from 0 to 1, without headers. The time counts from
    /// the beginning of the first transfer to the end of the last. `None` if no hop has a rate.
    pub link_share: Option<f64>,
}

impl Population {
    /// Makes a population without clients. If `transfers` is true, populations are compared by transfers.
    pub(crate) fn new(mechanism: &str, transfers: bool) -> Self {
        let transfers = transfers.then(PopulationTransfers::default);
        Self { mechanism: mechanism.to_owned(), transfers, ..Self::default() }
    }

    /// Subtracts the counts that the same run had at an earlier time, the end of the warm-up.
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
    fn a_client_that_takes_twice_as_long_lowers_the_fairness_index() {
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
    fn without_flow_completion_times_the_fairness_index_is_over_exchange_counts() {
        let run = RunResult { exchanges: vec![2, 4], duration_s: 60.0, ..RunResult::default() };
        assert!((run.fairness().unwrap() - 0.9).abs() < 1e-12);
    }
}
