//! An endpoint and what the tasks around it share: its socket, its clock, and who waits for what.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use coap_numbers::option;
use coapace_control::{Draw, Instant, Mechanism};
use coapace_proto::{Endpoint, Event, ExchangeId, Failure, Message, Setup};
use foldhash::{HashMap, HashMapExt};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::address::Remote;
use crate::answers::Answers;
use crate::carrier::{Outgoing, send_singly};
use crate::clock::{Clock, Random};
use crate::group::Answer;
use crate::identity::Peer;
use crate::inbox::Inbox;
use crate::message_ids::MessageIds;
use crate::socket::Socket;
use crate::stats::{Destinations, Ended, NetCounters};
#[cfg(feature = "dtls")]
use crate::{Dtls, sessions::Sessions};
use crate::{Error, Response, ServerConfig, log};

/// One endpoint on one socket. A driver receives and keeps its timers; whoever else has something to send sends it on
/// the spot, so that it takes no detour through the driver's task.
#[derive(Debug)]
pub(crate) struct Hub {
    state: Mutex<State>,
    pub(crate) socket: Socket,
    /// What its datagrams go through, if that is DTLS.
    #[cfg(feature = "dtls")]
    pub(crate) sessions: Option<Arc<Sessions>>,
    pub(crate) clock: Clock,
    /// The driver is to look again: an earlier deadline, something left to send, the end.
    pub(crate) attention: Notify,
    /// A resource of the server has changed.
    changed: AtomicBool,
    /// No new requests are taken.
    closing: AtomicBool,
    /// It has begun to close.
    end: Notify,
    /// Handlers that wait for something.
    pub(crate) pending: AtomicU32,
}

/// What is behind the lock.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) endpoint: Endpoint<Mechanism, Remote>,
    pub(crate) outgoing: Outgoing,
    pub(crate) counters: NetCounters,
    pub(crate) destinations: Destinations,
    random: Random,
    waiting: HashMap<ExchangeId, Waiting>,
    /// Where notifications go.
    pub(crate) observed: HashMap<ExchangeId, Arc<Inbox>>,
    /// Requests to groups: since when, and who takes the answers.
    pub(crate) groups: HashMap<ExchangeId, (Instant, mpsc::Sender<Answer>)>,
    /// The Message IDs that a client has used.
    pub(crate) message_ids: MessageIds,
    /// What only servers have use for.
    pub(crate) answers: Answers,
    /// A response, encoded.
    pub(crate) scratch: Vec<u8>,
    /// When the driver will look by itself. Deadlines that are set later than this need not wake it.
    pub(crate) armed: Instant,
}

/// Who waits for the end of an exchange.
#[derive(Debug)]
struct Waiting {
    to: Remote,
    since: Instant,
    tell: oneshot::Sender<Result<Response, Error>>,
}

impl Hub {
    pub(crate) fn new(socket: Socket, setup: Arc<Setup<Mechanism>>) -> Arc<Self> {
        Arc::new(Self::open(socket, setup))
    }

    /// One whose datagrams go through DTLS.
    #[cfg(feature = "dtls")]
    pub(crate) fn secured(
        socket: Socket,
        setup: Arc<Setup<Mechanism>>,
        dtls: &Dtls,
    ) -> io::Result<Arc<Self>> {
        let sessions = Some(Arc::new(Sessions::new(dtls)?));
        Ok(Arc::new(Self { sessions, ..Self::open(socket, setup) }))
    }

