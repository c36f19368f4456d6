//! Messages one behind the other (RFC 8323 §3.2): TCP, and TLS over it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use coapace_proto::stream::{Decoder, Message};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::MAX_MESSAGE;
use super::wire::{ByteStream, Ended, Wire};

/// Bytes read at once.
const READ: usize = 8_192;

/// A stream of bytes, cut into messages.
#[derive(Debug)]
pub(crate) struct Bytes {
    stream: Box<dyn ByteStream>,
    decoder: Decoder,
    /// To be written, from `written` on.
    out: Vec<u8>,
    written: usize,
    /// The stream may hold some of it back.
    unflushed: bool,
}

impl Bytes {
    pub(crate) fn new(stream: Box<dyn ByteStream>) -> Self {
        Self { stream, decoder: Decoder::new(MAX_MESSAGE), out: Vec::new(), written: 0, unflushed: false }
    }
}

impl Wire for Bytes {
    fn push(&mut self, message: &Message<'_>) {
        // It fails beyond four gigabytes, and the peer was asked whether it takes so much.
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
                }
            }
        }
        self.out.clear();
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
        each: &mut dyn FnMut(Message<'_>) -> Result<(), Ended>,
    ) -> Poll<Result<(), Ended>> {
        let mut bytes = [0; READ];
        let mut buffer = ReadBuf::new(&mut bytes);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
        let mut rest = buffer.filled();
        if rest.is_empty() {
            return Poll::Ready(Err(Ended::Io(io::ErrorKind::UnexpectedEof.into())));
        }
        while !rest.is_empty() {
            let (used, message) = self.decoder.read(rest)?;
            rest = &rest[used..];
            message.map(&mut *each).transpose()?;
        }
        Poll::Ready(Ok(()))
    }
}
