//! The requests and answers of one connection of a server.

use std::collections::VecDeque;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use coap_numbers::option;
use coapace_proto::stream::Signal;
use coapace_proto::{Code, Kind, Message, Token};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::PATIENCE;
use super::admission::{Admitted, Doing};
use super::connection::{Connection, Received};
use super::observers::{ConnectionObserver, ConnectionObservers};
use super::share::{ANSWER, MemoryShare};
use super::shared::Core;
use super::wire::ConnectionEnd;
use crate::Response;
use crate::access::{self, AccessLog};
use crate::conversation::{ResponseOutcome, ResponseTransport, ServerStep, Terms, Wish};
use crate::handler::{Called, or_panicked};
use crate::identity::IdentifiedPeer;
use crate::lock::lock;
use crate::router::refused;

/// One connection of a server.
pub(super) struct ServedConnection {
    core: Arc<Core>,
    connection: Connection,
    peer: IdentifiedPeer,
    admitted: Admitted,
    share: MemoryShare,
    /// The received messages that are not handled yet.
    arrived: VecDeque<Received>,
    /// Handlers that wait for something.
    handlers: JoinSet<HandlerResult>,
    /// The unanswered requests for the access log.
    access: AccessLog<Token>,
    observers: ConnectionObservers,
}

/// The result of a handler.
struct HandlerResult {
    terms: Terms,
    /// `None` if it has panicked.
    response: Option<Response>,
    observer: Option<ConnectionObserver>,
}

impl ServedConnection {
    pub(super) fn new(
        core: Arc<Core>,
        connection: Connection,
        peer: IdentifiedPeer,
        admitted: Admitted,
    ) -> Self {
        let share = MemoryShare::new(core.config.budget.pool.clone());
        Self {
            core,
            connection,
            peer,
            admitted,
            share,
            arrived: VecDeque::new(),
            handlers: JoinSet::new(),
            access: AccessLog::default(),
            observers: ConnectionObservers::default(),
        }
    }

    /// Serves the connection until it ends.
    pub(super) async fn run(mut self) {
        let ended = self.converse().await;
        match ended {
            Err(ConnectionEnd::Broken(_)) => {
                self.core.shared.counters().aborted += 1;
                self.note_stopped();
            }
            Err(ConnectionEnd::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                self.core.shared.counters().aborted += 1;
                self.note_stopped();
            }
            Err(ConnectionEnd::Io(error)) if error.kind() == io::ErrorKind::TimedOut => {
                self.core.shared.counters().stalled += 1;
                self.note_stopped();
                return;
            }
            Err(ConnectionEnd::Io(_) | ConnectionEnd::Aborted) => return,
            Ok(()) => {}
        }
        // The last messages are written, such as an Abort, if that is still possible.
        let _ = tokio::time::timeout(Duration::from_secs(1), self.connection.close()).await;
    }

    async fn converse(&mut self) -> Result<(), ConnectionEnd> {
        let shared = self.core.shared.clone();
        let mut closing = pin!(shared.closing.begun());
        let idle_timeout = self.core.config.idle_timeout;
        let mut idle = Box::pin(tokio::time::sleep(PATIENCE.min(idle_timeout)));
        let (mut open, mut pinged) = (true, false);
        loop {
            open &= self.go_on(open);
            if !open && self.handlers.is_empty() && self.arrived.is_empty() && self.connection.is_written() {
                return Ok(());
            }
            let full = self.connection.is_full();
            // Nothing is read before the last messages are handled. TCP then stops the client.
            let hear = open && !full && self.arrived.is_empty();
            let Self { connection, arrived, handlers, observers, admitted, .. } = self;
            tokio::select! {
                turned = connection.turn(hear, |each| arrived.push_back(each)) => {
                    if turned? {
                        pinged = false;
                        admitted.heard();
                        // A client has to send its CSM soon (RFC 8323 §5.3).
                        let patience = if connection.greeted { idle_timeout } else { PATIENCE };
                        idle.as_mut().reset(Instant::now() + patience.min(idle_timeout));
                    }
                }
                Some(done) = handlers.join_next(), if !handlers.is_empty() && !full => {
                    if let Ok(result) = done {
                        self.settle(result);
                    }
                }
                () = observers.changed(), if observers.are_watching() => {}
                () = admitted.left() => {
                    self.core.shared.counters().evicted += 1;
                    self.note_stopped();
                    self.connection.signal(Signal::Release, Token::EMPTY);
                    return Ok(());
                }
                () = &mut idle, if open => {
                    idle.as_mut().reset(Instant::now() + idle_timeout);
                    // A client that waits for an answer is not idle. An observing client is pinged, because it may be gone.
                    if !self.handlers.is_empty() {
                        continue;
                    }
                    // The client did not answer the Ping, or has no reason to stay.
                    if pinged || self.observers.is_empty() {
                        self.core.shared.counters().idle += 1;
                        self.connection.signal(Signal::Release, Token::EMPTY);
                        open = false;
                    } else {
                        self.connection.signal(Signal::Ping { custody: false }, Token::EMPTY);
                        pinged = true;
                    }
                }
                () = &mut closing, if open => {
                    self.dismiss_observers();
                    self.connection.signal(Signal::Release, Token::EMPTY);
                    open = false;
                }
            }
        }
    }

