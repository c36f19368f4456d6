//! A server's conversation with one client.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use coap_numbers::{code, option};
use coapace_proto::block::{Assembled, BERT, Block, MAX_SZX, Slice};
use coapace_proto::stream::Signal;
use coapace_proto::{Code, Kind, Message, Options, Token};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::connection::{Connection, Received};
use super::server::{Core, closed};
use super::wire::Ended;
use crate::handler::{Called, panicked};
use crate::identity::Peer;
use crate::terms::Terms;
use crate::{Rejection, Response};

/// One connection of a server.
pub(super) struct Talk {
    core: Arc<Core>,
    connection: Connection,
    peer: Peer,
    /// What has come and was not looked at yet: of one reading.
    arrived: VecDeque<Received>,
    /// Handlers that wait, and observations that do.
    handlers: JoinSet<Answer>,
    /// The observations among these.
    observed: HashMap<Token, AbortHandle>,
}

/// What a handler says.
struct Answer {
    terms: Terms,
    /// Nothing if it has panicked.
    response: Option<Response>,
    watch: Option<Watch>,
}

/// What an observer is told again and again.
struct Watch {
    changes: watch::Receiver<u64>,
    code: Code,
    tail: Vec<u8>,
}

impl Talk {
    pub(super) fn new(core: Arc<Core>, connection: Connection, peer: Peer) -> Self {
        Self {
            core,
            connection,
            peer,
            arrived: VecDeque::new(),
            handlers: JoinSet::new(),
            observed: HashMap::new(),
        }
    }

    /// Answers until the client goes, or is asked to.
    pub(super) async fn run(mut self) {
        let ended = self.converse().await;
        match ended {
            Err(Ended::Broken(_)) => self.core.shared.counters().aborted += 1,
            Err(Ended::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                self.core.shared.counters().aborted += 1;
            }
            Err(Ended::Io(error)) if error.kind() == io::ErrorKind::TimedOut => {
                self.core.shared.counters().stalled += 1;
                return;
            }
            Err(Ended::Io(_) | Ended::Aborted) => return,
            Ok(()) => {}
        }
        // What was wrong is told if that is still possible.
        let _ = tokio::time::timeout(Duration::from_secs(1), self.connection.close()).await;
    }

    async fn converse(&mut self) -> Result<(), Ended> {
        let mut closing = self.core.shared.closing.subscribe();
        let idle_timeout = self.core.config.idle_timeout;
        let mut idle = Box::pin(tokio::time::sleep(idle_timeout));
        let (mut open, mut pinged) = (true, false);
        loop {
            // Who does not listen is not heard.
            while !self.connection.is_full()
                && let Some(each) = self.arrived.pop_front()
            {
                open &= self.take(each);
            }
            if !open {
                self.observed.drain().for_each(|(_, handle)| handle.abort());
                if self.handlers.is_empty() && self.arrived.is_empty() && self.connection.is_written() {
                    return Ok(());
                }
            }
            let full = self.connection.is_full();
            let hear = open && !full && self.arrived.is_empty();
            let Self { connection, arrived, handlers, .. } = self;
            tokio::select! {
                turned = connection.turn(hear, |each| arrived.push_back(each)) => {
                    if turned? {
                        pinged = false;
                        idle.as_mut().reset(Instant::now() + idle_timeout);
                    }
                }
                Some(done) = handlers.join_next(), if !handlers.is_empty() && !full => {
                    if let Ok(answer) = done {
                        self.settle(answer);
                    }
                }
                () = &mut idle, if open => {
                    idle.as_mut().reset(Instant::now() + idle_timeout);
                    // Whoever waits for an answer is not idle. Who observes may be gone.
                    if self.observed.len() < self.handlers.len() {
                        continue;
                    }
                    if pinged || self.observed.is_empty() {
                        self.core.shared.counters().idle += 1;
                        self.connection.signal(Signal::Release, Token::EMPTY);
                        open = false;
                    } else {
                        self.connection.signal(Signal::Ping { custody: false }, Token::EMPTY);
                        pinged = true;
                    }
                }
                () = closed(&mut closing), if open => {
                    self.connection.signal(Signal::Release, Token::EMPTY);
                    open = false;
                }
            }
        }
    }

