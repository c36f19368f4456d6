//! A server's conversation with one client.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use coap_numbers::{code, option};
use coapace_proto::block::{Assembled, BERT, Block, MAX_SZX, Slice};
use coapace_proto::stream::Signal;
use coapace_proto::{Code, Kind, Message, Options, Token};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::PATIENCE;
use super::connection::{Connection, Received};
use super::observers::{Observer, Observers};
use super::places::{Doing, Place};
use super::server::{Core, closed};
use super::share::{ANSWER, Share};
use super::wire::Ended;
use crate::access::{self, AccessLog};
use crate::handler::{Called, panicked};
use crate::identity::Peer;
use crate::terms::Terms;
use crate::{Rejection, Response};

/// One connection of a server.
pub(super) struct Talk {
    core: Arc<Core>,
    connection: Connection,
    peer: Peer,
    place: Place,
    share: Share,
    /// What has come and was not looked at yet: of one reading.
    arrived: VecDeque<Received>,
    /// Handlers that wait for something.
    handlers: JoinSet<Answer>,
    /// The requests that are not answered.
    access: AccessLog<Token>,
    observers: Observers,
}

/// What a handler says.
struct Answer {
    terms: Terms,
    /// Nothing if it has panicked.
    response: Option<Response>,
    observer: Option<Observer>,
}

impl Talk {
    pub(super) fn new(core: Arc<Core>, connection: Connection, peer: Peer, place: Place) -> Self {
        let share = Share::new(core.config.budget.pool.clone());
        Self {
            core,
            connection,
            peer,
            place,
            share,
            arrived: VecDeque::new(),
            handlers: JoinSet::new(),
            access: AccessLog::default(),
            observers: Observers::default(),
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
        let mut idle = Box::pin(tokio::time::sleep(PATIENCE.min(idle_timeout)));
        let (mut open, mut pinged) = (true, false);
        loop {
            open &= self.go_on(open);
            if !open && self.handlers.is_empty() && self.arrived.is_empty() && self.connection.is_written() {
                return Ok(());
            }
            let full = self.connection.is_full();
            let hear = open && !full && self.arrived.is_empty();
            let Self { connection, arrived, handlers, observers, place, .. } = self;
            tokio::select! {
                turned = connection.turn(hear, |each| arrived.push_back(each)) => {
                    if turned? {
                        pinged = false;
                        place.heard();
                        let patience = if connection.is_greeted() { idle_timeout } else { PATIENCE };
                        idle.as_mut().reset(Instant::now() + patience.min(idle_timeout));
                    }
                }
                Some(done) = handlers.join_next(), if !handlers.is_empty() && !full => {
                    if let Ok(answer) = done {
                        self.settle(answer);
                    }
                }
                () = observers.changed(), if observers.are_watching() => {}
                () = place.left() => {
                    self.core.shared.counters().evicted += 1;
                    self.connection.signal(Signal::Release, Token::EMPTY);
                    return Ok(());
                }
                () = &mut idle, if open => {
                    idle.as_mut().reset(Instant::now() + idle_timeout);
                    // Whoever waits for an answer is not idle. Who observes may be gone.
                    if !self.handlers.is_empty() {
                        continue;
                    }
                    if pinged || self.observers.is_empty() {
                        self.core.shared.counters().idle += 1;
                        self.connection.signal(Signal::Release, Token::EMPTY);
                        open = false;
                    } else {
                        self.connection.signal(Signal::Ping { custody: false }, Token::EMPTY);
                        pinged = true;
                    }
                }
                () = closed(&mut closing), if open => {
                    self.dismiss_observers();
                    self.connection.signal(Signal::Release, Token::EMPTY);
                    open = false;
                }
            }
        }
    }

    /// Answers what has arrived and tells observers, as long as there is room for what comes of it. A client that does not
    /// listen is not heard, and no handler is called for it. Returns whether more may come.
    fn go_on(&mut self, mut open: bool) -> bool {
        if !open {
            self.observers.end_all(&mut self.share);
        }
        while self.has_room() {
            if let Some(each) = self.arrived.pop_front() {
                open &= self.take(each);
            } else if let Some(observer) = self.observers.next_due() {
                self.tell(observer);
            } else {
                break;
            }
        }
        let doing = match () {
            () if !self.connection.is_greeted() => Doing::Opening,
            () if self.handlers.is_empty() && self.observers.is_empty() => Doing::Idle,
            () => Doing::Busy,
        };
        self.place.set(doing);
        open
    }

    /// Whether one more answer may be made.
    fn has_room(&mut self) -> bool {
        self.share.set_answers(self.connection.queued() + self.handlers.len() * ANSWER);
        !self.connection.is_full() && self.share.has_room()
    }

    /// Sends every observer its last notification: the server ends (RFC 7641 §4.2).
    fn dismiss_observers(&mut self) {
        let seconds = u32::try_from(self.core.config.retry_after.as_secs()).unwrap_or(u32::MAX);
        let farewell = Response::from(Rejection::unavailable(seconds));
        let mut tail = Vec::new();
        farewell.options.write(&farewell.payload, &mut tail);
        for token in self.observers.end_all(&mut self.share) {
            self.connection.push(farewell.code, token, &tail);
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
        if access::is_wanted() {
            let (transport, identity) = (self.core.transport, self.peer.identity.clone());
            let peer = self.peer.remote.address();
            self.access.note(message.token, transport, peer, identity, message);
        }
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
                return self.push_encoded(&terms, code, tail.as_bytes());
            }
            Assembled::Whole { block: None, .. } => {}
            Assembled::Whole { body, block } => {
                terms.block1 = block;
                Options::of(message).without(option::BLOCK1).without(option::SIZE1).write(&body, &mut whole);
                request.tail = &whole;
            }
        }
        drop(bodies);
        let observer = self.register(&request, terms);
        let called = self.core.call(&self.peer, &request);
        self.called(terms, observer, called);
    }

