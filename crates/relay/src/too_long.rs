//! Messages that are longer than the relay accepts, and so truncated.

use std::net::SocketAddr;

use coapace_control::Instant;
use coapace_proto::{Code, Event, Message, Options};

use crate::{Face, Relay};

/// The size in an answer 4.13, in bytes: the size of the largest block, so that a datagram has space for options.
const BLOCK: u32 = 1_024;

impl Relay {
    /// Handles the start of a datagram that arrived at `face` and is too long. A request is answered 4.13, with the size of a
    /// block. A response is forwarded as 5.02; the relay cannot request the rest, because the request has had its effect.
    pub fn handle_too_long(&mut self, now: Instant, face: Face, source: SocketAddr, bytes: &[u8]) {
        self.counts.too_long += 1;
        let Some(head @ &[first, code, high, low, ref token @ ..]) = Message::head(bytes) else { return };
        let code = Code(code);
        if code.is_request() {
            // The endpoint recognises copies, which get the same answer.
            let event = self.half(face).endpoint.handle_datagram(now, source, head);
            if let Some(Event::Request { responder, .. }) = event {
                let why = b"too long for one datagram; send the body in blocks (Block1)";
                let tail = Options::default().size1(BLOCK).tail(why).unwrap_or_default();
                self.answer(now, face, responder, Code::REQUEST_ENTITY_TOO_LARGE, tail.as_bytes());
            }
        } else if code.is_response() {
            let why = b"\xffthe response is too long for one datagram; ask for blocks (Block2)";
            // Type, Message ID and token are kept, so the exchange accepts this as its response.
            let instead = [&[first, Code::BAD_GATEWAY.0, high, low], token, why].concat();
            self.handle_datagram(now, face, source, &instead);
        }
    }
}