    /// Takes what has arrived. Returns whether more may come.
    fn take(&mut self, arrived: Received) -> bool {
        match arrived {
            Received::Message(code, token, tail) if matches!(code.0, 1..32) => {
                self.core.shared.counters().requests += 1;
                // Over a connection every request is confirmed.
                let message = Message { code, token, tail: &tail, ..Message::empty(Kind::Confirmable, 0) };
                self.request(&message);
                true
            }
            Received::Release => false,
            // An empty message says that somebody is there (RFC 8323 §3.4); no request of ours waits for others.
            Received::Message(..) | Received::Pong(_) => true,
        }
    }

    fn request(&mut self, message: &Message<'_>) {
        let block2 = message.block2_reliable();
        let mut terms = Terms::of(message, block2);
        let now = self.core.clock.now();
        let core = self.core.clone();
        let mut bodies = core.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        if block2.is_some_and(|block| block.num() > 0) {
            match bodies.responses.get(now, self.peer.remote, terms.operation) {
                Some(response) => {
                    drop(bodies);
                    return self.answer(&terms, response);
                }
                // Once more does no harm, and is the only way where nothing could be kept.
                None if message.code.0 == code::GET => {}
                None => {
                    return self.push(&terms, &Response::new(Code(code::REQUEST_ENTITY_INCOMPLETE)));
                }
            }
        }
        let mut whole = Vec::new();
        let mut request = *message;
        match bodies.requests.handle(now, self.peer.remote, message) {
            Assembled::Answer { code, tail } => {
                return self.connection.push(code, message.token, tail.as_bytes());
            }
            Assembled::Whole { block: None, .. } => {}
            Assembled::Whole { body, block } => {
                terms.block1 = block;
                Options::of(message).without(option::BLOCK1).without(option::SIZE1).write(&body, &mut whole);
                request.tail = &whole;
            }
        }
        drop(bodies);
        let watch = self.register(&request, block2);
        let called = self.core.call(&self.peer, &request);
        match called {
            Called::Ready(response) => self.settle(Answer { terms, response: Some(response), watch }),
            Called::Panicked => self.settle(Answer { terms, response: None, watch }),
            Called::Pending(_) if self.pending() >= self.core.config.max_pending as usize => {
                self.core.shared.counters().refused += 1;
                let seconds = u32::try_from(self.core.config.retry_after.as_secs()).unwrap_or(u32::MAX);
                self.push(&terms, &Rejection::unavailable(seconds).into());
            }
            Called::Pending(rest) => {
                let observes = watch.is_some();
                let handle =
                    self.handlers.spawn(async move { Answer { terms, response: rest.await, watch } });
                if observes {
                    self.observed.insert(terms.token, handle);
                }
            }
        }
    }

    /// Handlers that somebody waits for.
    fn pending(&self) -> usize {
        self.handlers.len().saturating_sub(self.observed.len())
    }

    /// What a request says of observation (RFC 7641, RFC 8323 §7). If there is no room, it is answered as if it had not
    /// asked.
    fn register(&mut self, request: &Message<'_>, block2: Option<Block>) -> Option<Watch> {
        if request.code.0 != code::GET || block2.is_some_and(|block| block.num() > 0) {
            return None;
        }
        let asked = request.observe()?;
        if let Some(before) = self.observed.remove(&request.token) {
            before.abort();
        }
        let max_observers = self.core.config.profile.config.max_observers as usize;
        if asked != 0 || self.observed.len() >= max_observers {
            return None;
        }
        let router = self.core.router.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = router.observable(request)?.changes();
        let mut tail = Vec::new();
        let options = Options::of(request).without(option::OBSERVE).without(option::NO_RESPONSE);
        options.write(request.payload(), &mut tail);
        Some(Watch { changes, code: request.code, tail })
    }