    /// Handles received messages and calls handlers for observers, while there is memory for their responses. If a client does
    /// not read, nothing more is read from it, and no handler is called for it. Returns whether the connection stays open.
    fn go_on(&mut self, mut open: bool) -> bool {
        // A connection that is released tells its observers nothing more.
        if !open {
            self.observers.end_all(&mut self.share);
        }
        while self.has_room() {
            if let Some(each) = self.arrived.pop_front() {
                open &= self.take(each);
            } else if let Some(observer) = self.observers.next_due() {
                self.notify(observer);
            } else {
                break;
            }
        }
        let doing = match () {
            () if !self.connection.greeted => Doing::Opening,
            () if self.handlers.is_empty() && self.observers.is_empty() => Doing::Idle,
            () => Doing::Busy,
        };
        self.admitted.set(doing);
        open
    }

    /// Returns whether another response fits.
    fn has_room(&mut self) -> bool {
        self.share.set_answers(self.connection.queued() + self.handlers.len() * ANSWER);
        !self.connection.is_full() && self.share.has_room()
    }

    /// Sends every observer its last notification, because the server stops (RFC 7641 §4.2).
    fn dismiss_observers(&mut self) {
        let farewell = self.core.config.unavailable();
        let mut tail = Vec::new();
        farewell.options.write(&farewell.payload, &mut tail);
        for token in self.observers.end_all(&mut self.share) {
            self.connection.push(farewell.code, token, &tail);
        }
    }

    /// Handles a received message. Returns whether the connection stays open.
    fn take(&mut self, arrived: Received) -> bool {
        match arrived {
            Received::Message(code, token, tail) if code.is_request() => {
                self.core.shared.counters().requests += 1;
                // Over a connection every request is delivered, like a confirmable one.
                let message = Message { code, token, tail: &tail, ..Message::empty(Kind::Confirmable, 0) };
                self.request(&message);
                true
            }
            Received::Release => false,
            // An empty message only keeps the connection alive (RFC 8323 §3.4). A server waits for no responses.
            Received::Message(..) | Received::Pong(_) => true,
        }
    }

    fn request(&mut self, message: &Message<'_>) {
        if access::is_wanted() {
            self.access.note(message.token, self.core.transport, self.peer.clone(), message);
        }
        // The handshake of TCP has verified the address.
        let mut terms = Terms::of(message, message.block2_reliable()).verified();
        // Over a reliable transport Q-Block has no use.
        let is_quick = message.value(option::Q_BLOCK2).is_some();
        let quick = is_quick.then(|| refused(option::Q_BLOCK2));
        let refusal = quick.or_else(|| lock(&self.core.router).refuses_block(message));
        if let Some(refusal) = refusal {
            return self.answer(&terms, refusal);
        }
        let (now, from) = (self.core.clock.now(), self.peer.remote);
        let step = self.core.bodies().take(now, from, message, &mut terms);
        let tail = match step {
            ServerStep::Call(tail) => tail,
            ServerStep::Answer(response) => return self.answer(&terms, response),
            ServerStep::Reply(code, tail) => return self.push(&terms, code, tail.as_bytes()),
            // These are unreachable, because Q-Block1 is refused and every client of a connection is verified.
            ServerStep::Acknowledge | ServerStep::Challenge => {
                return self.push(&terms, Code::SERVICE_UNAVAILABLE, &[]);
            }
        };
        let request = Message { tail: &tail, ..*message };
        let observer = self.register(&request, terms);
        let called = self.core.call(&self.peer, &request);
        self.called(terms, observer, called);
    }

