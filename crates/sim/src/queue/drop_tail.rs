//! A drop-tail buffer and the transmitter behind it, computed without events.

use crate::fifo::Fifo;
use crate::rate::{Rate, Transmitter};
use crate::{Accounting, Span, Time};

/// A buffer and the transmitter behind it. Its packets are the waiting ones of a [`Fifo`].
#[derive(Debug)]
pub(crate) struct DropTailQueue {
    pub(crate) transmitter: Transmitter,
    pub(crate) capacity_bytes: u64,
    pub(crate) queue_bytes: u64,
    /// The end of the present transmission, when the next packet leaves the buffer.
    pub(crate) free_at: Time,
}

impl DropTailQueue {
    pub(crate) fn new(rate: Rate) -> Self {
        Self {
            transmitter: Transmitter::new(rate),
            capacity_bytes: rate.capacity_bytes,
            queue_bytes: 0,
            free_at: Time::ZERO,
        }
    }

    /// Removes the packets from the buffer whose transmission has begun by `now`. Such a moment needs no event of its own,
    /// because it has no effect but room in the buffer. It is enough to call this before the buffer is looked at.
    pub(crate) fn begin_transmissions(
        &mut self,
        now: Time,
        delay: Span,
        fifo: &mut Fifo,
        accounting: Accounting,
    ) {
        while self.free_at <= now {
            let Some(next) = fifo.waiting() else { break };
            let wire_bytes = accounting.wire_bytes(next.transport(), next.length());
            self.queue_bytes -= u64::from(wire_bytes);
            self.free_at = next.due - delay;
            fifo.set_out(next.length());
        }
    }
}
