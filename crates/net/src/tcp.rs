//! `coap+tcp`: one connection and its messages (RFC 8323), for clients and servers.

use std::io;
use std::time::Duration;

use coapace_proto::stream::{Broken, Decoder, Message, Signal};
use coapace_proto::{Code, Token, stream};
use tokio::net::TcpStream;

/// The largest message that is taken, in bytes (RFC 8323 §5.3.1): what the places of a route's parameters reach.
pub(crate) const MAX_MESSAGE: u32 = 65_535;

/// How long a peer may take nothing of what is sent to it.
const STALLED: Duration = Duration::from_secs(30);

/// Bytes read at once.
const READ: usize = 8_192;

/// A connection: whole messages in, whole messages out.
///
/// Nothing is read while something is to be written: who does not listen is not heard.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    decoder: Decoder,
    /// To be written.
    out: Vec<u8>,
    /// The largest message the peer takes, in bytes.
    max_message_size: u32,
    /// The peer's CSM has come.
    greeted: bool,
}

/// What has come.
#[derive(Debug)]
pub(crate) enum Received {
    /// A request, response or empty message.
    Message(Code, Token, Vec<u8>),
    /// The answer to a ping with this token.
    Pong(Token),
    /// The peer wants to end: no new requests.
    Release,
}

impl Connection {
    /// Takes a connection over, and says what this side is able to do.
    pub(crate) fn new(stream: TcpStream) -> Self {
        // Messages are whole; to wait for more of them helps nobody.
        let _ = stream.set_nodelay(true);
        let mut out = Vec::new();
        let csm = Signal::Csm { max_message_size: Some(MAX_MESSAGE), block_wise_transfer: false };
        csm.write(Token::EMPTY, &mut out);
        let decoder = Decoder::new(MAX_MESSAGE);
        let max_message_size = stream::BASE_MAX_MESSAGE_SIZE;
        Self { stream, decoder, out, max_message_size, greeted: false }
    }

    /// Whether the peer takes a message with so many bytes of options and payload.
    pub(crate) fn takes(&self, tail: usize) -> bool {
        // Lengths, code and token are up to 14 bytes.
        tail + 14 <= self.max_message_size as usize
    }

    /// Whether so much is queued that it should be written first.
    pub(crate) fn is_full(&self) -> bool {
        self.out.len() >= MAX_MESSAGE as usize
    }

    /// Whether the peer has said what it is able to do.
    pub(crate) fn is_greeted(&self) -> bool {
        self.greeted
    }

    /// Queues a message.
    pub(crate) fn push(&mut self, code: Code, token: Token, tail: &[u8]) {
        // It is too long only beyond four gigabytes, which `takes` has ruled out.
        let _ = Message { code, token, tail }.write(&mut self.out);
    }

    /// Queues a signal.
    pub(crate) fn signal(&mut self, signal: Signal, token: Token) {
        signal.write(token, &mut self.out);
    }

    /// Writes what is queued.
    ///
    /// # Errors
    /// Those of the system, and [`TimedOut`](io::ErrorKind::TimedOut) if the peer takes nothing.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        let mut written = 0;
        while let Some(rest @ [_, ..]) = self.out.get(written..) {
            match self.stream.try_write(rest) {
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    tokio::time::timeout(STALLED, self.stream.writable()).await??;
                }
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        Ok(())
    }

    /// Waits until something has come, and takes it. To be dropped at will.
    ///
    /// # Errors
    /// Those of the system, [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if the peer has closed, and
    /// [`InvalidData`](io::ErrorKind::InvalidData) if it does not keep to the protocol, which it is told (RFC 8323 §5.6)
    /// with the next [`flush`](Self::flush).
    pub(crate) async fn receive(&mut self, each: impl FnMut(Received)) -> io::Result<()> {
        let mut bytes = [0; READ];
        let count = loop {
            self.stream.readable().await?;
            match self.stream.try_read(&mut bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => break count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        };
        self.read(&bytes[..count], each).map_err(|broken| {
            if let Some(broken) = broken {
                broken.abort().write(Token::EMPTY, &mut self.out);
            }
            io::ErrorKind::InvalidData.into()
        })
    }

    /// Cuts bytes into messages. Fails with nothing if the peer has aborted.
    fn read(&mut self, mut bytes: &[u8], mut each: impl FnMut(Received)) -> Result<(), Option<Broken>> {
        while !bytes.is_empty() {
            let Self { decoder, out, max_message_size, greeted, .. } = self;
            let (used, message) = decoder.read(bytes).map_err(Some)?;
            bytes = &bytes[used..];
            let Some(message) = message else { continue };
            let signal = Signal::read(&message).map_err(Some)?;
            // The first message is a CSM (RFC 8323 §5.3).
            if !*greeted && !matches!(signal, Some(Signal::Csm { .. })) {
                return Err(Some(Broken::Malformed));
            }
            match signal {
                Some(Signal::Csm { max_message_size: size, .. }) => {
                    *greeted = true;
                    *max_message_size = size.unwrap_or(*max_message_size);
                }
                Some(Signal::Ping { .. }) => Signal::Pong { custody: false }.write(message.token, out),
                Some(Signal::Pong { .. }) => each(Received::Pong(message.token)),
                Some(Signal::Release) => each(Received::Release),
                Some(Signal::Abort { .. }) => return Err(None),
                // A detail that nobody has defined.
                None if message.code.0 >> 5 == 7 => {}
                None => each(Received::Message(message.code, message.token, message.tail.to_vec())),
            }
        }
        Ok(())
    }
}
