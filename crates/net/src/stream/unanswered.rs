//! The unanswered requests of a client's connection.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use coap_numbers::option;
use coapace_proto::stream::Signal;
use coapace_proto::{Code, Kind, Message, Token};

use super::MAX_OUTSTANDING;
use super::connection::{Connection, Received};
use crate::clock::Clock;
use crate::receivers::Receivers;
use crate::{Error, Response};

/// A request for a connection. It is a ping if the code is 0.00.
#[derive(Debug)]
pub(crate) struct StreamRequest {
    pub(super) code: Code,
    pub(super) token: Token,
    /// Options and payload of the request.
    pub(super) tail: Vec<u8>,
    pub(super) since: Instant,
    pub(super) receivers: Receivers,
}

impl StreamRequest {
    pub(crate) fn new(code: Code, token: Token, tail: Vec<u8>) -> Self {
        Self { code, token, tail, since: Instant::now(), receivers: Receivers::default() }
    }

    /// Returns whether a request may be sent on another connection if this one ends without an answer: it changes nothing (RFC
    /// 7252 §5.8.1), and does not start an observation.
    pub(super) fn may_repeat(&self) -> bool {
        matches!(self.code, Code::GET | Code::FETCH) && self.receivers.inbox.is_none()
    }
}

/// The unanswered requests, by token.
#[derive(Debug)]
pub(super) struct Unanswered {
    requests: HashMap<Token, StreamRequest>,
    /// Whether the server has answered a request on this connection.
    pub(super) has_answered: bool,
    clock: Clock,
}

impl Unanswered {
    pub(super) fn new(clock: Clock) -> Self {
        Self { requests: HashMap::new(), has_answered: false, clock }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub(super) fn into_requests(self) -> impl Iterator<Item = StreamRequest> {
        self.requests.into_values()
    }

    /// Queues a request, and keeps it until it is answered. The request fails if the server does not accept a message
    /// of this size.
    pub(super) fn send(&mut self, connection: &mut Connection, mut request: StreamRequest) {
        // Requests that no task waits for any more are removed.
        if self.requests.len() >= MAX_OUTSTANDING {
            self.requests.retain(|_, request| request.receivers.are_waiting());
        }
        if request.code == Code::EMPTY {
            connection.signal(Signal::Ping { custody: false }, request.token);
        } else if request.tail.len() <= connection.limits.room() {
            connection.push(request.code, request.token, &request.tail);
        } else {
            let bytes = request.tail.len();
            request.receivers.end(Err(Error::TooLarge { bytes }));
            return;
        }
        if request.receivers.are_waiting() {
            // The bytes are kept only for a request that another connection may carry.
            if !request.may_repeat() {
                request.tail = Vec::new();
            }
            self.requests.insert(request.token, request);
        } else {
            self.requests.remove(&request.token);
        }
    }

    /// Handles a received message. Returns `false` if the server takes no more requests.
    pub(super) fn take(&mut self, connection: &mut Connection, arrived: Received) -> bool {
        match arrived {
            Received::Message(code, token, tail) if code.is_response() => self.answer(token, code, &tail),
            // The server may send requests, too (RFC 8323 §2). This client has no resources.
            Received::Message(code, token, _) if code.is_request() => {
                connection.push(Code::NOT_IMPLEMENTED, token, &[]);
            }
            // Empty messages (RFC 8323 §3.4) and messages with reserved codes are ignored.
            Received::Message(..) => {}
            Received::Pong(token) => {
                let known = self.requests.contains_key(&token);
                // The Pong of libcoap has no token.
                let other = self.requests.values().find(|request| !known && request.code == Code::EMPTY);
                let token = other.map_or(token, |ping| ping.token);
                self.answer(token, Code::EMPTY, &[]);
            }
            Received::Release => return false,
        }
        true
    }

    /// Passes a response to the task that waits for it.
    fn answer(&mut self, token: Token, code: Code, tail: &[u8]) {
        let Some(StreamRequest { since, receivers, .. }) = self.requests.get_mut(&token) else { return };
        self.has_answered = true;
        let message = Message { code, tail, ..Message::empty(Kind::Acknowledgement, 0) };
        let elapsed = if receivers.first.is_some() { since.elapsed() } else { Duration::ZERO };
        let response = match message.first_unrecognised(&[option::BLOCK1, option::BLOCK2]) {
            Some(number) => Err(Error::BadOption(number)),
            None => Ok(Response::of(&message, elapsed, 1)),
        };
        if !receivers.receive(self.clock.now(), &message, true, response) {
            self.requests.remove(&token);
        }
    }
}
