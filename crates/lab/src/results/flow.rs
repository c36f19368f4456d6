//! What a flow came to.

use serde::{Deserialize, Serialize};

use super::Delays;

/// What the messages of one flow came to in one run. A message counts if it was offered after the warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowResult {
    /// The name of the flow.
    pub name: String,
    /// Clients that take part.
    pub clients: u32,
    /// Bytes of a CoAP message.
    pub message_bytes: u32,
    /// Bytes of its payload.
    pub payload_bytes: u32,
    /// Messages that the application had to send, those it dropped included.
    pub offered: u64,
    /// Messages that the application dropped, because the client was busy or no sink observed it.
    pub dropped: u64,
    /// Messages that reached the application of the sink, once or more often, before the run ended.
    pub reached: u64,
    /// Confirmable messages that were acknowledged.
    pub completed: u64,
    /// Confirmable messages that were given up, and messages that the endpoint had no room for.
    pub gave_up: u64,
    /// From the moment a message is offered to its first arrival at the application of the sink.
    pub delays: Delays,
}

impl FlowResult {
    /// The packet delivery ratio: messages that reached the sink among those that the application handed to the endpoint,
    /// dropped ones aside; from 0 to 1.
    pub fn pdr(&self) -> Option<f64> {
        ratio(self.reached, self.offered - self.dropped.min(self.offered))
    }

    /// Messages that reached the sink among those offered, from 0 to 1.
    pub fn reached_share(&self) -> Option<f64> {
        ratio(self.reached, self.offered)
    }

    /// Adds what another run or another flow came to.
    pub(super) fn merge(&mut self, other: &Self) {
        self.offered += other.offered;
        self.dropped += other.dropped;
        self.reached += other.reached;
        self.completed += other.completed;
        self.gave_up += other.gave_up;
        self.delays.merge(&other.delays);
    }

    /// Bits of the messages that reached the sink.
    pub(crate) fn carried_bits(&self) -> f64 {
        self.reached as f64 * f64::from(self.message_bytes) * 8.0
    }

    /// Bytes of the payloads that reached the sink.
    pub(crate) fn reached_bytes(&self) -> f64 {
        self.reached as f64 * f64::from(self.payload_bytes)
    }
}

pub(super) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_application_drops_is_offered_but_not_in_the_delivery_ratio() {
        let flow = FlowResult { offered: 100, dropped: 20, reached: 60, ..FlowResult::default() };
        assert_eq!((flow.pdr(), flow.reached_share()), (Some(0.75), Some(0.6)));
        assert_eq!(FlowResult::default().pdr(), None);
    }
}
