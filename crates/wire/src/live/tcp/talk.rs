//! CoAP messages over a TCP connection of the operating system (RFC 8323).

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use coapace_proto::Token;
use coapace_proto::stream::{BASE_MAX_MESSAGE_SIZE, Decoder, Signal, StreamMessage};

/// The longest wait for bytes before the next check for an interruption.
const PATIENCE: Duration = Duration::from_millis(100);

/// One end of a connection.
pub(super) struct ConnectionEndpoint {
    stream: TcpStream,
    decoder: Decoder,
    input: Vec<u8>,
    /// The range of `input` that is received but not decoded yet.
    unread: std::ops::Range<usize>,
    output: Vec<u8>,
    /// Whether the peer's CSM has arrived.
    pub(super) is_greeted: bool,
}

impl ConnectionEndpoint {
    /// Takes over a connection and sends the CSM. Without `nagle`, short segments are not held back by Nagle's
    /// algorithm.
    pub(super) fn begin(stream: TcpStream, nagle: bool) -> io::Result<Self> {
        stream.set_nodelay(!nagle)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut talk = Self {
            stream,
            decoder: Decoder::new(BASE_MAX_MESSAGE_SIZE),
            input: vec![0; 4096],
            unread: 0..0,
            output: Vec::new(),
            is_greeted: false,
        };
        let csm = Signal::Csm { max_message_size: Some(BASE_MAX_MESSAGE_SIZE), block_wise_transfer: false };
        csm.write(Token::EMPTY, &mut talk.output);
        talk.flush()?;
        Ok(talk)
    }

    /// Sends a message.
    pub(super) fn send(&mut self, message: &StreamMessage<'_>) -> io::Result<()> {
        message.write(&mut self.output).map_err(|_| io::ErrorKind::InvalidInput)?;
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        let written = self.stream.write_all(&self.output);
        self.output.clear();
        written
    }

    /// Waits for bytes, for a tenth of a second at most, and passes the messages that are complete to `take`, which may append an
    /// answer. Handles signals itself.
    ///
    /// # Errors
    /// Errors of the connection, and its end.
    pub(super) fn read(&mut self, mut take: impl FnMut(&StreamMessage<'_>, &mut Vec<u8>)) -> io::Result<()> {
        if self.unread.is_empty() {
            match self.stream.read(&mut self.input) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.unread = 0..length,
                // Nothing came in time: the caller looks for an interruption and reads again.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
                    ) =>
                {
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        // A segment may end within a message. The decoder keeps that part until the rest comes.
        while !self.unread.is_empty() {
            let broken = |_| io::Error::from(io::ErrorKind::InvalidData);
            let (used, message) = self.decoder.read(&self.input[self.unread.clone()]).map_err(broken)?;
            self.unread.start += used;
            let Some(message) = message else { continue };
            match Signal::read(&message).map_err(broken)? {
                None => take(&message, &mut self.output),
                Some(Signal::Csm { .. }) => self.is_greeted = true,
                // The Pong has the token of its Ping (RFC 8323 §5.4).
                Some(Signal::Ping { custody }) => {
                    Signal::Pong { custody }.write(message.token, &mut self.output);
                }
                Some(Signal::Pong { .. }) => {}
                // The peer is about to close the connection (RFC 8323 §5.5, §5.6).
                Some(Signal::Release | Signal::Abort { .. }) => {
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
            }
            if !self.output.is_empty() {
                self.flush()?;
            }
        }
        Ok(())
    }
}
