//! An endpoint, and the state that its tasks share: socket, clock, and the waiters for its exchanges.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use coapace_control::{Instant, Mechanism};
use coapace_proto::{Code, Endpoint, Event, ExchangeId, Failure, Setup};
use foldhash::{HashMap, HashMapExt};
use tokio::sync::Notify;

use super::answers::Answers;
use super::io::{OutgoingDatagrams, send_all};
use super::socket::Socket;
use crate::address::Remote;
use crate::clock::{Clock, Random};
use crate::closing::Closing;
use crate::destinations::Destinations;
use crate::group::GroupExchange;
use crate::identity::IdentifiedPeer;
use crate::lock::lock;
use crate::receivers::Receivers;
use crate::refusals::{Refusals, is_final};
use crate::secure::{Dtls, Sessions};
use crate::{Error, NetCounters, Profile, Refused, Response, ServerConfig, log};

/// One endpoint on one socket. Its driver receives, and keeps its timers. Every other task sends by itself, and does not go
/// through the driver's task.
#[derive(Debug)]
pub(crate) struct Hub {
    pub(crate) profile: Profile,
    state: Mutex<LockedHub>,
    pub(crate) socket: Socket,
    /// The DTLS sessions of its datagrams, if it uses DTLS.
    pub(crate) sessions: Option<Arc<Mutex<Sessions>>>,
    pub(crate) clock: Clock,
    /// Wakes the driver: there is an earlier deadline, or a datagram that could not be sent, or the hub is closing.
    pub(crate) attention: Notify,
    /// Set when a resource of the server has changed.
    changed: AtomicBool,
    pub(crate) closing: Closing,
    /// The number of handlers that wait for something.
    pub(crate) pending: AtomicU32,
}

/// The part of a hub that is behind its lock.
#[derive(Debug)]
pub(crate) struct LockedHub {
    pub(crate) endpoint: Endpoint<Mechanism, Remote>,
    pub(crate) outgoing: OutgoingDatagrams,
    pub(crate) counters: NetCounters,
    pub(crate) destinations: Destinations,
    pub(crate) refusals: Refusals,
    /// Set if an error of the network ends the requests to a destination at once.
    pub(crate) fails_fast: bool,
    pub(crate) random: Random,
    /// The exchanges and observations whose responses somebody waits for.
    pub(crate) waiting: HashMap<ExchangeId, Waiter>,
    /// The requests to groups.
    pub(crate) groups: HashMap<ExchangeId, GroupExchange>,
    /// The state that only servers use.
    pub(crate) answers: Answers,
    /// The last client that a bound of the server has stopped.
    pub(crate) stopped: Option<Remote>,
    /// The moment that the driver's timer is set for. The driver has to be woken for earlier deadlines only.
    pub(crate) armed: Instant,
}

/// The receivers of an exchange's responses.
#[derive(Debug)]
pub(crate) struct Waiter {
    to: Remote,
    since: Instant,
    receivers: Receivers,
}

impl Hub {
    /// Returns a hub. Its datagrams go through DTLS if `dtls` is given.
    pub(crate) fn new(socket: Socket, profile: &Profile, dtls: Option<&Dtls>) -> io::Result<Arc<Self>> {
        let sessions = dtls.map(Sessions::new).transpose()?;
        let mut random = Random::default();
        let profile = *profile;
        let Profile { mechanism: controller, bulk, config } = profile;
        let mut endpoint = Endpoint::new(Arc::new(Setup { controller, bulk, config }), random.next());
        endpoint.measure();
        let state = LockedHub {
            endpoint,
            outgoing: OutgoingDatagrams::default(),
            counters: NetCounters::default(),
            destinations: Destinations::new(config.max_peers as usize),
            refusals: Refusals::default(),
            fails_fast: false,
            random,
            waiting: HashMap::new(),
            groups: HashMap::new(),
            // A server's configuration and key come with `serve`.
            answers: Answers::of(&ServerConfig::default(), [0; 16], false),
            stopped: None,
            armed: Instant::MAX,
        };
        Ok(Arc::new(Self {
            profile,
            state: Mutex::new(state),
            socket,
            sessions: sessions.map(|sessions| Arc::new(Mutex::new(sessions))),
            clock: Clock::start(),
            attention: Notify::new(),
            changed: AtomicBool::new(false),
            closing: Closing::default(),
            pending: AtomicU32::new(0),
        }))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, LockedHub> {
        lock(&self.state)
    }

    /// Calls `act`, and then sends the endpoint's datagrams.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut LockedHub, Instant) -> T) -> T {
        let now = self.clock.now();
        let mut state = self.lock();
        let done = act(&mut state, now);
        state.send(now, |outgoing| self.transmit(outgoing));
        let sooner = state.poll_timeout().is_some_and(|at| at < state.armed);
        if sooner || !state.outgoing.is_empty() {
            self.attention.notify_one();
        }
        done
    }