    /// Goes on with what a handler has said, or is to say.
    fn called(&mut self, terms: Terms, observer: Option<Observer>, called: Called) {
        match called {
            Called::Ready(response) => self.settle(Answer { terms, response: Some(response), observer }),
            Called::Panicked => self.settle(Answer { terms, response: None, observer }),
            Called::Pending(rest) => {
                self.handlers.spawn(async move { Answer { terms, response: rest.await, observer } });
            }
        }
    }

    /// What a request says of observation (RFC 7641, RFC 8323 §7). If there is no room, it is answered as if it had not
    /// asked.
    fn register(&mut self, request: &Message<'_>, terms: Terms) -> Option<Observer> {
        if request.code.0 != code::GET || terms.block2.is_some_and(|block| block.num() > 0) {
            return None;
        }
        let asked = request.observe()?;
        self.observers.end(&mut self.share, request.token);
        let router = self.core.router.lock().unwrap_or_else(PoisonError::into_inner);
        let resource = router.observable(request).filter(|_| asked == 0)?;
        let room = self.observers.len() < self.core.config.profile.config.max_observers as usize;
        let begin = || self.observers.begin(&mut self.share, resource, request, terms);
        let observer = room.then(begin).flatten();
        self.core.shared.counters().observers_refused += u64::from(observer.is_none());
        observer
    }

    /// Calls the handler of a resource that has changed.
    fn tell(&mut self, mut observer: Observer) {
        self.core.shared.counters().notifications += 1;
        let terms = observer.terms;
        let called = match observer.request() {
            Some(request) => self.core.call(&self.peer, &request),
            None => Called::Ready(Response::new(Code(code::SERVICE_UNAVAILABLE))),
        };
        self.called(terms, Some(observer), called);
    }

    /// Answers what a handler has said, and goes on with the observation if it was one.
    fn settle(&mut self, answer: Answer) {
        let Answer { mut terms, response, observer } = answer;
        let response = response.unwrap_or_else(|| {
            self.core.shared.counters().panics += 1;
            panicked()
        });
        let Some(mut observer) = observer else { return self.answer(&terms, response) };
        if !self.observers.has(&observer) {
            // It has asked for no more, or again, in the meantime. The first answer it gets all the same.
            return if terms.observed.is_none() {
                self.answer(&terms, response);
            };
        }
        if !response.is_success() {
            self.observers.end(&mut self.share, terms.token);
            return self.answer(&terms, response);
        }
        // Its number means nothing where notifications keep their order (RFC 8323 §7.1), but aiocoap and go-coap take none
        // whose number does not grow.
        terms.observed = Some(terms.observed.map_or(1, |last| last % 0xff_ffff + 1));
        observer.terms = terms;
        self.answer(&terms, response);
        self.observers.watch(observer);
    }

    /// Answers a request on its terms.
    fn answer(&mut self, terms: &Terms, response: Response) {
        if terms.suppresses(response.code) {
            return self.access.answered(&terms.token, None, 0);
        }
        let (room, blocks) = (self.room(), self.connection.blocks());
        let response = if response.size() > room { response.with_etag() } else { response };
        let asked = terms.block2.filter(|_| response.is_success());
        let options = terms.block1.into_iter().fold(response.options.clone(), Options::block1);
        let options = terms.observed.into_iter().fold(options, Options::observe);
        let mut tail = Vec::new();
        options.write(&[], &mut tail);
        let left = room.saturating_sub(tail.len());
        let is_whole = response.representation().is_whole();
        let fits = asked.is_none() && is_whole && response.payload.len() < left;
        let bert = asked.map_or(blocks == Some(true), |block| block.szx() == BERT);
        if fits {
            return self.push(terms, &Response { options, ..response });
        }
        // A client that did not speak of blocks may know them all the same (RFC 8323 §5.3.2).
        let slice = if bert {
            Slice::reliable_of(response.representation(), asked, left)
        } else {
            Slice::of(response.representation(), asked, MAX_SZX)
        };
        let Some(slice) = slice else {
            return self.push(terms, &Response::new(Code(code::BAD_REQUEST)));
        };
        let last = asked.map_or(0, Block::offset) + slice.payload.len() == response.size();
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

    /// The most bytes of options and payload in a message to the client: no more than is taken from it, for what it has to
    /// take lies in memory here until then.
    fn room(&self) -> usize {
        self.connection.room().min(ANSWER)
    }

    /// Queues a response as it is.
    fn push(&mut self, terms: &Terms, response: &Response) {
        let mut tail = Vec::new();
        response.options.write(&response.payload, &mut tail);
        self.push_encoded(terms, response.code, &tail);
    }

    fn push_encoded(&mut self, terms: &Terms, code: Code, tail: &[u8]) {
        let (code, tail) = if tail.len() <= self.room() {
            (code, tail)
        } else {
            self.core.shared.counters().too_large += 1;
            (panicked().code, &[][..])
        };
        self.connection.push(code, terms.token, tail);
        self.access.answered(&terms.token, Some(code), tail.len());
    }
}

impl Core {
    fn call(&self, peer: &Peer, request: &Message<'_>) -> Called {
        let mut router = self.router.lock().unwrap_or_else(PoisonError::into_inner);
        router.call(peer.clone(), request)
    }
}
