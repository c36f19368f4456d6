//! The ledger of a mote: all messages that it offered or received.

use coapace_control::Duration;
use coapace_proto::Step;
use coapace_sim::{NodeId, Time};

use crate::measured::ArmedTimeouts;

/// A message that a client accepted from its application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// The number of the flow that the message belongs to.
    pub(crate) flow: u8,
    /// The number of the message among the client's messages of the flow, from 0.
    pub(crate) number: u32,
    /// The time when the application offered it.
    pub(crate) at: Time,
}

/// A message that reached the application of a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DeliveredMessage {
    /// The number of the flow that the message belongs to.
    pub(crate) flow: u8,
    /// The client that sent the message.
    pub(crate) client: NodeId,
    /// The number of the message among the client's messages of the flow, from 0.
    pub(crate) number: u32,
    /// The time of arrival.
    pub(crate) at: Time,
}

/// Counts of one flow at one client, from the end of the warm-up on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowTally {
    /// Messages that the application dropped, because too many were open or waiting, or because no sink observed the
    /// client.
    pub(crate) dropped: u64,
    /// Exchanges that were completed.
    pub(crate) completed: u64,
    /// Exchanges that were given up, and messages that the endpoint had no space for.
    pub(crate) gave_up: u64,
}

/// The messages that a mote offered and received.
#[derive(Debug, Default)]
pub(crate) struct MoteLedger {
    from: Time,
    /// The messages that were offered after the warm-up and accepted, in the order of time.
    pub(crate) offers: Vec<Offer>,
    /// The arrived messages in the order of time, copies included.
    pub(crate) arrivals: Vec<DeliveredMessage>,
    /// The counts of each flow at this client, by the number of the flow.
    pub(crate) tallies: Vec<FlowTally>,
    /// The sums of the timeouts that the mote armed.
    pub(crate) timeouts: ArmedTimeouts,
}

impl MoteLedger {
    /// Makes an empty ledger. Events before the time `from` are not counted, but messages that arrive before it are
    /// kept.
    pub(super) fn new(from: Time) -> Self {
        Self { from, ..Self::default() }
    }

    pub(super) fn accepted(&mut self, offer: Offer) {
        // A message that was offered during the warm-up does not count, even if it arrives later.
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

    /// Counts a timeout that was armed. `gauge` is the mechanism's RTO at that moment.
    pub(super) fn armed(&mut self, now: Time, step: Step, timeout: Duration, gauge: Option<Duration>) {
        self.timeouts.arm(step, timeout, gauge, now >= self.from);
    }
}
