//! The ledger of a mote: every message that it offered or received.

use coapace_control::Duration;
use coapace_proto::Step;
use coapace_sim::{NodeId, Time};

use crate::measured::ArmedTimeouts;

/// A message that a client took from its application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// The number of its flow.
    pub(crate) flow: u8,
    /// The number among the client's messages of the flow, from 0.
    pub(crate) number: u32,
    /// The time when it was offered.
    pub(crate) at: Time,
}

/// A message that reached the application of a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DeliveredMessage {
    /// The number of its flow.
    pub(crate) flow: u8,
    /// The client that sent it.
    pub(crate) client: NodeId,
    /// The number among the client's messages of the flow.
    pub(crate) number: u32,
    /// The time of arrival.
    pub(crate) at: Time,
}

/// Counts of one flow at one client, from the end of the warm-up on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowTally {
    /// Messages that the application dropped.
    pub(crate) dropped: u64,
    /// Exchanges completed.
    pub(crate) completed: u64,
    /// Exchanges given up, and messages that the endpoint had no room for.
    pub(crate) gave_up: u64,
}

/// The messages that a mote offered and received.
#[derive(Debug, Default)]
pub(crate) struct MoteLedger {
    from: Time,
    /// The offered messages, in the order of time.
    pub(crate) offers: Vec<Offer>,
    /// The arrived messages in the order of time, copies included.
    pub(crate) arrivals: Vec<DeliveredMessage>,
    /// The counts of each flow, by its number.
    pub(crate) tallies: Vec<FlowTally>,
    /// The timeouts that were armed.
    pub(crate) timeouts: ArmedTimeouts,
}

impl MoteLedger {
    /// Makes an empty ledger. Events before `from` do not count, but arrivals are kept.
    pub(super) fn new(from: Time) -> Self {
        Self { from, ..Self::default() }
    }

    pub(super) fn accepted(&mut self, offer: Offer) {
        if offer.at >= self.from {
            self.offers.push(offer);
        }
    }

    pub(super) fn dropped(&mut self, now: Time, flow: u8) {
        self.count(now, flow, |tally| tally.dropped += 1);
    }

    pub(super) fn ended(&mut self, now: Time, flow: u8, completed: bool) {
        self.count(now, flow, |tally| if completed { tally.completed += 1 } else { tally.gave_up += 1 });
    }

    fn count(&mut self, now: Time, flow: u8, count: impl FnOnce(&mut FlowTally)) {
        if now < self.from {
            return;
        }
        let flow = usize::from(flow);
        if flow >= self.tallies.len() {
            self.tallies.resize(flow + 1, FlowTally::default());
        }
        count(&mut self.tallies[flow]);
    }

    /// Counts a timeout that was armed.
    pub(super) fn armed(&mut self, now: Time, step: Step, timeout: Duration, gauge: Option<Duration>) {
        self.timeouts.arm(step, timeout, gauge, now >= self.from);
    }
}
