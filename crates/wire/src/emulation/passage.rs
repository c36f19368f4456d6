//! The part that both kinds of emulation share: packets enter the network when they arrive at the emulator, and leave it when
//! they are due.

use std::hash::Hash;
use std::io;
use std::time::Duration;

use coapace_run::hop_names;
use coapace_scenario::Scenario;
use coapace_sim::{HopId, Outgoing, Tap, Time, Transport};

use super::EmulationError;
use super::counts::EmulationCounts;
use super::running::SharedEmulation;
use super::sources::{EmulationSources, SourcePlace};
use super::steps::{EmulationDirection, PacketRole};
use super::waiting::EmulationClock;
use crate::link::{Link, SERVER};

/// The network of a scenario, its sources by their keys `K`, and the counters.
#[derive(Debug)]
pub(super) struct Passage<K, T> {
    clock: EmulationClock,
    link: Link<T>,
    pub(super) sources: EmulationSources<K>,
    pub(super) counts: EmulationCounts,
    hops: Vec<String>,
    transport: Transport,
    /// Returns the role of a packet in an exchange, from the bytes of the packet.
    content: fn(&[u8]) -> PacketRole,
    published: Time,
}

/// The interval at which the counters are published, and at which the emulation checks whether it must stop.
const PUBLISHED_EVERY: Duration = Duration::from_millis(100);

impl<K: Copy + Eq + Hash, T: Tap> Passage<K, T> {
    /// Builds the network of a scenario for at most `limit` sources. `transport` says which headers its packets begin
    /// with, and `content` reads the role of a packet from its bytes.
    pub(super) fn new(
        (scenario, seed, tap): (&Scenario, u64, T),
        limit: usize,
        transport: Transport,
        content: fn(&[u8]) -> PacketRole,
    ) -> Result<Self, EmulationError> {
        Ok(Self {
            link: Link::new(scenario, seed, tap).ok_or(EmulationError::Mesh)?,
            clock: EmulationClock::start(),
            sources: EmulationSources::new(limit),
            counts: EmulationCounts::default(),
            hops: hop_names(scenario),
            transport,
            content,
            published: Time::ZERO,
        })
    }

    /// Returns the time since the emulation began.
    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Finds a slot for a new source; `None` if no slot is free and no known source can lose its slot. Counts the
    /// source that lost its slot, or the refusal.
    pub(super) fn admit(&mut self, key: K, at: Time) -> Option<SourcePlace> {
        let place = self.sources.admit(key, at, |node| self.link.under_way(node));
        match place {
            Some(SourcePlace::New(_)) => {}
            Some(SourcePlace::Taken(_)) => self.counts.replaced += 1,
            None => self.counts.refused += 1,
        }
        place
    }

    /// Adds the node of a new slot to the network. A slot taken from another source keeps its node.
    pub(super) fn settle(&mut self, place: SourcePlace) {
        if let SourcePlace::New(place) = place {
            // Slots and nodes are added in step, so the number of one gives the number of the other.
            let node = self.link.add_client();
            debug_assert_eq!(node, EmulationSources::<K>::node(place));
        }
    }

    /// Lets a packet of the source in slot `place` enter the network at the time `at`. `wire_bytes` is its length with
    /// the IP header.
    pub(super) fn enter(
        &mut self,
        at: Time,
        way: EmulationDirection,
        place: usize,
        bytes: &[u8],
        wire_bytes: u32,
    ) {
        // The network catches up first, so that the packet meets the queues of its own moment.
        self.link.advance(at);
        // Callers pass only slots that exist.
        let Some((_, steps)) = self.sources.get(place) else { return };
        let mark = steps.enter(way, (self.content)(bytes));
        let node = EmulationSources::<K>::node(place);
        let (from, to) = if way == EmulationDirection::Up { (node, SERVER) } else { (SERVER, node) };
        self.counts.oversized += u64::from(wire_bytes > self.link.mtu());
        self.link.send(from, Outgoing { to, mark, transport: self.transport }, bytes);
    }

    /// Advances the network until now, and passes the packets that have come through it to `send`, each with its
    /// direction and with the slot and the key of its source.
    pub(super) fn depart(
        &mut self,
        mut send: impl FnMut(EmulationDirection, usize, K, &[u8]) -> io::Result<()>,
    ) {
        self.link.advance(self.clock.now());
        for arrival in self.link.arrivals() {
            let (way, node) = if arrival.to == SERVER {
                (EmulationDirection::Up, arrival.from)
            } else {
                (EmulationDirection::Down, arrival.to)
            };
            // Node 0 is the server, which sends nothing to itself.
            let Some(place) = EmulationSources::<K>::place(node) else { continue };
            let Some((key, steps)) = self.sources.get(place) else { continue };
            steps.arrive(way, (self.content)(arrival.bytes), arrival.mark);
            if let Err(error) = send(way, place, key, arrival.bytes) {
                self.counts.refuse(&error);
            }
            // The moment behind the send counts, because the send takes time, too.
            let lateness = self.clock.now() - arrival.due;
            self.counts.depart(Duration::from_nanos(lateness.as_nanos()));
        }
        self.link.clear();
    }

    /// Returns the time until the next event in the network, at most [`PUBLISHED_EVERY`].
    pub(super) fn idle(&mut self) -> Duration {
        let next = self.link.next_event().map(|due| due - self.clock.now());
        next.map_or(PUBLISHED_EVERY, |span| Duration::from_nanos(span.as_nanos()).min(PUBLISHED_EVERY))
    }

    /// Copies the counters to `shared`, unless it did so less than [`PUBLISHED_EVERY`] ago.
    pub(super) fn publish(&mut self, shared: &SharedEmulation) {
        let now = self.clock.now();
        // Copying all counters at every packet would cost more than carrying it.
        if Duration::from_nanos((now - self.published).as_nanos()) >= PUBLISHED_EVERY {
            self.published = now;
            shared.publish(self.counts());
        }
    }

    /// Returns the counters so far.
    fn counts(&self) -> EmulationCounts {
        let counters = self.link.counters();
        let hops = self.hops.iter().zip(0..).map(|(name, hop)| (name.clone(), counters.hop(HopId(hop))));
        EmulationCounts {
            elapsed: Duration::from_nanos(self.clock.now().as_nanos()),
            entered: counters.sent,
            arrived: counters.delivered,
            dropped: counters.dropped,
            lost: counters.lost,
            marked: counters.marked,
            hops: hops.collect(),
            sources: self.sources.len() as u64,
            ..self.counts.clone()
        }
    }

    /// Returns the counters and the caller's tap at the end.
    pub(super) fn finish(self) -> (EmulationCounts, T) {
        (self.counts(), self.link.into_tap())
    }
}
