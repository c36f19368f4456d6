//! Packets that wait, first in, first out.

use std::collections::VecDeque;

use crate::Time;

/// A packet that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitingPacket {
    /// Its place in the store of the queue.
    pub(crate) place: u32,
    /// The moment at which it came.
    pub(crate) arrived: Time,
    /// Its bytes on the wire.
    pub(crate) wire_bytes: u32,
    /// Whether it is marked in place of being dropped: the hop marks, and the packet is ECN-capable.
    pub(crate) is_markable: bool,
}

/// Packets in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct PacketLane {
    packets: VecDeque<WaitingPacket>,
    bytes: u64,
}

impl PacketLane {
    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    /// Returns the bytes on the wire of all packets.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn push(&mut self, packet: WaitingPacket) {
        self.bytes += u64::from(packet.wire_bytes);
        self.packets.push_back(packet);
    }

    pub(super) fn pop(&mut self) -> Option<WaitingPacket> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.wire_bytes);
        Some(packet)
    }
}
