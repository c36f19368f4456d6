//! The datagrams in flight in a mesh. The bytes of each are stored once, however many nodes hold a fragment.

use super::Content;
use super::frame::Ipv6Packet;
use super::rpl::RplMessage;
use crate::{Mark, NodeId};

/// The index of a datagram in [`MeshPackets`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PacketId(pub(super) u32);

/// A datagram.
#[derive(Debug)]
pub(super) struct MeshPacket {
    pub(super) source: NodeId,
    /// The receiver; `None` is all neighbours.
    pub(super) dest: Option<NodeId>,
    pub(super) mark: Mark,
    pub(super) bytes: Vec<u8>,
    /// The RPL message that the datagram carries; `None` for a datagram of UDP.
    pub(super) message: Option<RplMessage>,
    /// The number of frames and reassemblies that refer to the datagram.
    holders: u32,
}

/// The store of all datagrams in flight in a mesh.
#[derive(Debug, Default)]
pub(super) struct MeshPackets {
    slots: Vec<MeshPacket>,
    free: Vec<u32>,
}

/// The largest buffer that an empty slot keeps, in bytes.
const KEPT_CAPACITY: usize = 1_280;

impl MeshPackets {
    /// Stores a datagram, with the caller as its only holder, and returns its index.
    pub(super) fn insert(
        &mut self,
        source: NodeId,
        dest: Option<NodeId>,
        mark: Mark,
        bytes: &[u8],
    ) -> PacketId {
        let id = self.take();
        let packet = &mut self.slots[id.0 as usize];
        (packet.source, packet.dest, packet.mark) = (source, dest, mark);
        packet.bytes.extend_from_slice(bytes);
        id
    }

    /// Stores a datagram for a message of RPL, with the caller as its only holder. The caller writes its bytes.
    pub(super) fn insert_message(
        &mut self,
        source: NodeId,
        dest: Option<NodeId>,
        message: RplMessage,
    ) -> PacketId {
        let id = self.insert(source, dest, Mark::default(), &[]);
        self.slots[id.0 as usize].message = Some(message);
        id
    }

    /// Returns an empty slot with one holder, reused or new.
    fn take(&mut self) -> PacketId {
        let slot = self.free.pop().unwrap_or_else(|| {
            // `insert` writes the three fields. They only fill the new slot here.
            let (source, dest, mark) = (NodeId(0), None, Mark::default());
            self.slots.push(MeshPacket { source, dest, mark, bytes: Vec::new(), message: None, holders: 0 });
            self.slots.len() as u32 - 1
        });
        let packet = &mut self.slots[slot as usize];
        (packet.message, packet.holders) = (None, 1);
        packet.bytes.clear();
        PacketId(slot)
    }

    pub(super) fn bytes_mut(&mut self, id: PacketId) -> &mut Vec<u8> {
        &mut self.slots[id.0 as usize].bytes
    }

    pub(super) fn get(&self, id: PacketId) -> &MeshPacket {
        &self.slots[id.0 as usize]
    }

    /// Adds a holder of a datagram, which keeps the datagram stored until the holder releases it.
    pub(super) fn hold(&mut self, id: PacketId) {
        self.slots[id.0 as usize].holders += 1;
    }

    /// Removes a holder of a datagram. The last one frees its slot.
    pub(super) fn release(&mut self, id: PacketId) {
        let packet = &mut self.slots[id.0 as usize];
        packet.holders -= 1;
        if packet.holders == 0 {
            // A slot keeps the memory of an ordinary datagram, and gives back more.
            if packet.bytes.capacity() > KEPT_CAPACITY {
                packet.bytes = Vec::new();
            }
            self.free.push(id.0);
        }
    }

    /// Returns the number of datagrams.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

impl MeshPacket {
    pub(super) fn datagram(&self) -> Ipv6Packet<'_> {
        let content = match self.message {
            Some(_) => Content::Icmpv6(&self.bytes),
            None => Content::Udp(&self.bytes),
        };
        Ipv6Packet { source: self.source, dest: self.dest, content }
    }
}
