//! Datagrams under way in a mesh: their bytes lie here once, whichever nodes hold a fragment of them.

use super::Content;
use super::frame::Datagram;
use super::rpl::Message;
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
    /// What RPL says in it; `None` is a datagram of CoAP.
    pub(super) message: Option<Message>,
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
        bytes: &[u8],
    ) -> PacketId {
        let id = self.take();
        let packet = &mut self.slots[id.0 as usize];
        (packet.source, packet.dest, packet.mark) = (source, dest, mark);
        packet.bytes.extend_from_slice(bytes);
        id
    }

    /// Puts away what RPL says to a neighbour or to all, held once; its bytes are still to be written.
    pub(super) fn insert_message(
        &mut self,
        source: NodeId,
        dest: Option<NodeId>,
        message: Message,
    ) -> PacketId {
        let id = self.insert(source, dest, Mark::default(), &[]);
        self.slots[id.0 as usize].message = Some(message);
        id
    }

    /// An empty slot.
    fn take(&mut self) -> PacketId {
        let slot = self.free.pop().unwrap_or_else(|| {
            let (source, dest, mark) = (NodeId(0), None, Mark::default());
            self.slots.push(Packet { source, dest, mark, bytes: Vec::new(), message: None, holders: 0 });
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
        let content = match self.message {
            Some(_) => Content::Icmpv6(&self.bytes),
            None => Content::Udp(&self.bytes),
        };
        Datagram { source: self.source, dest: self.dest, content }
    }
}