    fn open(socket: Socket, setup: Arc<Setup<Mechanism>>) -> Self {
        let mut random = Random::default();
        let max_destinations = setup.config.max_peers as usize;
        let message_ids = MessageIds::new(setup.exchange_lifetime(), max_destinations);
        let mut endpoint = Endpoint::new(setup, random.next());
        endpoint.measure();
        let state = State {
            endpoint,
            outgoing: Outgoing::default(),
            counters: NetCounters::default(),
            destinations: Destinations::new(max_destinations),
            random,
            waiting: HashMap::new(),
            observed: HashMap::new(),
            groups: HashMap::new(),
            message_ids,
            answers: Answers::of(&ServerConfig::default(), [0; 16], false),
            scratch: Vec::new(),
            armed: Instant::MAX,
        };
        Self {
            state: Mutex::new(state),
            socket,
            #[cfg(feature = "dtls")]
            sessions: None,
            clock: Clock::start(),
            attention: Notify::new(),
            changed: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            end: Notify::new(),
            pending: AtomicU32::new(0),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the endpoint, and sends what there is to send after it.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut State, Instant) -> T) -> T {
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
    fn transmit(&self, outgoing: &mut Outgoing) {
        #[cfg(feature = "dtls")]
        if let Some(sessions) = &self.sessions {
            return sessions.send(&self.socket, outgoing);
        }
        send_singly(&self.socket, outgoing);
    }

    /// The network says that a destination cannot be reached.
    pub(crate) fn unreachable(&self, now: Instant, to: Remote, error: &io::Error) {
        #[cfg(feature = "dtls")]
        if let Some(sessions) = &self.sessions {
            sessions.unreachable(to, error);
        }
        self.lock().unreachable(now, to, error);
    }

    /// A resource that may be observed here has changed.
    pub(crate) fn look_at_resources(&self) {
        self.changed.store(true, Ordering::Release);
        self.attention.notify_one();
    }

    /// Whether one has, since the last time.
    pub(crate) fn has_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed) && self.changed.swap(false, Ordering::Acquire)
    }

    /// No new requests; what is under way may end.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Release);
        self.attention.notify_one();
        self.end.notify_waiters();
    }

    /// Returns once it is closing.
    pub(crate) async fn closed(&self) {
        let mut end = std::pin::pin!(self.end.notified());
        // Enlisted before the look, so that no word is missed.
        end.as_mut().enable();
        if !self.is_closing() {
            end.await;
        }
    }

    /// Whether its datagrams go through DTLS.
    pub(crate) fn is_secure(&self) -> bool {
        #[cfg(feature = "dtls")]
        return self.sessions.is_some();
        #[cfg(not(feature = "dtls"))]
        false
    }

    /// A peer of the endpoint, and who it has shown to be.
    pub(crate) fn peer(&self, remote: Remote) -> Peer {
        #[cfg(feature = "dtls")]
        let identity = self.sessions.as_ref().and_then(|sessions| sessions.identity(remote));
        #[cfg(not(feature = "dtls"))]
        let identity = None;
        Peer { remote, identity }
    }

    /// Returns whether a new message to this address gets a Message ID that its receiver does not remember.
    pub(crate) fn has_message_ids(&self, address: std::net::SocketAddr) -> bool {
        self.lock().message_ids.are_free(self.clock.now(), self.socket.remote(address))
    }

    /// What the endpoint calls the peer at this address, once it can be talked to.
    pub(crate) async fn reach(&self, address: std::net::SocketAddr) -> Result<Remote, Error> {
        let to = self.socket.remote(address);
        #[cfg(feature = "dtls")]
        if let Some(sessions) = &self.sessions {
            return Box::pin(sessions.connect(self, to)).await.map_err(Error::Session);
        }
        Ok(to)
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Whether nothing is under way any more.
    pub(crate) fn is_idle(&self) -> bool {
        self.pending.load(Ordering::Acquire) == 0 && {
            let state = self.lock();
            state.endpoint.exchanges() == 0 && state.outgoing.is_empty()
        }
    }

    /// Nobody waits for this exchange any more. What waited behind it may leave.
    pub(crate) fn abandon(&self, exchange: ExchangeId) {
        if self.lock().waiting.remove(&exchange).is_some() {
            self.with(|state, now| state.endpoint.cancel(now, exchange));
        }
    }
}

impl State {
    /// A token for a request.
    pub(crate) fn token(&mut self) -> coapace_proto::Token {
        self.random.token()
    }

    /// A draw for a mechanism, or a moment.
    pub(crate) fn draw(&mut self) -> Draw {
        self.random.draw()
    }

    /// Ends an observation: its notifications are rejected from now on. Returns whether there was one.
    pub(crate) fn forget(&mut self, now: Instant, observation: ExchangeId) -> bool {
        self.endpoint.cancel(now, observation);
        self.observed.remove(&observation).is_some()
    }