    /// Sends from the front of `outgoing` as far as the system takes it.
    fn transmit(&self, outgoing: &mut OutgoingDatagrams) {
        if let Some(sessions) = &self.sessions {
            if lock(sessions).send(&self.socket, outgoing) {
                // The driver has to set its timer for a handshake.
                self.attention.notify_one();
            }
            return;
        }
        send_all(&self.socket, outgoing);
    }

    /// Handles an error that reports an unreachable destination.
    pub(crate) fn unreachable(&self, now: Instant, to: Remote, error: &io::Error) {
        let begins = self.sessions.as_ref().is_some_and(|sessions| lock(sessions).peer(to).is_none());
        let is_over = {
            let mut state = self.lock();
            if begins && !state.ends(error) {
                state.refusals.note(to, error.kind());
            }
            state.unreachable(now, to, error);
            state.ends(error)
        };
        if let Some(sessions) = self.sessions.as_ref().filter(|_| is_over) {
            lock(sessions).unreachable(to, error);
        }
    }

    /// Makes the driver call the handlers of observed resources that have changed.
    pub(crate) fn look_at_resources(&self) {
        self.changed.store(true, Ordering::Release);
        self.attention.notify_one();
    }

    /// Returns whether a resource has changed since the last call.
    pub(crate) fn has_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed) && self.changed.swap(false, Ordering::Acquire)
    }

    /// Begins to close: new requests are refused, and exchanges under way may end.
    pub(crate) fn close(&self) {
        self.closing.begin();
        self.attention.notify_one();
    }

    /// Returns whether its datagrams go through DTLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.sessions.is_some()
    }

    /// Returns a peer of the endpoint with its identity.
    pub(crate) fn peer(&self, remote: Remote) -> IdentifiedPeer {
        let identity = self.sessions.as_ref().and_then(|sessions| lock(sessions).identity(remote));
        IdentifiedPeer { remote, identity }
    }

    /// Returns whether messages to this address have Message IDs left.
    pub(crate) fn has_message_ids(&self, address: std::net::SocketAddr) -> bool {
        self.lock().endpoint.has_message_ids(self.clock.now(), self.socket.remote(address))
    }

    /// Returns the endpoint's name for the peer at this address. Over DTLS, waits until there is a session.
    pub(crate) async fn reach(&self, address: std::net::SocketAddr) -> Result<Remote, Error> {
        let to = self.socket.remote(address);
        let Some(sessions) = &self.sessions else { return Ok(to) };
        let connected = {
            let mut sessions = lock(sessions);
            if let Some(peer) = sessions.peer(to) {
                return Ok(peer);
            }
            sessions.handshake(&self.socket, to).map_err(Error::Session)?
        };
        // The driver has to set its timer for the handshake.
        self.attention.notify_one();
        let connected = connected.await.unwrap_or(Err(Refused::GivenUp));
        connected.map_err(|refused| {
            let unreachable = || self.lock().refusals.of(to).map(Refused::Unreachable);
            let is_silent = refused == Refused::TimedOut;
            Error::Session(if is_silent { unreachable().unwrap_or(refused) } else { refused })
        })
    }

    /// Returns whether nothing is under way any more.
    pub(crate) fn is_idle(&self) -> bool {
        self.pending.load(Ordering::Acquire) == 0 && {
            let state = self.lock();
            state.endpoint.exchanges() == 0 && state.outgoing.is_empty()
        }
    }

    /// Cancels an exchange if the task that waited for its first response has stopped.
    pub(crate) fn abandon(&self, exchange: ExchangeId) {
        let mut state = self.lock();
        let Some(waiter) = state.waiting.get_mut(&exchange) else { return };
        if waiter.receivers.first.take().is_some() {
            if waiter.receivers.inbox.is_none() {
                state.waiting.remove(&exchange);
            }
            drop(state);
            self.with(|state, now| state.endpoint.cancel(now, exchange));
        }
    }
}

