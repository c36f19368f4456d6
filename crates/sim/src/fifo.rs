//! A queue of packets, one behind the other in memory.

use std::collections::VecDeque;

use crate::packet::Header;

/// Packets in the sequence in which they arrived. Each packet is stored as a header and its bytes, in chunks of memory
/// that are reused.
///
/// The first packets of the queue have set out: their transmission has begun. The other packets wait.
#[derive(Debug, Default)]
pub(crate) struct Fifo {
    chunks: VecDeque<Chunk>,
    /// An empty chunk, kept for reuse. Further empty chunks are freed.
    spare: Option<Chunk>,
    /// The offset of the first packet in the first chunk, in bytes.
    head: usize,
    /// The index of the chunk with the first waiting packet, and the packet's offset in it.
    next: (usize, usize),
    packets: usize,
    waiting: usize,
}

#[derive(Debug)]
struct Chunk {
    bytes: Box<[u8]>,
    filled: usize,
}

/// The size of a chunk in bytes: enough for the largest packet and its header.
const CHUNK: usize = 64 * 1024 + Header::BYTES;

impl Fifo {
    pub(crate) fn len(&self) -> usize {
        self.packets
    }

    /// Adds a packet at the end. The packet waits.
    #[inline]
    pub(crate) fn push(&mut self, header: &Header, bytes: &[u8]) {
        let size = Header::BYTES + bytes.len();
        // A packet is never split, so that its bytes are handed out as one slice.
        if self.chunks.back().is_none_or(|chunk| chunk.filled + size > CHUNK) {
            let fresh = || Chunk { bytes: vec![0; CHUNK].into_boxed_slice(), filled: 0 };
            self.chunks.push_back(self.spare.take().unwrap_or_else(fresh));
        }
        // Always true, as a chunk with room for the packet is at the back now; written so that nothing can panic.
        if let Some(chunk) = self.chunks.back_mut()
            && let Some((head, tail)) = chunk.bytes[chunk.filled..][..size].split_first_chunk_mut()
        {
            header.write(head);
            tail.copy_from_slice(bytes);
            chunk.filled += size;
            self.packets += 1;
            self.waiting += 1;
        }
    }

    /// Returns the first packet; `None` if the queue is empty.
    #[inline]
    pub(crate) fn head(&self) -> Option<(Header, &[u8])> {
        if self.packets == 0 {
            return None;
        }
        let bytes = self.chunks.front()?.bytes.get(self.head..)?;
        let (header, bytes) = bytes.split_first_chunk()?;
        let header = Header::read(header);
        Some((header, bytes.get(..header.length())?))
    }

    /// Removes the first packet, which has `length` bytes.
    #[inline]
    pub(crate) fn pop(&mut self, length: usize) {
        if self.packets == 0 {
            return;
        }
        // The packet leaves before its transmission has begun, so `next` has to pass it first.
        if self.waiting == self.packets {
            self.set_out(length);
        }
        self.packets -= 1;
        self.head += Header::BYTES + length;
        if self.chunks.front().is_some_and(|chunk| chunk.filled == self.head) {
            self.leave_chunk();
        }
    }

    /// Frees the first chunk after its last packet is removed.
    fn leave_chunk(&mut self) {
        self.head = 0;
        if self.packets == 0 {
            // An empty queue uses its chunk from the beginning again, which is still in the cache.
            self.next = (0, 0);
            if let Some(chunk) = self.chunks.front_mut() {
                chunk.filled = 0;
            }
        } else if let Some(mut chunk) = self.chunks.pop_front() {
            chunk.filled = 0;
            self.spare = Some(chunk);
            // If `next` was in that chunk it was at its end, which is the beginning of the next chunk.
            self.next = match self.next {
                (0, _) => (0, 0),
                (chunk, offset) => (chunk - 1, offset),
            };
        }
    }

    /// Returns the header of the first waiting packet; `None` if no packet waits.
    #[inline]
    pub(crate) fn waiting(&self) -> Option<Header> {
        if self.waiting == 0 {
            return None;
        }
        let (chunk, offset) = self.first_waiting();
        let header = self.chunks.get(chunk)?.bytes.get(offset..)?.first_chunk()?;
        Some(Header::read(header))
    }

    /// Begins the transmission of the first waiting packet, which has `length` bytes.
    #[inline]
    pub(crate) fn set_out(&mut self, length: usize) {
        if self.waiting > 0 {
            let (chunk, offset) = self.first_waiting();
            self.next = (chunk, offset + Header::BYTES + length);
            self.waiting -= 1;
        }
    }

    /// Returns the chunk and offset of the first waiting packet. If `next` is at the end of a chunk, this is the start
    /// of the following chunk.
    fn first_waiting(&self) -> (usize, usize) {
        let (chunk, offset) = self.next;
        let filled = self.chunks.get(chunk).map_or(0, |chunk| chunk.filled);
        if offset < filled { (chunk, offset) } else { (chunk + 1, 0) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::{Mark, NodeId, Transport};

    fn header(n: u32, length: u16) -> Header {
        Header::new(NodeId(n), NodeId(0), Mark { exchange: n, transmission: 1 }, Transport::Udp, length, 0)
    }

    proptest! {
        #[test]
        fn a_queue_returns_packets_in_the_sequence_they_were_put_in(
            steps in proptest::collection::vec((0u8..6, prop_oneof![0u16..200, 20_000u16..=u16::MAX]), 0..400),
        ) {
            let mut fifo = Fifo::default();
            let mut model = VecDeque::new();
            let mut waiting = 0;
            for (n, (verb, length)) in steps.into_iter().enumerate() {
                let n = n as u32;
                match verb {
                    0..3 => {
                        let bytes = vec![n as u8; usize::from(length)];
                        fifo.push(&header(n, length), &bytes);
                        model.push_back((header(n, length), bytes));
                        waiting += 1;
                    }
                    3 => {
                        fifo.set_out(fifo.waiting().map_or(0, |header| header.length()));
                        waiting = usize::saturating_sub(waiting, 1);
                    }
                    _ => {
                        fifo.pop(fifo.head().map_or(0, |(header, _)| header.length()));
                        model.pop_front();
                        waiting = waiting.min(model.len());
                    }
                }
                prop_assert_eq!(fifo.len(), model.len());
                prop_assert_eq!(fifo.head(), model.front().map(|(header, bytes)| (*header, &bytes[..])));
                let next = (waiting > 0).then(|| model[model.len() - waiting].0);
                prop_assert_eq!(fifo.waiting(), next);
            }
        }
    }

    #[test]
    fn an_empty_queue_keeps_at_most_two_chunks_of_memory() {
        let mut fifo = Fifo::default();
        for round in 0..10 {
            for n in 0..10_000 {
                fifo.push(&header(n, 65), &[0; 65]);
                if round % 2 == 0 {
                    fifo.pop(65);
                }
            }
            while fifo.len() > 0 {
                fifo.pop(65);
            }
        }
        assert!(fifo.chunks.len() + usize::from(fifo.spare.is_some()) <= 2);
    }
}