    /// It is a server's from now on.
    pub(crate) fn serve(&mut self, config: &ServerConfig, secure: bool) {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&self.random.next().to_le_bytes());
        key[8..].copy_from_slice(&self.random.next().to_le_bytes());
        self.answers = Answers::of(config, key, secure);
        self.endpoint.set_source(Remote::source);
    }

    /// Lets the caller wait for the end of an exchange.
    pub(crate) fn wait(
        &mut self,
        now: Instant,
        exchange: ExchangeId,
        to: Remote,
    ) -> oneshot::Receiver<Result<Response, Error>> {
        let (tell, told) = oneshot::channel();
        self.waiting.insert(exchange, Waiting { to, since: now, tell });
        told
    }

    /// Sends what the endpoint has to send, as long as `send` gets rid of it, and tells of exchanges that failed.
    pub(crate) fn send(&mut self, now: Instant, mut send: impl FnMut(&mut Outgoing)) {
        loop {
            let Self { endpoint, outgoing, random, .. } = self;
            // Few enough that all lie in one call, and their bytes in a cache.
            while outgoing.len() < 32 {
                let Some(transmit) = endpoint.poll_transmit(now, |_| random.draw(), &mut outgoing.bytes)
                else {
                    break;
                };
                outgoing.push(transmit.to);
            }
            if outgoing.is_empty() {
                break;
            }
            send(outgoing);
            if !outgoing.is_empty() {
                break;
            }
        }
        for (to, error) in std::mem::take(&mut self.outgoing.failed) {
            self.counters.send_errors += 1;
            self.unreachable(now, to, &error);
        }
        while let Some(event) = self.endpoint.poll_event() {
            self.tell(now, None, event);
        }
    }

    /// What became of an exchange goes to whoever waits for it; `from` if it has arrived just now.
    pub(crate) fn tell(&mut self, now: Instant, from: Option<Remote>, event: Event<'_, Remote>) {
        let exchange = match event {
            Event::Response { exchange, .. } | Event::Pong { exchange } | Event::Failed { exchange, .. } => {
                exchange
            }
            Event::Notification { exchange, message } => {
                if let (Some(from), Some((since, tell))) = (from, self.groups.get(&exchange))
                    && let Ok(response) = received(&message, now.since(*since).into(), 1)
                {
                    // Who does not take them, or no more, misses them.
                    let _ = tell.try_send((from.address(), response));
                }
                if let Some(inbox) = self.observed.get(&exchange) {
                    match received(&message, Duration::ZERO, 1) {
                        Ok(response) => inbox.put(now, &message, Some(response)),
                        Err(error) => inbox.fail(error),
                    }
                }
                return;
            }
            Event::ObserverGone { observer, .. } => {
                return log::observer(observer.to.address(), "gone");
            }
            Event::Acknowledged { .. } | Event::Request { .. } => return,
        };
        let waiting = self.waiting.remove(&exchange);
        let inbox = self.observed.get(&exchange);
        if waiting.is_none() && inbox.is_none() {
            return;
        }
        let transmissions = self.endpoint.retransmissions(exchange) + 1;
        let elapsed = waiting.as_ref().map_or(Duration::ZERO, |waiting| now.since(waiting.since).into());
        let result = match event {
            Event::Failed { failure, .. } => Err(failed(failure, transmissions)),
            Event::Response { message, .. } => {
                let response = received(&message, elapsed, transmissions);
                if let (Some(inbox), Ok(response)) = (inbox, &response) {
                    inbox.put(now, &message, waiting.is_none().then(|| response.clone()));
                }
                response
            }
            _ => Ok(Response { elapsed, transmissions, ..Response::new(coapace_proto::Code::EMPTY) }),
        };
        if let (None, Some(inbox), Err(_)) = (&waiting, inbox, &result)
            && let Err(error) = result
        {
            return inbox.fail(error);
        }
        let Some(waiting) = waiting else { return };
        if result.is_err() {
            self.observed.remove(&exchange);
        }
        let ended = if matches!(event, Event::Failed { .. }) { Ended::Failed } else { Ended::Answered };
        self.destinations.count(waiting.to, ended, transmissions);
        // Whoever waited may have stopped a moment ago.
        let _ = waiting.tell.send(result);
    }

    /// The network says that a destination cannot be reached: all that is under way there ends.
    pub(crate) fn unreachable(&mut self, now: Instant, to: Remote, error: &io::Error) {
        let there: Vec<ExchangeId> =
            self.waiting.iter().filter(|(_, waiting)| waiting.to == to).map(|(&id, _)| id).collect();
        for exchange in there {
            let Some(waiting) = self.waiting.remove(&exchange) else { continue };
            self.destinations.count(to, Ended::Failed, self.endpoint.retransmissions(exchange) + 1);
            self.forget(now, exchange);
            let _ = waiting.tell.send(Err(Error::Unreachable(error.kind())));
        }
    }

    /// Nothing will come any more.
    pub(crate) fn give_up_all(&mut self) {
        for (_, waiting) in self.waiting.drain() {
            let _ = waiting.tell.send(Err(Error::Closed));
        }
        for (_, inbox) in self.observed.drain() {
            inbox.fail(Error::Closed);
        }
        self.groups.clear();
    }
}

/// A response as it arrived, unless something is in it that must be understood and is not (RFC 7252 §5.4.1).
fn received(message: &Message<'_>, elapsed: Duration, transmissions: u8) -> Result<Response, Error> {
    match message.first_unrecognised(&[option::BLOCK1, option::BLOCK2]) {
        Some(number) => Err(Error::BadOption(number)),
        None => Ok(Response::received(message, elapsed, transmissions)),
    }
}

fn failed(failure: Failure, transmissions: u8) -> Error {
    match failure {
        Failure::GivenUp => Error::GivenUp { transmissions },
        Failure::Reset => Error::Reset,
        Failure::TimedOut => Error::TimedOut,
    }
}
