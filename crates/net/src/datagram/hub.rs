//! An endpoint with the state that its tasks share: socket, clock, and the receivers of responses.

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

/// One endpoint on one socket. A driver receives for the endpoint and keeps its timers. Other tasks send datagrams
/// themselves, without going through the driver's task.
#[derive(Debug)]
pub(crate) struct Hub {
    pub(crate) profile: Profile,
    state: Mutex<LockedHub>,
    pub(crate) socket: Socket,
    /// The DTLS sessions that the hub's datagrams pass through. `None` without DTLS.
    pub(crate) sessions: Option<Arc<Mutex<Sessions>>>,
    pub(crate) clock: Clock,
    /// Wakes the driver: there is an earlier deadline, or a datagram that could not be sent, or the hub is closing.
    pub(crate) attention: Notify,
    /// Set when a resource of the server has changed.
    changed: AtomicBool,
    pub(crate) closing: Closing,
    /// The number of running handlers that wait for something.
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
    /// Set if a network error ends the requests to a destination at once.
    pub(crate) fails_fast: bool,
    pub(crate) random: Random,
    /// The receivers of the exchanges and observations that tasks wait for.
    pub(crate) waiting: HashMap<ExchangeId, Waiter>,
    /// The requests to groups.
    pub(crate) groups: HashMap<ExchangeId, GroupExchange>,
    /// The state that only servers use.
    pub(crate) answers: Answers,
    /// The last client that was affected by a limit of the server since the last report, if there is one.
    pub(crate) stopped: Option<Remote>,
    /// The time that the driver's timer is set for. The driver must be woken only for earlier deadlines.
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
    /// Returns a hub. If `dtls` is given, the hub's datagrams pass through DTLS.
    pub(crate) fn new(socket: Socket, profile: &Profile, dtls: Option<&Dtls>) -> io::Result<Arc<Self>> {
        let sessions = dtls.map(Sessions::new).transpose()?;
        let mut random = Random::default();
        let profile = *profile;
        let Profile { mechanism: controller, bulk, config } = profile;
        let mut endpoint = Endpoint::new(Arc::new(Setup { controller, bulk, config }), random.next());
        // Metrics are always on: they cost 700 bytes and a few additions for each exchange.
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
        // The driver sleeps until its timer. It has to learn of an earlier deadline, and of datagrams that the system did not
        // take.
        let sooner = state.poll_timeout().is_some_and(|at| at < state.armed);
        if sooner || !state.outgoing.is_empty() {
            self.attention.notify_one();
        }
        done
    }

    /// Sends from the front of `outgoing` as much as the system accepts.
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
            // No session, so no exchange is there to note the error: it is the reason if the handshake fails.
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
        // The driver asks after every event, and reading costs less than swapping.
        self.changed.load(Ordering::Relaxed) && self.changed.swap(false, Ordering::Acquire)
    }

    /// Starts to close the hub: new requests are refused, and running exchanges may still complete.
    pub(crate) fn close(&self) {
        self.closing.begin();
        self.attention.notify_one();
    }

    /// Returns whether the hub's datagrams go through DTLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.sessions.is_some()
    }

    /// Returns a peer of the endpoint, with the identity that the peer has proved in its DTLS session, if there is one.
    pub(crate) fn peer(&self, remote: Remote) -> IdentifiedPeer {
        let identity = self.sessions.as_ref().and_then(|sessions| lock(sessions).identity(remote));
        IdentifiedPeer { remote, identity }
    }

    /// Returns whether any Message IDs are left for messages to this address.
    pub(crate) fn has_message_ids(&self, address: std::net::SocketAddr) -> bool {
        self.lock().endpoint.has_message_ids(self.clock.now(), self.socket.remote(address))
    }

    /// Returns the [`Remote`] by which the endpoint knows the peer at this address. Over DTLS, waits until there is a
    /// session.
    pub(crate) async fn reach(&self, address: std::net::SocketAddr) -> Result<Remote, Error> {
        let to = self.socket.remote(address);
        let Some(sessions) = &self.sessions else { return Ok(to) };
        // The lock is free before the wait, because the driver needs it to make the handshake.
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
            // If the handshake timed out, an ICMP error is the better explanation.
            let is_silent = refused == Refused::TimedOut;
            Error::Session(if is_silent { unreachable().unwrap_or(refused) } else { refused })
        })
    }

    /// Returns whether no exchange, handler or message is left.
    pub(crate) fn is_idle(&self) -> bool {
        // Pairs with the decrement by a handler that has ended: its response is queued by then, so it is seen below.
        self.pending.load(Ordering::Acquire) == 0 && {
            let state = self.lock();
            state.endpoint.exchanges() == 0 && state.outgoing.is_empty()
        }
    }

    /// Cancels an exchange if the task that waited for its first response has stopped.
    pub(crate) fn abandon(&self, exchange: ExchangeId) {
        let mut state = self.lock();
        // The exchange may be over, or its first response may have come a moment ago.
        let Some(waiter) = state.waiting.get_mut(&exchange) else { return };
        if waiter.receivers.first.take().is_some() {
            // The entry of an observation stays, so that dropping the observation still deregisters at the server.
            if waiter.receivers.inbox.is_none() {
                state.waiting.remove(&exchange);
            }
            // `with` takes the same lock.
            drop(state);
            self.with(|state, now| state.endpoint.cancel(now, exchange));
        }
    }
}

