//! Messages one behind the other (RFC 8323 §3.2): TCP, and TLS over it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use coapace_proto::stream::{Decoder, StreamMessage};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::MAX_MESSAGE;
use super::wire::{ByteStream, Ended, Wire};

/// The bytes read at once, and the most messages taken from these at once. Thousands of the shortest are in them.
const READ: usize = 8_192;
const MESSAGES: usize = 32;

/// Bytes that were written are removed from the queue when they are more than these, and half of all. An empty queue keeps
/// no more memory than this.
const WRITTEN: usize = 64 << 10;

/// A stream of bytes, cut into messages.
#[derive(Debug)]
pub(crate) struct ByteWire {
    stream: Box<dyn ByteStream>,
    decoder: Decoder,
    /// The bytes read, of which those from `taken` on are left.
    read: Vec<u8>,
    taken: usize,
    /// The bytes to be written, from `written` on.
    out: Vec<u8>,
    written: usize,
    /// Set while the stream may hold some of it back.
    unflushed: bool,
}

impl ByteWire {
    pub(crate) fn new(stream: Box<dyn ByteStream>) -> Self {
        Self {
            stream,
            decoder: Decoder::new(MAX_MESSAGE),
            read: Vec::new(),
            taken: 0,
            out: Vec::new(),
            written: 0,
            unflushed: false,
        }
    }
}

impl Wire for ByteWire {
    fn push(&mut self, message: &StreamMessage<'_>) {
        // Writing fails beyond four gigabytes, and no peer takes so much.
        let _ = message.write(&mut self.out);
    }

    fn queued(&self) -> usize {
        self.out.len() - self.written + usize::from(self.unflushed)
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest @ [_, ..]) = self.out.get(self.written..) {
            match ready!(Pin::new(&mut self.stream).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => {
                    self.written += count;
                    self.unflushed = true;
                    if self.written >= WRITTEN.max(self.out.len() / 2) {
                        self.out.drain(..self.written);
                        self.written = 0;
                    }
                }
            }
        }
        self.out.clear();
        self.out.shrink_to(WRITTEN);
        self.written = 0;
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.unflushed = false;
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        each: &mut dyn FnMut(StreamMessage<'_>) -> Result<(), Ended>,
    ) -> Poll<Result<(), Ended>> {
        if self.taken == self.read.len() {
            let mut bytes = [0; READ];
            let mut buffer = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
            if buffer.filled().is_empty() {
                return Poll::Ready(Err(Ended::Io(io::ErrorKind::UnexpectedEof.into())));
            }
            (self.read, self.taken) = (buffer.filled().to_vec(), 0);
        }
        for _ in 0..MESSAGES {
            let Some(rest @ [_, ..]) = self.read.get(self.taken..) else { break };
            let (used, message) = self.decoder.read(rest)?;
            self.taken += used;
            message.map(&mut *each).transpose()?;
        }
        if self.taken == self.read.len() {
            (self.read, self.taken) = (Vec::new(), 0);
        }
        Poll::Ready(Ok(()))
    }
}
