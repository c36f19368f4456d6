//! Messages in a stream of bytes (RFC 8323 §3.2): TCP, and TLS over it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use coapace_proto::stream::{Decoder, StreamMessage};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::MAX_MESSAGE;
use super::wire::{ByteStream, ConnectionEnd, Wire};

/// The maximum number of bytes that are read at once, and the maximum number of messages (`MESSAGES`) that are handled
/// at once: the bytes may contain thousands of short messages.
const READ: usize = 8_192;
const MESSAGES: usize = 32;

/// The number of bytes that may stay in the queue after they were written. Above this, they are removed once they are
/// half of the queue. An empty queue keeps at most this much memory.
const WRITTEN: usize = 64 << 10;

/// A stream of bytes, cut into messages.
#[derive(Debug)]
pub(crate) struct ByteWire {
    stream: Box<dyn ByteStream>,
    decoder: Decoder,
    /// The bytes that were read but not handled yet.
    read: Bytes,
    /// The bytes to be written, from `written` on.
    out: Vec<u8>,
    written: usize,
    /// Whether the stream must be flushed.
    unflushed: bool,
}

impl ByteWire {
    pub(crate) fn new(stream: Box<dyn ByteStream>) -> Self {
        Self {
            stream,
            decoder: Decoder::new(MAX_MESSAGE),
            read: Bytes::new(),
            out: Vec::new(),
            written: 0,
            unflushed: false,
        }
    }
}

impl Wire for ByteWire {
    fn push(&mut self, message: &StreamMessage<'_>) {
        // Writing fails only for messages of more than four gigabytes, which no peer takes.
        let _ = message.write(&mut self.out);
    }

    fn queued(&self) -> usize {
        // Bytes that are written but not flushed may still be in TLS, so the queue does not count as empty.
        self.out.len() - self.written + usize::from(self.unflushed)
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest @ [_, ..]) = self.out.get(self.written..) {
            match ready!(Pin::new(&mut self.stream).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => {
                    self.written += count;
                    self.unflushed = true;
                    // Moving the rest to the front costs less than half of the bytes were written for.
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
        each: &mut dyn FnMut(StreamMessage<'_>) -> Result<(), ConnectionEnd>,
    ) -> Poll<Result<(), ConnectionEnd>> {
        if self.read.is_empty() {
            let mut bytes = [0; READ];
            let mut buffer = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
            // Zero bytes are the end of the stream.
            if buffer.filled().is_empty() {
                return Poll::Ready(Err(ConnectionEnd::Io(io::ErrorKind::UnexpectedEof.into())));
            }
            self.read = Bytes::copy_from_slice(buffer.filled());
        }
        // The rest waits in `read`, so that one connection does not keep a core from others.
        for _ in 0..MESSAGES {
            let (used, message) = self.decoder.read(&self.read)?;
            message.map(&mut *each).transpose()?;
            self.read.advance(used);
            if self.read.is_empty() {
                // The memory is given back.
                self.read = Bytes::new();
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}
