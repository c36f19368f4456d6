//! A buffer with active queue management, and the transmitter behind it.

use super::codel::Codel;
use super::fq_codel::FqCodel;
use super::lane::{PacketLane, WaitingPacket};
use super::pie::Pie;
use super::red::Red;
use super::{CodelConfig, Queue, Verdict};
use crate::luck::{Luck, Stream};
use crate::packet::Header;
use crate::rate::{Rate, Transmitter};
use crate::scattered::Scattered;
use crate::{Span, Time};

/// A buffer with active queue management, and the transmitter behind it.
///
/// Like with drop-tail, the buffer does not hold the packet in transmission, and a packet that finds the link idle
/// needs no room. The capacity limits only the packets that wait.
#[derive(Debug)]
pub(crate) struct ManagedQueue {
    discipline: Discipline,
    store: Scattered,
    transmitter: Transmitter,
    capacity_bytes: u64,
    bytes: u64,
    marks: bool,
    is_sending: bool,
    luck: Stream,
    flows: Stream,
    /// Packets that queue management dropped and [`take_discarded`](Self::take_discarded) has not returned yet.
    discarded: Vec<WaitingPacket>,
}

#[derive(Debug)]
enum Discipline {
    Codel(CodelConfig, Codel, PacketLane),
    FqCodel(FqCodel),
    Pie(Pie, PacketLane),
    Red(Red, PacketLane),
}

/// What happened to a packet that arrived at the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketFate {
    /// The packet waits.
    Queued,
    /// The packet waits, and was marked.
    Marked,
    /// Queue management dropped the packet.
    Discarded,
    /// The packet was dropped because the buffer is full.
    Full,
}

/// A packet whose transmission begins.
#[derive(Debug)]
pub(crate) struct Departure {
    pub(crate) header: Header,
    pub(crate) bytes: Vec<u8>,
    pub(crate) place: u32,
    /// The time that the packet waited.
    pub(crate) wait: Span,
    /// True if queue management marked the packet when it left the buffer.
    pub(crate) is_marked: bool,
    /// The end of the packet's transmission.
    pub(crate) finish: Time,
}

impl ManagedQueue {
    /// Returns an empty buffer, or `None` for drop-tail.
    pub(crate) fn new(queue: Queue, marks: bool, rate: Rate, luck: Luck, name: &str) -> Option<Self> {
        let bits = rate.bits_per_second;
        let discipline = match queue {
            Queue::DropTail => return None,
            Queue::Codel(config) => Discipline::Codel(config, Codel::default(), PacketLane::default()),
            Queue::FqCodel(config) => Discipline::FqCodel(FqCodel::new(config)),
            Queue::Pie(config) => Discipline::Pie(Pie::new(config, bits), PacketLane::default()),
            Queue::Red(config) => Discipline::Red(Red::new(config, bits), PacketLane::default()),
        };
        Some(Self {
            discipline,
            store: Scattered::default(),
            transmitter: Transmitter::new(rate),
            capacity_bytes: rate.capacity_bytes,
            bytes: 0,
            marks,
            is_sending: false,
            luck: luck.stream(&format!("{name}/queue")),
            flows: luck.stream(&format!("{name}/flows")),
            discarded: Vec::new(),
        })
    }

    /// Returns the number of packets that wait.
    pub(crate) fn len(&self) -> usize {
        self.store.len()
    }

    /// Returns the number of bytes on the wire that wait.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns whether a packet is in transmission.
    pub(crate) fn is_sending(&self) -> bool {
        self.is_sending
    }

