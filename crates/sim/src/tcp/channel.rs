//! CoAP messages over a socket.

use coapace_proto::Token;
use coapace_proto::stream::{Broken, Decoder, Signal, StreamMessage};
use smoltcp::socket::tcp::Socket;

/// The length of the longest signal that answers a message: a Pong with a token of eight bytes, or an Abort.
const SIGNAL_BYTES: usize = 16;

/// The CoAP messages that one end of a connection sends and receives.
#[derive(Debug)]
pub(super) struct Channel {
    decoder: Decoder,
    /// Encoded messages that are about to be written to the socket.
    outbox: Vec<u8>,
    max_message_bytes: u32,
    csm_sent: bool,
    /// True if the peer's CSM has come, so that requests may be sent. RFC 8323 §5.3 allows requests before that, but
    /// libcoap waits.
    pub(super) csm_received: bool,
    /// The number of bytes read. The caller takes it, and resets it to zero.
    pub(super) read_bytes: u64,
    /// True if the connection has to end: the peer ends it, the peer has sent something that is not CoAP, or a message
    /// of this end found no room.
    pub(super) over: bool,
}

impl Channel {
    pub(super) fn new(max_message_bytes: u32) -> Self {
        Self {
            decoder: Decoder::new(max_message_bytes),
            outbox: Vec::new(),
            max_message_bytes,
            csm_sent: false,
            csm_received: false,
            read_bytes: 0,
            over: false,
        }
    }

    /// Sends the CSM if the connection is established and the CSM has not been sent yet.
    pub(super) fn greet(&mut self, socket: &mut Socket<'_>) {
        if !self.csm_sent && socket.may_send() {
            self.csm_sent = true;
            let max_message_size = Some(self.max_message_bytes);
            self.send_signal(
                socket,
                Signal::Csm { max_message_size, block_wise_transfer: false },
                Token::EMPTY,
            );
        }
    }

    /// Writes a message. Returns false if the socket has no room for all of it.
    pub(super) fn send(&mut self, socket: &mut Socket<'_>, message: &StreamMessage<'_>) -> bool {
        self.outbox.clear();
        message.write(&mut self.outbox).is_ok()
            && room(socket) >= self.outbox.len()
            && socket.send_slice(&self.outbox).is_ok()
    }

    /// Reads the messages that have come, and handles signals. Passes every other message to `take`, which may append an answer
    /// of up to `answer_bytes` bytes. A message stays unread while the socket has no room for its answer.
    ///
    /// # Errors
    /// Returns [`Broken`] after sending an Abort. The caller closes the connection.
    pub(super) fn read(
        &mut self,
        socket: &mut Socket<'_>,
        answer_bytes: usize,
        mut take: impl FnMut(&StreamMessage<'_>, &mut Vec<u8>),
    ) -> Result<(), Broken> {
        // A message is read only if its answer has room, so no answer is ever lost.
        while !self.over && socket.can_recv() && room(socket) >= answer_bytes.max(SIGNAL_BYTES) {
            self.outbox.clear();
            let Self { decoder, outbox, csm_received, read_bytes, over, .. } = self;
            let read = socket.recv(|input| match decoder.read(input) {
                Ok((used, None)) => {
                    *read_bytes += used as u64;
                    (used, Ok(()))
                }
                Ok((used, Some(message))) => {
                    *read_bytes += used as u64;
                    let dealt = Signal::read(&message).map(|signal| match signal {
                        None => take(&message, outbox),
                        Some(Signal::Csm { .. }) => *csm_received = true,
                        Some(Signal::Ping { custody }) => {
                            Signal::Pong { custody }.write(message.token, outbox);
                        }
                        Some(Signal::Pong { .. }) => {}
                        Some(Signal::Release | Signal::Abort { .. }) => *over = true,
                    });
                    (used, dealt)
                }
                // The rest cannot be cut into messages any more, so all of it is thrown away.
                Err(broken) => (input.len(), Err(broken)),
            });
            // An error of the socket is the end of the connection, which the caller sees in the socket's state.
            let Ok(dealt) = read else { return Ok(()) };
            if let Err(broken) = dealt {
                self.over = true;
                self.send_signal(socket, broken.abort(), Token::EMPTY);
                return Err(broken);
            }
            if !self.outbox.is_empty() && socket.send_slice(&self.outbox).is_err() {
                self.over = true;
            }
        }
        Ok(())
    }

    fn send_signal(&mut self, socket: &mut Socket<'_>, signal: Signal, token: Token) {
        self.outbox.clear();
        signal.write(token, &mut self.outbox);
        if room(socket) < self.outbox.len() || socket.send_slice(&self.outbox).is_err() {
            self.over = true;
        }
    }
}

/// Returns the free room of the send buffer, in bytes.
fn room(socket: &Socket<'_>) -> usize {
    socket.send_capacity() - socket.send_queue()
}
