//! The common interface of the two ways to carry complete messages: a stream of bytes, and a WebSocket.

use std::fmt;
use std::io;
use std::task::{Context, Poll};

use coapace_proto::stream::{Broken, StreamMessage};
use tokio::io::{AsyncRead, AsyncWrite};

/// The reason why a connection has ended.
#[derive(Debug)]
pub(crate) enum ConnectionEnd {
    /// An error of the system, of TLS or of the WebSocket.
    Io(io::Error),
    /// The peer violated the protocol, and will be sent an Abort (RFC 8323 §5.6).
    Broken(Broken),
    /// The peer has sent an Abort.
    Aborted,
}

impl From<io::Error> for ConnectionEnd {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Broken> for ConnectionEnd {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

/// Reads and writes whole messages.
pub(crate) trait Wire: Send + fmt::Debug {
    /// Queues a message.
    fn push(&mut self, message: &StreamMessage<'_>);

    /// Returns the number of queued bytes. The number is 0 only once all bytes are written.
    fn queued(&self) -> usize;

    /// Writes the queued messages. The poll is ready when all are written. [`queued`](Self::queued) shows the progress.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Closes the sending direction.
    fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Reads some messages, or none, and calls `each` with them.
    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        each: &mut dyn FnMut(StreamMessage<'_>) -> Result<(), ConnectionEnd>,
    ) -> Poll<Result<(), ConnectionEnd>>;
}

/// A stream of bytes: TCP, or TLS over it.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin + fmt::Debug {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + fmt::Debug> ByteStream for T {}
