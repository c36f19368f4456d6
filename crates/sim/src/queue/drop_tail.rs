//! A drop-tail buffer and the transmitter behind it, computed without events.

use crate::fifo::Fifo;
use crate::rate::{Rate, Transmitter};
use crate::{Accounting, Span, Time};

/// A buffer and the transmitter behind it. The packets that wait in the buffer are stored in the [`Fifo`] of the hop.
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

    /// Removes from the buffer the packets whose transmission has begun by `now`. The beginning of a transmission needs
    /// no event of its own, because all it does is to free room in the buffer. Call this before reading the buffer.
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
            // `ActiveHop::enter` added the same size, so this cannot underflow.
            self.queue_bytes -= u64::from(wire_bytes);
            // `due` is the end of the transmission and the constant delay after it.
            self.free_at = next.due - delay;
            fifo.set_out(next.length());
        }
    }
}
