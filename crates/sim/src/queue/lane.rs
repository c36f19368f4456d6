//! Packets that wait, first in, first out.

use std::collections::VecDeque;

use crate::Time;

/// A packet that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitingPacket {
    /// The index of the packet in the store of its queue.
    pub(crate) place: u32,
    /// The time at which the packet arrived.
    pub(crate) arrived: Time,
    /// The length on the wire, in bytes.
    pub(crate) wire_bytes: u32,
    /// True if the packet is marked instead of dropped: its hop marks packets, and this one is ECN-capable.
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

    /// Returns the total length of all packets on the wire, in bytes.
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
