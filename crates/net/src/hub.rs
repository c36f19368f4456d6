//! An endpoint and what the tasks around it share: its socket, its clock, and who waits for what.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use coap_numbers::option;
use coapace_control::{Instant, Mechanism};
use coapace_proto::{Endpoint, Event, ExchangeId, Failure, Responder, SendError, Setup};
use tokio::sync::{Notify, oneshot};

use crate::address::Remote;
use crate::carrier::{Outgoing, send_singly};
use crate::clock::{Clock, Random};
use crate::socket::Socket;
use crate::stats::{Destinations, Ended, NetCounters};
use crate::{Error, Response};

/// One endpoint on one socket. A driver receives and keeps its timers; whoever else has something to send sends it on
/// the spot, so that it takes no detour through the driver's task.
#[derive(Debug)]
pub(crate) struct Hub {
    state: Mutex<State>,
    pub(crate) socket: Socket,
    pub(crate) clock: Clock,
    /// The driver is to look again: an earlier deadline, something left to send, the end.
    pub(crate) attention: Notify,
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
    /// A response, encoded.
    scratch: Vec<u8>,
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
        let mut random = Random::default();
        let max_destinations = setup.config.max_peers as usize;
        let state = State {
            endpoint: Endpoint::new(setup, random.next()),
            outgoing: Outgoing::default(),
            counters: NetCounters::default(),
            destinations: Destinations::new(max_destinations),
            random,
            waiting: HashMap::new(),
            scratch: Vec::new(),
            armed: Instant::MAX,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            socket,
            clock: Clock::start(),
            attention: Notify::new(),
            closing: AtomicBool::new(false),
            end: Notify::new(),
            pending: AtomicU32::new(0),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the endpoint, and sends what there is to send after it.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut State, Instant) -> T) -> T {
        let now = self.clock.now();
        let mut state = self.lock();
        let done = act(&mut state, now);
        state.send(now, |outgoing| send_singly(&self.socket, outgoing));
        let sooner = state.endpoint.poll_timeout().is_some_and(|at| at < state.armed);
        if sooner || !state.outgoing.is_empty() {
            self.attention.notify_one();
        }
        done
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

    /// Answers a request.
    pub(crate) fn respond(&self, responder: Responder<Remote>, response: &Response) {
        self.with(|state, now| state.respond(now, responder, response));
    }
}

impl State {
    /// A token for a request.
    pub(crate) fn token(&mut self) -> coapace_proto::Token {
        self.random.token()
    }

    /// Queues the answer to a request.
    pub(crate) fn respond(&mut self, now: Instant, responder: Responder<Remote>, response: &Response) {
        self.scratch.clear();
        response.options.write(&response.payload, &mut self.scratch);
        match self.endpoint.respond(now, responder, response.code, &self.scratch) {
            // The endpoint counts these itself.
            Ok(_) | Err(SendError::RepliesFull) => {}
            Err(_) => self.counters.responses_dropped += 1,
        }
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
            self.tell(now, event);
        }
    }

    /// What became of an exchange goes to whoever waits for it.
    pub(crate) fn tell(&mut self, now: Instant, event: Event<'_, Remote>) {
        let exchange = match event {
            Event::Response { exchange, .. } | Event::Pong { exchange } | Event::Failed { exchange, .. } => {
                exchange
            }
            Event::Acknowledged { .. }
            | Event::Request { .. }
            | Event::Notification { .. }
            | Event::ObserverGone { .. } => return,
        };
        let Some(waiting) = self.waiting.remove(&exchange) else { return };
        let transmissions = self.endpoint.retransmissions(exchange) + 1;
        let elapsed = now.since(waiting.since).into();
        let (ended, result) = match event {
            Event::Failed { failure, .. } => (Ended::Failed, Err(failed(failure, transmissions))),
            Event::Response { message, .. } => {
                let foreign = message.first_unrecognised(&[option::BLOCK1, option::BLOCK2]);
                let response = Response::received(&message, elapsed, transmissions);
                (Ended::Answered, foreign.map_or(Ok(response), |number| Err(Error::BadOption(number))))
            }
            _ => {
                let pong = Response { elapsed, transmissions, ..Response::new(coapace_proto::Code::EMPTY) };
                (Ended::Answered, Ok(pong))
            }
        };
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
            self.endpoint.cancel(now, exchange);
            let _ = waiting.tell.send(Err(Error::Unreachable(error.kind())));
        }
    }

    /// Nothing will come any more.
    pub(crate) fn give_up_all(&mut self) {
        for (_, waiting) in self.waiting.drain() {
            let _ = waiting.tell.send(Err(Error::Closed));
        }
    }
}

fn failed(failure: Failure, transmissions: u8) -> Error {
    match failure {
        Failure::GivenUp => Error::GivenUp { transmissions },
        Failure::Reset => Error::Reset,
        Failure::TimedOut => Error::TimedOut,
    }
}
