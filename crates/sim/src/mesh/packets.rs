//! Datagrams under way in a mesh: their bytes lie here once, whichever nodes hold a fragment of them.

use super::Content;
use super::frame::Datagram;
use crate::{Mark, NodeId};

/// Where a datagram lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PacketId(pub(super) u32);

/// A datagram.
#[derive(Debug)]
pub(super) struct Packet {
    pub(super) source: NodeId,
    /// `None`: all on the link.
    pub(super) dest: Option<NodeId>,
    pub(super) mark: Mark,
    pub(super) bytes: Vec<u8>,
    pub(super) is_icmpv6: bool,
    /// Frames and reassemblies that it is part of.
    holders: u32,
}

/// All datagrams under way.
#[derive(Debug, Default)]
pub(super) struct Packets {
    slots: Vec<Packet>,
    free: Vec<u32>,
}

/// Bytes that an empty slot keeps room for.
const KEPT_CAPACITY: usize = 1_280;

impl Packets {
    /// Puts a datagram away, held once.
    pub(super) fn insert(
        &mut self,
        source: NodeId,
        dest: Option<NodeId>,
        mark: Mark,
        is_icmpv6: bool,
        bytes: &[u8],
    ) -> PacketId {
        let slot = self.free.pop().unwrap_or_else(|| {
            let empty = Packet { source, dest, mark, bytes: Vec::new(), is_icmpv6, holders: 0 };
            self.slots.push(empty);
            self.slots.len() as u32 - 1
        });
        let packet = &mut self.slots[slot as usize];
        (packet.source, packet.dest, packet.mark) = (source, dest, mark);
        (packet.is_icmpv6, packet.holders) = (is_icmpv6, 1);
        packet.bytes.clear();
        packet.bytes.extend_from_slice(bytes);
        PacketId(slot)
    }

    pub(super) fn get(&self, id: PacketId) -> &Packet {
        &self.slots[id.0 as usize]
    }

    /// One more holds it.
    pub(super) fn hold(&mut self, id: PacketId) {
        self.slots[id.0 as usize].holders += 1;
    }

    /// One less does. The last to let go frees its place.
    pub(super) fn release(&mut self, id: PacketId) {
        let packet = &mut self.slots[id.0 as usize];
        packet.holders -= 1;
        if packet.holders == 0 {
            if packet.bytes.capacity() > KEPT_CAPACITY {
                packet.bytes = Vec::new();
            }
            self.free.push(id.0);
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

impl Packet {
    pub(super) fn datagram(&self) -> Datagram<'_> {
        let content = if self.is_icmpv6 { Content::Icmpv6(&self.bytes) } else { Content::Udp(&self.bytes) };
        Datagram { source: self.source, dest: self.dest, content }
    }
}
