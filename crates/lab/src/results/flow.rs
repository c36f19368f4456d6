//! Counts of the messages of one flow in one run.

use serde::Serialize;

use super::Delays;

/// The messages of one flow in one run. A message counts if it was offered after the warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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

impl FlowResult {
    /// Returns the packet delivery ratio, from 0 to 1: messages that reached the sink among all that the application had to
    /// send, dropped ones included.
    pub fn pdr(&self) -> Option<f64> {
        ratio(self.reached, self.offered)
    }

    /// Returns the share of messages that reached the sink among those that the application gave to the endpoint, from 0 to 1.
    pub fn pdr_sent(&self) -> Option<f64> {
        ratio(self.reached, self.offered - self.dropped.min(self.offered))
    }

    /// Returns the bits of the messages that reached the sink.
    pub(crate) fn carried_bits(&self) -> f64 {
        self.reached as f64 * f64::from(self.message_bytes) * 8.0
    }

    /// Returns the payload bytes of the messages that reached the sink.
    pub(crate) fn reached_bytes(&self) -> f64 {
        self.reached as f64 * f64::from(self.payload_bytes)
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
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
            mesh: Some(MeshResult { counters, listen_mj: 20.0, ..MeshResult::default() }),
            settling: Some(Settling { event_s: 50.0, time_s: (seed == 1).then_some(8.0), observed_s: 30.0 }),
            ..RunResult::default()
        }
    }

    #[test]
    fn what_the_application_drops_is_offered_and_not_sent() {
        let flow = FlowResult { offered: 100, dropped: 20, reached: 60, ..FlowResult::default() };
        assert_eq!((flow.pdr(), flow.pdr_sent()), (Some(0.6), Some(0.75)));
        assert_eq!((FlowResult::default().pdr(), FlowResult::default().pdr_sent()), (None, None));
    }
}
