//! The two ways to carry whole messages.

use std::fmt;
use std::io;
use std::task::{Context, Poll};

use coapace_proto::stream::{Broken, StreamMessage};
use tokio::io::{AsyncRead, AsyncWrite};

/// The reason why nothing more comes.
#[derive(Debug)]
pub(crate) enum Ended {
    /// An error of the system, of TLS or of the WebSocket.
    Io(io::Error),
    /// The peer does not keep to the protocol, and has to be told (RFC 8323 §5.6).
    Broken(Broken),
    /// The peer has aborted.
    Aborted,
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Broken> for Ended {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

/// Whole messages in, whole messages out.
pub(crate) trait Wire: Send + fmt::Debug {
    /// Queues a message.
    fn push(&mut self, message: &StreamMessage<'_>);

    /// Bytes that are queued, and not 0 before all have left.
    fn queued(&self) -> usize;

    /// Writes what is queued. Ready when all of it has left; progress is what [`queued`](Self::queued) says.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Says that nothing more will be written.
    fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Reads some messages, perhaps none.
    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        each: &mut dyn FnMut(StreamMessage<'_>) -> Result<(), Ended>,
    ) -> Poll<Result<(), Ended>>;
}

/// A stream of bytes: TCP, or TLS over it.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin + fmt::Debug {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + fmt::Debug> ByteStream for T {}
