//! Counts of the messages of one flow in one run.

use serde::{Deserialize, Serialize};

use super::Delays;

/// The messages of one flow in one run. A message counts if it was offered after the warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowResult {
    /// The name of the flow.
    pub name: String,
    /// The number of clients that take part.
    pub clients: u32,
    /// Bytes of a CoAP message.
    pub message_bytes: u32,
    /// Bytes of the payload of a message.
    pub payload_bytes: u32,
    /// Messages that the application had to send, those it dropped included.
    pub offered: u64,
    /// Messages that the application dropped, because the client was busy or no sink observed it.
    pub dropped: u64,
    /// Messages that reached the application of the sink before the run ended, each counted once.
    pub reached: u64,
    /// Confirmable messages that were acknowledged.
    pub completed: u64,
    /// Confirmable messages that were given up, and messages that the endpoint had no room for.
    pub gave_up: u64,
    /// The times from the offer of a message to its first arrival at the application of the sink, of the messages whose delays
    /// count (`delays_within`).
    pub delays: Delays,
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::{MeshResult, RunResult, Settling};
    use super::*;
    use coapace_sim::mesh::NodeCounters;

    /// Makes a run of 100 s with two flows. In each of them 120 messages are offered and 20 dropped.
    pub(in crate::results) fn flowing(seed: u64, reached: u64) -> RunResult {
        let mut delays = Delays::default();
        (0..reached).for_each(|_| delays.add(500_000));
        let flow = |name: &str| FlowResult {
            name: name.to_owned(),
            clients: 4,
            message_bytes: 100,
            payload_bytes: 50,
            offered: 120,
            dropped: 20,
            reached,
            completed: reached,
            gave_up: 3,
            delays: delays.clone(),
        };
        let counters = NodeCounters { frames: 1_000, queue_full: 7, ..NodeCounters::default() };
        RunResult {
            seed,
            duration_s: 100.0,
            exchanges: vec![10; 8],
            flows: vec![flow("a"), flow("b")],
            mesh: Some(MeshResult { counters, energies_mj: [0.0, 0.0, 20.0, 0.0], ..MeshResult::default() }),
            settling: Some(Settling { event_s: 50.0, time_s: (seed == 1).then_some(8.0), observed_s: 30.0 }),
            ..RunResult::default()
        }
    }
}
