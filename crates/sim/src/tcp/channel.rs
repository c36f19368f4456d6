//! CoAP messages over a socket.

use coapace_proto::Token;
use coapace_proto::stream::{Broken, Decoder, Signal, StreamMessage};
use smoltcp::socket::tcp::Socket;

/// Bytes the longest signal that is an answer takes: a Pong with a token of eight bytes, an Abort.
const SIGNAL_BYTES: usize = 16;

/// One end's view of a connection that carries CoAP.
#[derive(Debug)]
pub(super) struct Channel {
    decoder: Decoder,
    /// Messages on their way into the socket.
    outbox: Vec<u8>,
    max_message_bytes: u32,
    csm_sent: bool,
    /// The peer's CSM has come: requests may be sent (RFC 8323 §5.3 allows earlier ones, libcoap waits).
    pub(super) csm_received: bool,
    /// The peer wants the connection to end, or has broken it.
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
            over: false,
        }
    }

    /// Says what we are able to do, once, when the connection stands.
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

    /// Writes one message; false if the socket has no room for all of it.
    pub(super) fn send(&mut self, socket: &mut Socket<'_>, message: &StreamMessage<'_>) -> bool {
        self.outbox.clear();
        message.write(&mut self.outbox).is_ok()
            && room(socket) >= self.outbox.len()
            && socket.send_slice(&self.outbox).is_ok()
    }

    /// Reads what has come. Signals are dealt with here; every other message goes to `take`, which may append an
    /// answer of up to `answer_bytes` bytes. What the socket has no room to answer stays unread.
    ///
    /// # Errors
    /// [`Broken`], after an Abort was sent: the connection is to be closed.
    pub(super) fn read(
        &mut self,
        socket: &mut Socket<'_>,
        answer_bytes: usize,
        mut take: impl FnMut(&StreamMessage<'_>, &mut Vec<u8>),
    ) -> Result<(), Broken> {
        while !self.over && socket.can_recv() && room(socket) >= answer_bytes.max(SIGNAL_BYTES) {
            self.outbox.clear();
            let Self { decoder, outbox, csm_received, over, .. } = self;
            let read = socket.recv(|input| match decoder.read(input) {
                Ok((used, None)) => (used, Ok(())),
                Ok((used, Some(message))) => {
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
                Err(broken) => (input.len(), Err(broken)),
            });
            // An error of the socket is the end of the connection, which its state tells.
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

/// Bytes the send buffer still takes.
fn room(socket: &Socket<'_>) -> usize {
    socket.send_capacity() - socket.send_queue()
}