    /// Answers what a handler has said, and goes on with the observation if it was one.
    fn settle(&mut self, answer: Answer) {
        let Answer { mut terms, response, watch } = answer;
        let again = self.observed.remove(&terms.token).is_some();
        let response = response.unwrap_or_else(|| {
            self.core.shared.counters().panics += 1;
            panicked()
        });
        let Some(watch) = watch.filter(|_| response.is_success()) else {
            return self.answer(&terms, response);
        };
        // Its number means nothing where notifications keep their order (RFC 8323 §7.1), but aiocoap and go-coap take none
        // whose number does not grow.
        terms.observed = Some(terms.observed.map_or(1, |last| last % 0xff_ffff + 1));
        self.core.shared.counters().notifications += u64::from(again);
        self.answer(&terms, response);
        let next = watch.next(self.core.clone(), self.peer.clone(), terms);
        let handle = self.handlers.spawn(next);
        self.observed.insert(terms.token, handle);
    }

    /// Answers a request on its terms.
    fn answer(&mut self, terms: &Terms, response: Response) {
        if terms.suppresses(response.code) {
            return;
        }
        let asked = terms.block2.filter(|_| response.is_success());
        let options = terms.block1.into_iter().fold(response.options.clone(), Options::block1);
        let options = terms.observed.into_iter().fold(options, Options::observe);
        let (room, blocks) = (self.connection.room(), self.connection.blocks());
        let mut tail = Vec::new();
        options.write(&[], &mut tail);
        let left = room.saturating_sub(tail.len());
        let fits = asked.is_none() && response.payload.len() < left;
        let bert = asked.map_or(blocks == Some(true), |block| block.szx() == BERT);
        if fits {
            return self.push(terms, &Response { options, ..response });
        }
        // A client that did not speak of blocks may know them all the same (RFC 8323 §5.3.2).
        let slice = if bert {
            Slice::reliable(&response.payload, asked, left)
        } else {
            Slice::new(&response.payload, asked, MAX_SZX)
        };
        let Some(slice) = slice else {
            return self.push(terms, &Response::new(Code(code::BAD_REQUEST)));
        };
        let last = asked.map_or(0, Block::offset) + slice.payload.len() == response.payload.len();
        tail.clear();
        slice.options(options).write(slice.payload, &mut tail);
        self.push_encoded(terms, response.code, &tail);
        let (now, to) = (self.core.clock.now(), Some(self.peer.remote));
        let mut bodies = self.core.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        match terms.block2.is_none_or(|block| block.num() == 0) {
            true if !last => bodies.responses.put(now, to, terms.operation, response),
            false if last => bodies.responses.take(to, terms.operation),
            _ => {}
        }
    }

    /// Queues a response as it is.
    fn push(&mut self, terms: &Terms, response: &Response) {
        let mut tail = Vec::new();
        response.options.write(&response.payload, &mut tail);
        self.push_encoded(terms, response.code, &tail);
    }

    fn push_encoded(&mut self, terms: &Terms, code: Code, tail: &[u8]) {
        if tail.len() <= self.connection.room() {
            self.connection.push(code, terms.token, tail);
        } else {
            self.core.shared.counters().too_large += 1;
            self.connection.push(panicked().code, terms.token, &[]);
        }
    }
}

impl Watch {
    /// What the handler says after the next change. It ends with the resource.
    async fn next(mut self, core: Arc<Core>, peer: Peer, terms: Terms) -> Answer {
        let response = if self.changes.changed().await.is_ok() {
            let request =
                Message { code: self.code, tail: &self.tail, ..Message::empty(Kind::Confirmable, 0) };
            match core.call(&peer, &request) {
                Called::Ready(response) => Some(response),
                Called::Panicked => None,
                Called::Pending(rest) => rest.await,
            }
        } else {
            Some(Response::new(Code(code::SERVICE_UNAVAILABLE)))
        };
        Answer { terms, response, watch: Some(self) }
    }
}

impl Core {
    fn call(&self, peer: &Peer, request: &Message<'_>) -> Called {
        let mut router = self.router.lock().unwrap_or_else(PoisonError::into_inner);
        router.call(peer.clone(), request)
    }
}
