//! A connection of RFC 8323, for clients and servers: messages, and the signals between them.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use coapace_proto::stream::{self, Broken, Signal, StreamMessage};
use coapace_proto::{Code, Token};
use tokio::time::{Instant, Sleep, sleep};

use super::wire::{ConnectionEnd, Wire};
use super::{MAX_MESSAGE, PATIENCE};

/// The longest header of a message over TCP: length, code and token, in bytes.
const HEAD: usize = 14;

/// The number of queued bytes above which no responses are added. The system has additional buffers.
const STOP_ADDING: usize = 16 << 10;

/// The number of queued bytes above which nothing more is read, because the peer does not read either.
const STOP_READING: usize = 4 * MAX_MESSAGE as usize;

/// A connection, and the capabilities of its peer.
#[derive(Debug)]
pub(crate) struct Connection {
    wire: Box<dyn Wire>,
    pub(super) limits: PeerLimits,
    /// Whether the peer's CSM has arrived.
    pub(super) greeted: bool,
    /// A timer that expires when the peer has read nothing for [`PATIENCE`], while something is queued for it.
    stalled: Option<Pin<Box<Sleep>>>,
}

/// The limits of a peer, from its CSM (RFC 8323 §5.3). Until it arrives, the default values apply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerLimits {
    /// The largest message the peer takes, in bytes.
    max_message_size: u32,
    /// Set if the peer supports block-wise transfers.
    block_wise: bool,
}

impl PeerLimits {
    /// Returns the maximum number of bytes of options and payload that the peer accepts in a message.
    pub(crate) fn room(self) -> usize {
        (self.max_message_size as usize).saturating_sub(HEAD)
    }

    /// Returns `None` if the peer does not support block-wise transfers. `Some(true)` means that it accepts many blocks
    /// in one message (BERT, RFC 8323 §6), and `Some(false)` only one.
    pub(crate) fn blocks(self) -> Option<bool> {
        self.block_wise.then_some(self.max_message_size > stream::BASE_MAX_MESSAGE_SIZE)
    }
}

/// A received message or signal.
#[derive(Debug)]
pub(crate) enum Received {
    /// A request, response or empty message.
    Message(Code, Token, Vec<u8>),
    /// The answer to a ping with this token.
    Pong(Token),
    /// The peer wants to close the connection: it takes no new requests.
    Release,
}

impl Connection {
    /// Starts a connection with a CSM.
    pub(crate) fn new(wire: Box<dyn Wire>) -> Self {
        let limits = PeerLimits { max_message_size: stream::BASE_MAX_MESSAGE_SIZE, block_wise: false };
        let mut this = Self { wire, limits, greeted: false, stalled: None };
        // Both options together announce BERT (RFC 8323 §5.3.2).
        let csm = Signal::Csm { max_message_size: Some(MAX_MESSAGE), block_wise_transfer: true };
        this.signal(csm, Token::EMPTY);
        this
    }

    /// Returns the number of bytes that are to be written.
    pub(crate) fn queued(&self) -> usize {
        self.wire.queued()
    }

    /// Returns whether so much is queued that no responses should be added.
    pub(crate) fn is_full(&self) -> bool {
        self.wire.queued() >= STOP_ADDING
    }

    /// Returns whether everything is written.
    pub(crate) fn is_written(&self) -> bool {
        self.wire.queued() == 0
    }

    /// Queues a message.
    pub(crate) fn push(&mut self, code: Code, token: Token, tail: &[u8]) {
        self.wire.push(&StreamMessage { code, token, tail });
    }

    /// Queues a signal.
    pub(crate) fn signal(&mut self, signal: Signal, token: Token) {
        let (code, tail) = signal.encode();
        self.push(code, token, &tail);
    }

    /// Writes the queue, and reads if `hear` is set, until something has arrived or the queue is empty. Returns whether
    /// something has arrived. The future may be dropped at any time.
    ///
    /// # Errors
    /// The end of the connection. If the peer violated the protocol, an Abort is queued, which [`close`](Self::close) sends.
    pub(crate) async fn turn(
        &mut self,
        hear: bool,
        mut each: impl FnMut(Received),
    ) -> Result<bool, ConnectionEnd> {
        let ended = poll_fn(|context| {
            // A peer that does not read gets nothing more to answer, so the queue stays bounded.
            let hear = hear && self.wire.queued() < STOP_READING;
            if hear && let Poll::Ready(read) = self.poll_read(context, &mut each) {
                return Poll::Ready(read.map(|()| true));
            }
            // The next turn writes the signals that reading has queued.
            let waiting = !self.is_written();
            match self.poll_write(context) {
                Poll::Ready(Err(error)) => Poll::Ready(Err(error.into())),
                Poll::Ready(Ok(())) if waiting => Poll::Ready(Ok(false)),
                _ => Poll::Pending,
            }
        })
        .await;
        if let Err(ConnectionEnd::Broken(broken)) = &ended {
            self.signal(broken.abort(), Token::EMPTY);
        }
        ended
    }

    /// Writes all that is queued, and closes the sending direction.
    ///
    /// # Errors
    /// The errors of the system, and [`TimedOut`](io::ErrorKind::TimedOut) if the peer takes nothing.
    pub(crate) async fn close(&mut self) -> io::Result<()> {
        poll_fn(|context| self.poll_write(context)).await?;
        poll_fn(|context| self.wire.poll_close(context)).await
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let before = self.wire.queued();
        let written = self.wire.poll_write(context);
        // Only a peer that leaves something in the queue is stalled.
        if written.is_ready() || before == 0 {
            self.stalled = None;
            return written;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(PATIENCE)));
        // The peer has taken something, so its time begins again.
        if self.wire.queued() < before {
            stalled.as_mut().reset(Instant::now() + PATIENCE);
        }
        stalled.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        each: &mut dyn FnMut(Received),
    ) -> Poll<Result<(), ConnectionEnd>> {
        let Self { wire, limits, greeted, .. } = self;
        let mut pings = Vec::new();
        let read = wire.poll_read(context, &mut |message| {
            let signal = Signal::read(&message)?;
            // The first message is a CSM (RFC 8323 §5.3).
            if !*greeted && !matches!(signal, Some(Signal::Csm { .. })) {
                return Err(Broken::Malformed.into());
            }
            match signal {
                Some(Signal::Csm { max_message_size: size, block_wise_transfer }) => {
                    *greeted = true;
                    // Options of several CSMs are cumulative, so one that is not repeated stays (RFC 8323 §5.3).
                    limits.block_wise |= block_wise_transfer;
                    limits.max_message_size = size.unwrap_or(limits.max_message_size);
                }
                Some(Signal::Ping { .. }) => pings.push(message.token),
                Some(Signal::Pong { .. }) => each(Received::Pong(message.token)),
                Some(Signal::Release) => each(Received::Release),
                Some(Signal::Abort { .. }) => return Err(ConnectionEnd::Aborted),
                // Unknown signals of class 7 are ignored.
                None if message.code.class() == 7 => {}
                None if !message.is_well_formed() => return Err(Broken::Malformed.into()),
                None => each(Received::Message(message.code, message.token, message.tail.to_vec())),
            }
            Ok(())
        });
        // Answered after reading, which borrows the wire.
        for token in pings {
            self.signal(Signal::Pong { custody: false }, token);
        }
        read
    }
}
