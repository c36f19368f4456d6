//! One hop of a path: its configuration, and its state in a run.

use std::fmt;

use crate::fifo::Fifo;
use crate::jitter::{Jitter, Reordering, Scatter};
use crate::loss::{Loss, Losses};
use crate::luck::Luck;
use crate::packet::Header;
use crate::queue::{DropTailQueue, ManagedQueue, Queue};
use crate::rate::Rate;
use crate::{Accounting, Span, Time};

/// The number of a hop. Hops are numbered as they are added to the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HopId(pub u16);

/// The effects of a hop on a packet, applied in the sequence of the fields. Each effect can be absent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Hop {
    /// A buffer and a link of limited rate.
    pub rate: Option<Rate>,
    /// The management of the buffer. It must be drop-tail if the hop has no rate.
    pub queue: Queue,
    /// True if queue management marks packets that are ECN-capable, in place of dropping them (RFC 3168).
    pub marks: bool,
    /// A constant delay.
    pub delay: Span,
    /// Loss of packets that the link has carried.
    pub loss: Loss,
    /// A random delay of every packet.
    pub jitter: Option<Jitter>,
    /// An extra delay of a few packets.
    pub reordering: Option<Reordering>,
}

/// The reason why a hop is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopError {
    /// A rate of 0 bit/s.
    NoRate,
    /// Queue management without a rate.
    NoQueue,
    /// A parameter of queue management that is out of range.
    QueueParameter,
    /// A probability outside 0..=1.
    NotAProbability,
    /// A jitter whose shortest delay is longer than its longest.
    EmptyJitter,
    /// The network has more than 65,536 hops.
    TooMany,
}

impl Hop {
    /// Checks the values of the fields.
    ///
    /// # Errors
    /// [`HopError`] names the field that is out of range.
    pub fn check(&self) -> Result<(), HopError> {
        if self.rate.is_some_and(|rate| rate.bits_per_second == 0) {
            return Err(HopError::NoRate);
        }
        if self.queue != Queue::DropTail && self.rate.is_none() {
            return Err(HopError::NoQueue);
        }
        if !self.queue.is_valid() {
            return Err(HopError::QueueParameter);
        }
        if !self.loss.is_valid() || self.reordering.is_some_and(|reordering| !reordering.is_valid()) {
            return Err(HopError::NotAProbability);
        }
        if self.jitter.is_some_and(|jitter| !jitter.is_valid()) {
            return Err(HopError::EmptyJitter);
        }
        Ok(())
    }
}

impl fmt::Display for HopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoRate => "a rate must be more than 0 bit/s",
            Self::NoQueue => "queue management needs a rate: without one nothing waits",
            Self::QueueParameter => "a parameter of queue management is out of range",
            Self::NotAProbability => "a probability must lie from 0 to 1",
            Self::EmptyJitter => "the shortest delay of a jitter is longer than its longest",
            Self::TooMany => "a network has 65,536 hops at most",
        })
    }
}

impl std::error::Error for HopError {}

/// The state of a hop in a run.
#[derive(Debug)]
pub(crate) struct ActiveHop {
    /// Packets in the buffer, in transmission and in constant delay.
    pub(crate) fifo: Fifo,
    link: Option<DropTailQueue>,
    /// The buffer and link of a hop with queue management, which has no `link`; `None` with drop-tail. Packets move on
    /// to `fifo` when their transmission begins.
    pub(crate) managed: Option<Box<ManagedQueue>>,
    pub(crate) accounting: Accounting,
    pub(crate) delay: Span,
    pub(crate) losses: Losses,
    pub(crate) scatter: Option<Scatter>,
}

/// The decision of a hop about a packet that enters it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HopAdmission {
    /// The packet is accepted. Its transmission begins after `wait`, it leaves the hop at `due`, and `queue_bytes`
    /// bytes then wait in the buffer.
    Queued { due: Time, wait: Span, queue_bytes: u64 },
    /// The packet is dropped because the buffer is full: `queue_bytes` bytes wait in it.
    Full { queue_bytes: u64 },
}

