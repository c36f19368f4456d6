//! Replies that wait to be sent: acknowledgements, Resets, piggybacked and non-confirmable responses.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// A bounded queue of encoded messages.
#[derive(Debug)]
pub(crate) struct Outbox<A> {
    /// The address and the length of each message.
    queue: VecDeque<(A, u32)>,
    /// The bytes of all messages, one after the other. The bytes before `sent` were sent.
    bytes: Vec<u8>,
    sent: usize,
    /// The number of messages that did not fit in the queue.
    pub(crate) dropped: u64,
}

impl<A> Default for Outbox<A> {
    fn default() -> Self {
        Self { queue: VecDeque::new(), bytes: Vec::new(), sent: 0, dropped: 0 }
    }
}

impl<A> Outbox<A> {
    /// Queues the message that `write` appends, unless `bound` messages wait. Returns whether it was queued.
    pub(crate) fn push(&mut self, bound: u32, to: A, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        if self.queue.len() >= bound as usize {
            self.dropped += 1;
            return false;
        }
        // Most bytes are sent, so moving the others to the front costs less than they took to write.
        if self.sent > self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.queue.push_back((to, (self.bytes.len() - start) as u32));
        true
    }

    /// Moves the bytes of the oldest message to the end of `buffer`. Returns its destination; `None` if no message
    /// waits.
    pub(crate) fn pop(&mut self, buffer: &mut Vec<u8>) -> Option<A> {
        let (to, len) = self.queue.pop_front()?;
        // `push` may have moved the bytes to the front, and `sent` with them.
        let end = self.sent + len as usize;
        buffer.extend_from_slice(self.bytes.get(self.sent..end).unwrap_or(&[]));
        self.sent = end;
        Some(to)
    }
}