    /// Adds a packet, marks and adds it, or drops it, as the room and queue management decide.
    pub(crate) fn arrive(
        &mut self,
        now: Time,
        header: &mut Header,
        bytes: &[u8],
        wire_bytes: u32,
    ) -> PacketFate {
        let is_full =
            |queue: &Self| queue.is_sending && queue.bytes + u64::from(wire_bytes) > queue.capacity_bytes;
        // FQ-CoDel takes the packet, and drops another in `overflow`.
        if is_full(self) && !matches!(self.discipline, Discipline::FqCodel(_)) {
            return PacketFate::Full;
        }
        let (a, b, c) = header.key();
        // Only a packet whose sender understands marks is marked (RFC 3168 §5).
        let is_markable = self.marks && header.is_ecn_capable();
        let mut packet = WaitingPacket { place: 0, arrived: now, wire_bytes, is_markable };
        let verdict = match &mut self.discipline {
            Discipline::Codel(..) | Discipline::FqCodel(_) => Verdict::Keep,
            Discipline::Pie(pie, _) => {
                // PIE corrects its probability for the queue before this packet.
                pie.advance(now, self.bytes);
                pie.admit(self.bytes, &packet, self.luck.unit(a, b, c))
            }
            Discipline::Red(red, lane) => red.admit(now, lane.len(), &packet, self.luck.unit(a, b, c)),
        };
        match verdict {
            Verdict::Drop => return PacketFate::Discarded,
            // A mark that cannot be set is a drop.
            Verdict::Mark if !is_markable => return PacketFate::Discarded,
            Verdict::Mark => header.mark_congestion(),
            Verdict::Keep => {}
        }
        packet.place = self.store.insert(header, bytes);
        self.bytes += u64::from(wire_bytes);
        match &mut self.discipline {
            Discipline::Codel(_, _, lane) | Discipline::Pie(_, lane) | Discipline::Red(_, lane) => {
                lane.push(packet);
            }
            // `a` holds the two ends, so packets of one direction between two nodes share a queue.
            Discipline::FqCodel(fq) => fq.push(packet, self.flows.bits(a, 0, 0)),
        }
        if verdict == Verdict::Mark { PacketFate::Marked } else { PacketFate::Queued }
    }

    /// Removes and returns a packet if the buffer holds more than its capacity. Only FQ-CoDel needs this: it accepts a
    /// packet and then drops another.
    pub(crate) fn overflow(&mut self) -> Option<(Header, Vec<u8>, u32)> {
        let Discipline::FqCodel(fq) = &mut self.discipline else { return None };
        if !self.is_sending || self.bytes <= self.capacity_bytes {
            return None;
        }
        let packet = fq.pop_longest()?;
        Some(self.take(packet))
    }

    /// Begins the transmission of the next packet, and returns that packet; `None` if no packet waits.
    pub(crate) fn depart(&mut self, now: Time) -> Option<Departure> {
        let next = match &mut self.discipline {
            Discipline::Codel(config, codel, lane) => codel.pop(config, now, lane, &mut self.discarded),
            Discipline::FqCodel(fq) => fq.pop(now, &mut self.discarded),
            Discipline::Pie(pie, lane) => {
                pie.advance(now, self.bytes);
                lane.pop().map(|packet| (packet, false))
            }
            Discipline::Red(red, lane) => {
                let packet = lane.pop();
                if lane.len() == 0 && packet.is_some() {
                    red.becomes_empty(now);
                }
                packet.map(|packet| (packet, false))
            }
        };
        // Without a packet the link is idle, and the next one that arrives begins its transmission itself.
        self.is_sending = next.is_some();
        let (packet, is_marked) = next?;
        let (mut header, bytes, place) = self.take(packet);
        if is_marked {
            header.mark_congestion();
        }
        let finish = self.transmitter.transmit(now, packet.wire_bytes);
        Some(Departure { header, bytes, place, wait: now - packet.arrived, is_marked, finish })
    }

    /// Removes and returns the next packet that queue management dropped, if there is one. The caller passes its memory
    /// to [`give_back`](Self::give_back).
    pub(crate) fn take_discarded(&mut self) -> Option<(Header, Vec<u8>, u32)> {
        // From the front: taps see the drops in their sequence.
        let packet = if self.discarded.is_empty() { None } else { Some(self.discarded.remove(0)) };
        packet.map(|packet| self.take(packet))
    }

    fn take(&mut self, packet: WaitingPacket) -> (Header, Vec<u8>, u32) {
        self.bytes -= u64::from(packet.wire_bytes);
        let (header, bytes) = self.store.take(packet.place);
        (header, bytes, packet.place)
    }

    /// Takes back the memory of a removed packet.
    pub(crate) fn give_back(&mut self, place: u32, bytes: Vec<u8>) {
        self.store.give_back(place, bytes);
    }
}
