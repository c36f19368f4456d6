//! The journeys of exchanges through a mesh.

use std::collections::BTreeMap;

use coapace_sim::mesh::{FrameEvent, FrameRecord};
use coapace_sim::{Event, Mark, NodeId, Record, Tap, Time};

use crate::measured::{Journey, JourneyStep};

/// The maximum number of steps of all journeys together. If there are more, the journey of every second exchange of
/// each client is dropped. This may repeat.
const MAX_STEPS: usize = 12_000;

/// The journeys (paths of exchanges through the mesh) so far. The key is the two ends, the lower node number first, and
/// the number of the exchange.
#[derive(Debug)]
pub(super) struct Following {
    journeys: BTreeMap<(u32, u32, u32), Journey>,
    steps: usize,
    /// An exchange is followed only if its number is a multiple of this.
    stride: u32,
}

impl Following {
    pub(super) fn new() -> Self {
        Self { journeys: BTreeMap::new(), steps: 0, stride: 1 }
    }

    /// Returns the journeys, sorted by the time of their first packet.
    pub(super) fn finish(self) -> Vec<Journey> {
        let mut journeys: Vec<_> = self.journeys.into_values().collect();
        journeys.sort_by_key(|journey| (journey.steps.first().map(|step| step.0), journey.from));
        journeys
    }

    fn step(&mut self, time: Time, event: u8, ends: [NodeId; 2], hop: [u32; 2], mark: Mark) {
        if !mark.exchange.is_multiple_of(self.stride) {
            return;
        }
        let [from, to] = ends.map(|end| end.0);
        // Requests and responses of an exchange are one journey, so the key does not depend on the direction.
        let key = (from.min(to), from.max(to), mark.exchange);
        // A journey that did not begin with a packet would lack its first part.
        if event > 0 && !self.journeys.contains_key(&key) {
            return;
        }
        let exchange = mark.exchange;
        let journey =
            self.journeys.entry(key).or_insert_with(|| Journey { from, to, exchange, steps: Vec::new() });
        if journey.steps.len() >= Journey::MAX_STEPS {
            return;
        }
        let ms = time.as_nanos() / 1_000_000;
        journey.steps.push(JourneyStep(ms, event, hop[0], hop[1], mark.transmission));
        self.steps += 1;
        if self.steps > MAX_STEPS {
            self.stride = self.stride.saturating_mul(2);
            let stride = self.stride;
            // Exchanges before this moment are thinned out like those after it, so all of the run is shown alike.
            self.journeys.retain(|&(.., exchange), _| exchange.is_multiple_of(stride));
            // One halving may leave too many. The step after this one then halves again.
            self.steps = self.journeys.values().map(|journey| journey.steps.len()).sum();
        }
    }
}

impl Tap for Following {
    fn record(&mut self, record: &Record<'_>) {
        let event = match record.event {
            Event::Sent => 0,
            Event::Delivered => 1,
            Event::Dropped | Event::Discarded => 2,
            Event::Queued | Event::Lost | Event::Marked | Event::Begun => return,
        };
        let ends = [record.from, record.to];
        self.step(record.time, event, ends, ends.map(|end| end.0), record.mark);
    }

    fn frame(&mut self, record: &FrameRecord<'_>) {
        let Some((datagram, dest)) = record.datagram.and_then(|it| Some((it, it.dest?))) else { return };
        // Frames of RPL belong to no exchange.
        if !matches!(datagram.content, coapace_sim::mesh::Content::Udp(_)) {
            return;
        }
        let event = match record.event {
            FrameEvent::Sent => 3,
            FrameEvent::Received => 4,
            FrameEvent::Collided => 5,
            FrameEvent::Missed => 6,
            FrameEvent::NotAcknowledged => 7,
            FrameEvent::ChannelBusy => 8,
            FrameEvent::QueueFull => 9,
        };
        let hop = [record.frame.from.0, record.frame.to.map_or(Journey::NOBODY, |to| to.0)];
        self.step(record.time, event, [datagram.source, dest], hop, record.mark);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_followed_to_its_receiver_and_its_answer_back() {
        let mut following = Following::new();
        let (client, relay, sink) = (NodeId(7), 3, NodeId(0));
        let mark = Mark { exchange: 4, transmission: 0 };
        let at = Time::from_secs;
        following.step(at(1), 0, [client, sink], [7, 0], mark);
        following.step(at(2), 3, [client, sink], [7, relay], mark);
        following.step(at(3), 1, [client, sink], [7, 0], mark);
        following.step(at(4), 0, [sink, client], [0, 7], mark);
        // A journey that began before it was followed is left out, since its first part would be missing.
        following.step(at(4), 3, [client, sink], [7, relay], Mark { exchange: 5, transmission: 0 });
        let journeys = following.finish();
        assert_eq!(journeys.len(), 1);
        assert_eq!((journeys[0].from, journeys[0].to, journeys[0].exchange), (7, 0, 4));
        let steps: Vec<_> = journeys[0].steps.iter().map(|step| (step.0, step.1)).collect();
        assert_eq!(steps, [(1_000, 0), (2_000, 3), (3_000, 1), (4_000, 0)]);
    }

    #[test]
    fn the_number_of_followed_messages_is_bounded() {
        let mut following = Following::new();
        for exchange in 0..100_000 {
            let mark = Mark { exchange, transmission: 0 };
            following.step(Time::from_secs(exchange.into()), 0, [NodeId(1), NodeId(0)], [1, 0], mark);
        }
        let journeys = following.finish();
        assert!((MAX_STEPS / 2 - 1..=MAX_STEPS).contains(&journeys.len()), "{}", journeys.len());
        assert!(journeys.iter().all(|journey| journey.exchange.is_multiple_of(16)));
    }
}