impl LockedHub {
    /// Returns the next deadline of the endpoint, of delayed responses, and of blocks that are missing.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let overdue = Some(self.answers.bodies.overdue_from()).filter(|&at| at < Instant::MAX);
        [self.endpoint.poll_timeout(), self.answers.leisure.next(), overdue].into_iter().flatten().min()
    }

    /// Ends an observation of this client, whose later notifications are rejected. Returns whether there was one.
    pub(crate) fn forget(&mut self, now: Instant, observation: ExchangeId) -> bool {
        self.endpoint.cancel(now, observation);
        self.waiting.remove(&observation).is_some()
    }

    /// Makes the observations at a server register again: a session has begun, and it may be with another server than before.
    pub(crate) fn register_again(&self, server: Remote) {
        let there = self.waiting.values().filter(|waiter| waiter.to == server);
        there
            .filter_map(|waiter| waiter.receivers.inbox.as_ref())
            .for_each(|inbox| inbox.register_at(Instant::ZERO));
    }

    /// Prepares the hub for a server.
    pub(crate) fn serve(&mut self, config: &ServerConfig, secure: bool) {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&self.random.next().to_le_bytes());
        key[8..].copy_from_slice(&self.random.next().to_le_bytes());
        self.answers = Answers::of(config, key, secure);
        self.endpoint.keep_requests(Remote::source);
    }

    /// Notes the receivers of an exchange's responses.
    pub(crate) fn expect(&mut self, now: Instant, exchange: ExchangeId, to: Remote, receivers: Receivers) {
        self.waiting.insert(exchange, Waiter { to, since: now, receivers });
    }

    /// Takes datagrams from the endpoint that [`send`](Self::send) then sends, as many as it sends at once.
    pub(crate) fn gather(&mut self, now: Instant) {
        let Self { endpoint, outgoing, random, .. } = self;
        // One system call takes so many, and their bytes fit into the processor's cache.
        while outgoing.len() < 32 {
            let Some(transmit) = endpoint.poll_transmit(now, |_| random.draw(), &mut outgoing.bytes) else {
                break;
            };
            outgoing.push(transmit.to);
        }
    }

    /// Sends the endpoint's datagrams, until `send` leaves some. Then handles the exchanges that have failed.
    pub(crate) fn send(&mut self, now: Instant, mut send: impl FnMut(&mut OutgoingDatagrams)) {
        loop {
            self.gather(now);
            if self.outgoing.is_empty() {
                break;
            }
            send(&mut self.outgoing);
            if !self.outgoing.is_empty() {
                break;
            }
        }
        for (to, error) in std::mem::take(&mut self.outgoing.failed) {
            self.counters.send_errors += 1;
            self.unreachable(now, to, &error);
            // No copy of a request to a group follows.
            self.groups.values_mut().for_each(|asked| asked.fail(to, &error));
        }
        if !self.groups.is_empty() {
            self.note_departed(now);
        }
        while let Some(event) = self.endpoint.poll_event() {
            self.tell(now, None, event);
        }
    }

    /// Notes which requests to groups have departed.
    #[cold]
    fn note_departed(&mut self, now: Instant) {
        for (&exchange, asked) in &mut self.groups {
            if !self.endpoint.is_kept_back(exchange) {
                asked.depart(now);
            }
        }
    }

    /// Hands an event to the task that waits for it. `from` is the peer, if the event comes from a datagram.
    pub(crate) fn tell(&mut self, now: Instant, from: Option<Remote>, event: Event<'_, Remote>) {
        if let Some(from) = from {
            self.refusals.forget(from);
        }
        let exchange = match event {
            Event::Response { exchange, .. }
            | Event::Pong { exchange }
            | Event::Rejected { exchange, .. }
            | Event::Failed { exchange, .. } => exchange,
            Event::Notification { exchange, message } => {
                if let (Some(from), Some(asked)) = (from, self.groups.get(&exchange)) {
                    asked.answer(now, from, &message);
                }
                exchange
            }
            Event::ObserverGone { observer, .. } => {
                return log::observer(observer.to.address(), "gone");
            }
            Event::Acknowledged { exchange } => {
                let waiter = self.waiting.get_mut(&exchange);
                if let Some(acknowledged) = waiter.and_then(|waiter| waiter.receivers.acknowledged.take()) {
                    // The task that waited may have stopped a moment ago.
                    let _ = acknowledged.send(());
                }
                return;
            }
            Event::Request { .. } => return,
        };
        if matches!(event, Event::Failed { .. }) {
            // The client does not acknowledge the blocks of a set any more.
            self.answers.sets.take(exchange);
        }
        let Some(Waiter { to, since, receivers }) = self.waiting.get_mut(&exchange) else { return };
        let (mut transmissions, mut elapsed) = (1, Duration::ZERO);
        if !matches!(event, Event::Notification { .. }) {
            transmissions += self.endpoint.retransmissions(exchange);
        }
        if receivers.first.is_some() {
            elapsed = now.since(*since).into();
            let failed = matches!(event, Event::Failed { .. });
            self.destinations.count(*to, failed, transmissions);
        }
        if let Event::Response { message, .. } | Event::Notification { message, .. } = event {
            let response = Response::of(&message, elapsed, transmissions);
            if receivers.receive(now, &message, false, Ok(response)) {
                return;
            }
        } else {
            let pong = Response { elapsed, transmissions, ..Response::new(Code::EMPTY) };
            receivers.end(match event {
                Event::Rejected { option, .. } => Err(Error::BadOption(option)),
                Event::Failed { failure, .. } => Err(failed(failure, transmissions, self.refusals.of(*to))),
                _ => Ok(pong),
            });
        }
        self.waiting.remove(&exchange);
    }

    /// Returns whether an error of the network ends the requests to its destination.
    fn ends(&self, error: &io::Error) -> bool {
        self.fails_fast || is_final(error)
    }

    /// Notes that a destination cannot be reached. The exchanges with it go on as if nothing had come, unless the error ends
    /// them.
    pub(crate) fn unreachable(&mut self, now: Instant, to: Remote, error: &io::Error) {
        if !self.ends(error) {
            if self.waiting.values().any(|waiter| waiter.to == to) {
                self.refusals.note(to, error.kind());
            }
            return;
        }
        let there =
            |(_, waiter): &(&ExchangeId, &Waiter)| waiter.to == to && waiter.receivers.first.is_some();
        let exchanges: Vec<ExchangeId> = self.waiting.iter().filter(there).map(|(&id, _)| id).collect();
        for exchange in exchanges {
            let Some(mut waiter) = self.waiting.remove(&exchange) else { continue };
            self.destinations.count(to, true, self.endpoint.retransmissions(exchange) + 1);
            self.endpoint.cancel(now, exchange);
            waiter.receivers.end(Err(Error::Unreachable(error.kind())));
        }
    }

    /// Ends all exchanges and observations with [`Error::Closed`].
    pub(crate) fn give_up_all(&mut self) {
        for (_, mut waiter) in self.waiting.drain() {
            waiter.receivers.end(Err(Error::Closed));
        }
        self.groups.clear();
    }
}

/// Returns the error of an exchange. `refused` is the network's error for its destination, if there was one.
fn failed(failure: Failure, transmissions: u8, refused: Option<io::ErrorKind>) -> Error {
    match (failure, refused) {
        (Failure::Reset, _) => Error::Reset,
        (_, Some(kind)) => Error::Unreachable(kind),
        (Failure::GivenUp, None) => Error::GivenUp { transmissions },
        (Failure::TimedOut, None) => Error::TimedOut,
    }
}
