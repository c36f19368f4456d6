//! Packets that are delayed out of order.

use crate::packet::Header;

/// Packets that are delayed out of order. Each has an event of its own. Places and buffers are used again.
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
            buffer.extend_from_slice(bytes);
            return index;
        }
        self.places.push((*packet, bytes.to_vec()));
        (self.places.len() - 1) as u32
    }

    /// Lends a packet out, to be given [`back`](Self::give_back).
    pub(crate) fn take(&mut self, index: u32) -> (Header, Vec<u8>) {
        let (header, buffer) = &mut self.places[index as usize];
        (*header, std::mem::take(buffer))
    }

    /// Frees the place of a packet, and takes its buffer back.
    pub(crate) fn give_back(&mut self, index: u32, mut buffer: Vec<u8>) {
        buffer.clear();
        self.places[index as usize].1 = buffer;
        self.free.push(index);
    }
}