    /// Answers with the result of a handler, or lets the handler continue as a task.
    fn called(&mut self, terms: Terms, observer: Option<ConnectionObserver>, called: Called) {
        match called {
            Called::Ready(response) => self.settle(HandlerResult { terms, response, observer }),
            Called::Pending(rest) => {
                self.handlers.spawn(async move { HandlerResult { terms, response: rest.await, observer } });
            }
        }
    }

    /// Starts or ends an observation, if the request asks for that (RFC 7641, RFC 8323 §7). Returns the new observer,
    /// if there is one. If no memory is left for it, the response has no Observe option.
    fn register(&mut self, request: &Message<'_>, terms: Terms) -> Option<ConnectionObserver> {
        let wish = terms.wish(request)?;
        // A registration with the same token replaces the one before (RFC 7641 §4.1).
        self.observers.end(&mut self.share, request.token);
        let router = lock(&self.core.router);
        let resource = router.observable(request).filter(|_| wish == Wish::Observe)?;
        let room = self.observers.len() < self.core.config.profile.config.max_observers as usize;
        let begin = || self.observers.begin(&mut self.share, resource, request, terms);
        let observer = room.then(begin).flatten();
        let mut counters = self.core.shared.counters();
        counters.registered += u64::from(observer.is_some());
        counters.observers_refused += u64::from(observer.is_none());
        drop(counters);
        if observer.is_none() {
            self.note_stopped();
        }
        observer
    }

    /// Records that a limit has affected the peer.
    fn note_stopped(&self) {
        *self.core.shared.stopped() = Some(self.peer.remote.address());
    }

    /// Calls the handler for an observer, because the resource has changed.
    fn notify(&mut self, mut observer: ConnectionObserver) {
        self.core.shared.counters().notifications += 1;
        let terms = observer.terms;
        let called = match observer.request() {
            Some(request) => self.core.call(&self.peer, &request),
            None => Response::new(Code::SERVICE_UNAVAILABLE).into(),
        };
        self.called(terms, Some(observer), called);
    }

    /// Answers with the result of a handler. If the handler was called for an observer and its response is a success,
    /// the observation continues.
    fn settle(&mut self, result: HandlerResult) {
        let HandlerResult { mut terms, response, observer } = result;
        let response = or_panicked(response, || self.core.shared.counters().panics += 1);
        let Some(mut observer) = observer else { return self.answer(&terms, response) };
        if !self.observers.has(&observer) {
            // The client has ended or repeated its registration in the meantime. The first request is answered nevertheless.
            return if terms.observed.is_none() {
                self.answer(&terms, response);
            };
        }
        let response = observer.format.admit(response);
        if !response.is_success() {
            self.observers.end(&mut self.share, terms.token);
            return self.answer(&terms, response);
        }
        // The number of a notification has no meaning over a connection (RFC 8323 §7.1), but aiocoap and go-coap ignore
        // those whose number does not grow.
        terms.observed = Some(terms.observed.map_or(1, |last| last % 0xff_ffff + 1));
        observer.terms = terms;
        self.answer(&terms, response);
        self.observers.watch(observer);
    }

    /// Answers a request according to its terms.
    fn answer(&mut self, terms: &Terms, response: Response) {
        let bert = self.connection.limits.blocks() == Some(true);
        // A message is in memory until the client reads it, so it has at most [`ANSWER`] bytes.
        let medium = ResponseTransport::Stream { room: self.connection.limits.room().min(ANSWER), bert };
        let (now, to, mut tail) = (self.core.clock.now(), Some(self.peer.remote), Vec::new());
        let answered = self.core.bodies().answer(now, to, terms, response, medium, &mut tail);
        match answered {
            ResponseOutcome::Send(code) => self.push(terms, code, &tail),
            ResponseOutcome::Unwanted => self.access.answered(&terms.token, None, 0),
            ResponseOutcome::TooLarge => {
                self.core.shared.counters().too_large += 1;
                self.push(terms, Code::INTERNAL_SERVER_ERROR, &[]);
            }
        }
    }

    fn push(&mut self, terms: &Terms, code: Code, tail: &[u8]) {
        self.connection.push(code, terms.token, tail);
        self.access.answered(&terms.token, Some(code), tail.len());
    }
}
