//! The requests of a client's connection that are not answered.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use coapace_proto::stream::Signal;
use coapace_proto::{Code, Kind, Message, Token};
use tokio::sync::oneshot;

use super::MAX_OUTSTANDING;
use super::connection::{Connection, Received};
use crate::clock::Clock;
use crate::inbox::Inbox;
use crate::{Error, Response};

/// A request on its way to its connection, or a ping if the code is 0.00.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) code: Code,
    pub(super) token: Token,
    pub(super) tail: Vec<u8>,
    pub(super) since: Instant,
    /// The receiver of the first answer.
    pub(super) first: Option<oneshot::Sender<Result<Response, Error>>>,
    /// The inbox for notifications.
    pub(super) inbox: Option<Arc<Inbox>>,
}

impl Ask {
    fn is_wanted(&self) -> bool {
        self.inbox.is_some() || self.first.as_ref().is_some_and(|first| !first.is_closed())
    }

    pub(super) fn fail(self, error: Error) {
        match (self.first, self.inbox) {
            (Some(first), _) => drop(first.send(Err(error))),
            (None, Some(inbox)) => inbox.fail(error),
            (None, None) => {}
        }
    }
}

/// The requests, by token.
#[derive(Debug)]
pub(super) struct Unanswered {
    asks: HashMap<Token, Ask>,
    clock: Clock,
}

impl Unanswered {
    pub(super) fn new(clock: Clock) -> Self {
        Self { asks: HashMap::new(), clock }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.asks.is_empty()
    }

    pub(super) fn into_asks(self) -> impl Iterator<Item = Ask> {
        self.asks.into_values()
    }

    /// Sends a request.
    pub(super) fn send(&mut self, connection: &mut Connection, ask: Ask) {
        // Requests that nobody waits for any more make room.
        if self.asks.len() >= MAX_OUTSTANDING {
            self.asks.retain(|_, ask| ask.is_wanted());
        }
        if ask.code == Code::EMPTY {
            connection.signal(Signal::Ping { custody: false }, ask.token);
        } else if ask.tail.len() <= connection.room() {
            connection.push(ask.code, ask.token, &ask.tail);
        } else {
            let bytes = ask.tail.len();
            return ask.fail(Error::TooLarge { bytes });
        }
        if ask.is_wanted() {
            self.asks.insert(ask.token, Ask { tail: Vec::new(), ..ask });
        } else {
            self.asks.remove(&ask.token);
        }
    }

    /// Takes what has arrived. Returns `false` if the server wants no more requests.
    pub(super) fn take(&mut self, arrived: Received) -> bool {
        match arrived {
            Received::Message(code, token, tail) => self.answer(token, code, &tail),
            Received::Pong(token) => {
                // libcoap's has no token.
                let other = || self.asks.values().find(|ask| ask.code == Code::EMPTY).map(|ask| ask.token);
                let token = if self.asks.contains_key(&token) { Some(token) } else { other() };
                if let Some(token) = token {
                    self.answer(token, Code::EMPTY, &[]);
                }
            }
            Received::Release => return false,
        }
        true
    }

    /// Hands an answer to the task that waits for it.
    fn answer(&mut self, token: Token, code: Code, tail: &[u8]) {
        let Some(ask) = self.asks.get_mut(&token) else { return };
        let message = Message { code, tail, ..Message::empty(Kind::Acknowledgement, 0) };
        let (first, inbox) = (ask.first.take(), ask.inbox.clone());
        let elapsed = if first.is_some() { ask.since.elapsed() } else { Duration::ZERO };
        let response = Response::read(&message, elapsed, 1);
        let is_success = response.as_ref().is_ok_and(Response::is_success);
        let mut goes_on = inbox.is_some() && is_success && message.observe().is_some();
        if let (Some(inbox), Ok(response)) = (&inbox, &response) {
            let news = first.is_none().then(|| response.clone());
            inbox.put(self.clock.now(), &message, true, news);
        }
        match (first, inbox, response) {
            // The task that waited may have stopped a moment ago.
            (Some(first), _, response) => goes_on &= first.send(response).is_ok(),
            (None, Some(inbox), Err(error)) => inbox.fail(error),
            _ => {}
        }
        if !goes_on {
            self.asks.remove(&token);
        }
    }
}
