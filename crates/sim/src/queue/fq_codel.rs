//! FQ-CoDel, fair queueing with CoDel.
//!
//! **Source.** RFC 8290 §4.
//!
//! **Idea.** Packets are hashed into queues by their sender and receiver. Queues take turns of a quantum of bytes
//! (deficit round robin), and the queues that were empty go first. CoDel manages each queue.
//!
//! **Readings where the source is open.** CoDel's smallest queue, MAXPACKET, refers to the queue of the flow. A packet that
//! exceeds the buffer is dropped from the head of the longest queue.

use std::collections::VecDeque;

use super::CodelConfig;
use super::codel::Codel;
use super::lane::{PacketLane, WaitingPacket};
use crate::Time;

/// The parameters of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCodelConfig {
    /// The parameters of the CoDel that manages each queue.
    pub codel: CodelConfig,
    /// The bytes that a queue may send in its turn.
    pub quantum_bytes: u32,
    /// The number of queues; at least 1.
    pub flows: u32,
}

impl FqCodelConfig {
    /// The constants of RFC 8290 §5.2.
    pub const RFC_8290: Self = Self { codel: CodelConfig::RFC_8289, quantum_bytes: 1_514, flows: 1_024 };
    /// [`CodelConfig::SLOW_LINK`], with the quantum of 300 bytes that RFC 8290 §5.2.4 has for slow links.
    pub const SLOW_LINK: Self = Self { codel: CodelConfig::SLOW_LINK, quantum_bytes: 300, ..Self::RFC_8290 };
}

/// The queues, and their turns.
#[derive(Debug)]
pub(super) struct FqCodel {
    config: FqCodelConfig,
    flows: Vec<QueuedFlow>,
    /// The numbers of the queues that were empty a short time ago. These queues go first.
    new: VecDeque<u32>,
    old: VecDeque<u32>,
}

#[derive(Debug, Default)]
struct QueuedFlow {
    lane: PacketLane,
    codel: Codel,
    /// The bytes that the queue may still send in its turn; negative if its last packet was larger than the rest of the
    /// turn.
    credit: i64,
    is_listed: bool,
}

impl FqCodel {
    pub(super) fn new(config: FqCodelConfig) -> Self {
        let flows = std::iter::repeat_with(QueuedFlow::default).take(config.flows.max(1) as usize).collect();
        Self { config, flows, new: VecDeque::new(), old: VecDeque::new() }
    }

    /// Adds a packet to the queue of its flow. The number of the queue is `hash` modulo the number of queues.
    pub(super) fn push(&mut self, packet: WaitingPacket, hash: u64) {
        let number = hash % self.flows.len() as u64;
        let flow = &mut self.flows[number as usize];
        flow.lane.push(packet);
        // A flow that was empty goes to the new ones, which have precedence (RFC 8290 §4.1).
        if !flow.is_listed {
            (flow.is_listed, flow.credit) = (true, i64::from(self.config.quantum_bytes));
            self.new.push_back(number as u32);
        }
    }

    /// Removes and returns the first packet of the longest queue.
    pub(super) fn pop_longest(&mut self) -> Option<WaitingPacket> {
        // The queue stays listed even if it is empty now. `pop` takes it off the list at its turn.
        self.flows.iter_mut().max_by_key(|flow| flow.lane.bytes())?.lane.pop()
    }

    /// Removes the next packet in turn. Returns the packet and whether to mark it; see [`Codel::pop`].
    pub(super) fn pop(
        &mut self,
        now: Time,
        discarded: &mut Vec<WaitingPacket>,
    ) -> Option<(WaitingPacket, bool)> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let number = *list.front()?;
            let flow = &mut self.flows[number as usize];
            // The flow has used up its turn. It goes to the end of the old ones with a new quantum.
            if flow.credit <= 0 {
                flow.credit += i64::from(self.config.quantum_bytes);
                list.pop_front();
                self.old.push_back(number);
                continue;
            }
            if let Some((packet, marked)) = flow.codel.pop(&self.config.codel, now, &mut flow.lane, discarded)
            {
                // The credit may become negative: a packet larger than the quantum takes bytes of later turns.
                flow.credit -= i64::from(packet.wire_bytes);
                return Some((packet, marked));
            }
            list.pop_front();
            // An empty new queue waits for its turn among the old ones, so that it cannot be new again at once.
            if is_new && !self.old.is_empty() {
                self.old.push_back(number);
            } else {
                flow.is_listed = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(place: u32, wire_bytes: u32) -> WaitingPacket {
        WaitingPacket { place, arrived: Time::ZERO, wire_bytes, is_markable: false }
    }

    fn order(queue: &mut FqCodel) -> Vec<u32> {
        std::iter::from_fn(|| queue.pop(Time::ZERO, &mut Vec::new()))
            .map(|(packet, _)| packet.place)
            .collect()
    }

    #[test]
    fn fq_codel_serves_a_quantum_of_each_queue_in_turn_and_sparse_flows_first() {
        let mut queue = FqCodel::new(FqCodelConfig { quantum_bytes: 300, ..FqCodelConfig::RFC_8290 });
        // Flow 1 has small packets, flow 2 large ones. Three small ones are a quantum.
        (0..6).for_each(|n| queue.push(packet(10 + n, 100), 1));
        (0..3).for_each(|n| queue.push(packet(20 + n, 300), 2));
        let first = queue.pop(Time::ZERO, &mut Vec::new());
        assert_eq!(first.map(|(packet, _)| packet.place), Some(10));
        let next: Vec<_> = (0..3)
            .filter_map(|_| queue.pop(Time::ZERO, &mut Vec::new()))
            .map(|(packet, _)| packet.place)
            .collect();
        assert_eq!(next, [11, 12, 20]);
        // Both are old now. A flow that comes is new.
        queue.push(packet(30, 100), 3);
        assert_eq!(order(&mut queue), [30, 13, 14, 15, 21, 22]);
    }

    #[test]
    fn fq_codel_drops_from_the_longest_queue_if_the_buffer_is_full() {
        let mut queue = FqCodel::new(FqCodelConfig::RFC_8290);
        queue.push(packet(1, 100), 1);
        (0..3).for_each(|n| queue.push(packet(20 + n, 100), 2));
        assert_eq!(queue.pop_longest().map(|packet| packet.place), Some(20));
        assert_eq!(order(&mut queue), [1, 21, 22]);
        assert_eq!(queue.pop_longest(), None);
    }
}
