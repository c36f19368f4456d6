//! Packets with random delays outside a queue, so that they overtake each other.

use crate::packet::Header;

/// Packets with random delays outside a queue, so that they overtake each other. Each packet has an event of its own.
/// Slots and buffers are reused.
#[derive(Debug, Default)]
pub(crate) struct Scattered {
    places: Vec<(Header, Vec<u8>)>,
    free: Vec<u32>,
}

impl Scattered {
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub(crate) fn insert(&mut self, packet: &Header, bytes: &[u8]) -> u32 {
        if let Some(index) = self.free.pop() {
            let (header, buffer) = &mut self.places[index as usize];
            *header = *packet;
            // `give_back` has cleared the buffer.
            buffer.extend_from_slice(bytes);
            return index;
        }
        self.places.push((*packet, bytes.to_vec()));
        (self.places.len() - 1) as u32
    }

    /// Takes a packet out of its slot. The caller frees the slot with [`give_back`](Self::give_back).
    pub(crate) fn take(&mut self, index: u32) -> (Header, Vec<u8>) {
        let (header, buffer) = &mut self.places[index as usize];
        (*header, std::mem::take(buffer))
    }

    /// Frees the slot of a packet, and keeps its buffer for the next one.
    pub(crate) fn give_back(&mut self, index: u32, mut buffer: Vec<u8>) {
        buffer.clear();
        self.places[index as usize].1 = buffer;
        self.free.push(index);
    }
}