impl ActiveHop {
    pub(crate) fn new(hop: &Hop, accounting: Accounting, luck: Luck, name: &str) -> Self {
        let scatters = hop.jitter.is_some() || hop.reordering.is_some();
        Self {
            fifo: Fifo::default(),
            link: hop.rate.filter(|_| hop.queue == Queue::DropTail).map(DropTailQueue::new),
            // `ManagedQueue::new` returns none for drop-tail, so a hop has `link` or `managed` but never both.
            managed: (hop.rate)
                .and_then(|rate| ManagedQueue::new(hop.queue, hop.marks, rate, luck, name))
                .map(Box::new),
            accounting,
            delay: hop.delay,
            losses: Losses::new(hop.loss, luck, name),
            scatter: scatters.then(|| Scatter::new(hop.jitter, hop.reordering, luck, name)),
        }
    }

    /// Returns the random delays of a hop without a rate. The packets of such a hop overtake each other, and so need no
    /// queue. Returns `None` if the hop has a rate or no random delays.
    pub(crate) fn unordered(&self) -> Option<Scatter> {
        if self.link.is_none() && self.managed.is_none() { self.scatter } else { None }
    }

    /// Adds a packet to the hop, if there is room.
    pub(crate) fn enter(
        &mut self,
        now: Time,
        mut packet: Header,
        bytes: &[u8],
        wire_bytes: u32,
    ) -> HopAdmission {
        // Without a rate nothing waits: the packet is only delayed.
        let Some(link) = &mut self.link else {
            packet.due = now + self.delay;
            self.fifo.push(&packet, bytes);
            return HopAdmission::Queued { due: packet.due, wait: Span::ZERO, queue_bytes: 0 };
        };
        // The buffer is counted without the packets whose transmission has begun by now.
        link.begin_transmissions(now, self.delay, &mut self.fifo, self.accounting);
        // An idle link finished its last packet before `now`.
        let start = link.transmitter.finish().max(now);
        let waits = start > now;
        // A packet that finds the link idle needs no room in the buffer.
        if waits && link.queue_bytes + u64::from(wire_bytes) > link.capacity_bytes {
            return HopAdmission::Full { queue_bytes: link.queue_bytes };
        }
        let finish = link.transmitter.transmit(now, wire_bytes);
        // The constant delay begins when the last bit has left, so it changes no order.
        packet.due = finish + self.delay;
        self.fifo.push(&packet, bytes);
        if waits {
            link.queue_bytes += u64::from(wire_bytes);
        } else {
            self.fifo.set_out(bytes.len());
            link.free_at = finish;
        }
        HopAdmission::Queued { due: packet.due, wait: start - now, queue_bytes: link.queue_bytes }
    }

    /// Returns the number of packets in the hop.
    pub(crate) fn packets(&self) -> usize {
        self.fifo.len() + self.managed.as_ref().map_or(0, |managed| managed.len())
    }

    /// Returns the number of bytes that wait in the buffer at `now`.
    pub(crate) fn queue_bytes(&mut self, now: Time) -> u64 {
        let Some(link) = &mut self.link else {
            return self.managed.as_ref().map_or(0, |managed| managed.bytes());
        };
        link.begin_transmissions(now, self.delay, &mut self.fifo, self.accounting);
        link.queue_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mark, NodeId, Transport};

    fn active(capacity_bytes: u64) -> ActiveHop {
        let rate = Some(Rate { bits_per_second: 8_000, capacity_bytes });
        ActiveHop::new(
            &Hop { rate, delay: Span::from_nanos(500), ..Hop::default() },
            Accounting::Ipv4,
            Luck::new(0),
            "up",
        )
    }