impl LockedHub {
    /// Returns the earliest deadline of the endpoint, of delayed responses, and of missing blocks. `None` if there is
    /// none.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let overdue = Some(self.answers.bodies.overdue_from()).filter(|&at| at < Instant::MAX);
        [self.endpoint.poll_timeout(), self.answers.leisure.next(), overdue].into_iter().flatten().min()
    }

    /// Ends an observation of this client, whose later notifications are rejected. Returns whether there was one.
    pub(crate) fn forget(&mut self, now: Instant, observation: ExchangeId) -> bool {
        self.endpoint.cancel(now, observation);
        self.waiting.remove(&observation).is_some()
    }

    /// Makes the observations at a server register again, because a new DTLS session may lead to another server.
    pub(crate) fn register_again(&self, server: Remote) {
        let there = self.waiting.values().filter(|waiter| waiter.to == server);
        there
            .filter_map(|waiter| waiter.receivers.inbox.as_ref())
            .for_each(|inbox| inbox.register_at(Instant::ZERO));
    }

    /// Makes this hub a server's: replaces the state for answers, with a new secret for Echo values.
    pub(crate) fn serve(&mut self, config: &ServerConfig, secure: bool) {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&self.random.next().to_le_bytes());
        key[8..].copy_from_slice(&self.random.next().to_le_bytes());
        self.answers = Answers::of(config, key, secure);
        self.endpoint.keep_requests(Remote::source);
    }

    /// Registers the receivers of an exchange's responses.
    pub(crate) fn expect(&mut self, now: Instant, exchange: ExchangeId, to: Remote, receivers: Receivers) {
        self.waiting.insert(exchange, Waiter { to, since: now, receivers });
    }

    /// Moves datagrams from the endpoint to `outgoing`, until there are as many as one system call sends.
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

    /// Passes the endpoint's datagrams to `send`, until none is left or `send` leaves some unsent. Then handles the
    /// datagrams that the system refused, and the events of the endpoint.
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
        // Only after the failures: a refused request has left the queue, too, and would count as departed.
        if !self.groups.is_empty() {
            self.note_departed(now);
        }
        while let Some(event) = self.endpoint.poll_event() {
            self.deliver(now, None, event);
        }
    }

    /// Records which requests to groups have departed.
    #[cold]
    fn note_departed(&mut self, now: Instant) {
        for (&exchange, asked) in &mut self.groups {
            if !self.endpoint.is_kept_back(exchange) {
                asked.depart(now);
            }
        }
    }

    /// Passes an event to the task that waits for it. `from` is the peer, if the event comes from a datagram.
    pub(crate) fn deliver(&mut self, now: Instant, from: Option<Remote>, event: Event<'_, Remote>) {
        if let Some(from) = from {
            // The peer has answered, so an earlier ICMP error does not explain later timeouts.
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
        // A notification does not answer a transmission of this client.
        if !matches!(event, Event::Notification { .. }) {
            transmissions += self.endpoint.retransmissions(exchange);
        }
        // The exchange ends with the first response. Later notifications do not count as exchanges.
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

    /// Returns whether this network error ends the requests to the destination at once.
    fn ends(&self, error: &io::Error) -> bool {
        self.fails_fast || is_final(error)
    }

    /// Records that a destination cannot be reached. The exchanges with it continue, unless the error ends them.
    pub(crate) fn unreachable(&mut self, now: Instant, to: Remote, error: &io::Error) {
        if !self.ends(error) {
            if self.waiting.values().any(|waiter| waiter.to == to) {
                self.refusals.note(to, error.kind());
            }
            return;
        }
        // An observation that has its first response survives the error: its server may come back.
        let there =
            |(_, waiter): &(&ExchangeId, &Waiter)| waiter.to == to && waiter.receivers.first.is_some();
        // A list, because ending an exchange changes the table.
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
        // The waiting callers see the end of the answers, because their senders are dropped.
        self.groups.clear();
    }
}

/// Returns the error of a failed exchange. `refused` is the network's error for its destination, if there was one.
fn failed(failure: Failure, transmissions: u8, refused: Option<io::ErrorKind>) -> Error {
    match (failure, refused) {
        (Failure::Reset, _) => Error::Reset,
        (_, Some(kind)) => Error::Unreachable(kind),
        (Failure::GivenUp, None) => Error::GivenUp { transmissions },
        (Failure::TimedOut, None) => Error::TimedOut,
    }
}