    fn enter(active_hop: &mut ActiveHop, ms: u64, bytes: usize) -> HopAdmission {
        let packet = Header::new(NodeId(1), NodeId(0), Mark::default(), Transport::Ip, bytes as u16, 0);
        active_hop.enter(Time::from_nanos(ms * 1_000_000), packet, &vec![0; bytes], bytes as u32)
    }

    /// Returns an admission. At 8,000 bit/s a byte takes a millisecond.
    fn queued(due_ms: u64, wait_ms: u64, queue_bytes: u64) -> HopAdmission {
        let due = Time::from_nanos(due_ms * 1_000_000 + 500);
        HopAdmission::Queued { due, wait: Span::from_millis(wait_ms), queue_bytes }
    }

    #[test]
    fn a_buffer_holds_its_exact_capacity_in_addition_to_the_packet_in_transmission() {
        let mut active_hop = active(100);
        assert_eq!(enter(&mut active_hop, 0, 60), queued(60, 0, 0));
        assert_eq!(enter(&mut active_hop, 0, 60), queued(120, 60, 60));
        assert_eq!(enter(&mut active_hop, 0, 41), HopAdmission::Full { queue_bytes: 60 });
        assert_eq!(enter(&mut active_hop, 0, 40), queued(160, 120, 100));
        assert_eq!(enter(&mut active_hop, 0, 1), HopAdmission::Full { queue_bytes: 100 });
    }

    #[test]
    fn a_buffer_has_room_again_the_moment_a_transmission_begins() {
        let mut active_hop = active(100);
        enter(&mut active_hop, 0, 60);
        enter(&mut active_hop, 0, 100);
        assert_eq!(enter(&mut active_hop, 59, 1), HopAdmission::Full { queue_bytes: 100 });
        assert_eq!(enter(&mut active_hop, 60, 1), queued(161, 100, 1));
        assert_eq!(active_hop.queue_bytes(Time::from_nanos(160_000_000)), 0);
    }

    #[test]
    fn an_idle_link_takes_a_packet_larger_than_its_buffer() {
        let mut active_hop = active(0);
        assert_eq!(enter(&mut active_hop, 0, 60), queued(60, 0, 0));
        assert_eq!(enter(&mut active_hop, 59, 60), HopAdmission::Full { queue_bytes: 0 });
        assert_eq!(enter(&mut active_hop, 60, 60), queued(120, 0, 0));
    }

    #[test]
    fn a_packet_of_zero_bytes_waits_in_the_queue_like_others() {
        let mut active_hop = active(100);
        enter(&mut active_hop, 0, 60);
        assert_eq!(enter(&mut active_hop, 0, 0), queued(60, 60, 0));
        assert_eq!(enter(&mut active_hop, 0, 10), queued(70, 60, 10));
        assert_eq!(active_hop.queue_bytes(Time::from_nanos(60_000_000)), 0);
    }

    #[test]
    fn a_hop_with_impossible_parameters_is_refused() {
        let rate = |bits_per_second| Some(Rate { bits_per_second, capacity_bytes: 0 });
        assert_eq!(Hop { rate: rate(0), ..Hop::default() }.check(), Err(HopError::NoRate));
        let loss = Loss::Random(1.5);
        assert_eq!(Hop { loss, ..Hop::default() }.check(), Err(HopError::NotAProbability));
        let jitter = Some(Jitter { min: Span::from_nanos(2), max: Span::from_nanos(1) });
        assert_eq!(Hop { jitter, ..Hop::default() }.check(), Err(HopError::EmptyJitter));
        let queue = Queue::Codel(crate::CodelConfig::RFC_8289);
        assert_eq!(Hop { queue, ..Hop::default() }.check(), Err(HopError::NoQueue));
        let queue = Queue::Pie(crate::PieConfig { update: Span::ZERO, ..crate::PieConfig::RFC_8033 });
        assert_eq!(Hop { rate: rate(1), queue, ..Hop::default() }.check(), Err(HopError::QueueParameter));
        assert_eq!(Hop { rate: rate(1), ..Hop::default() }.check(), Ok(()));
    }
}
