//! A relay that runs a mechanism for clients without one.
//!
//! The relay runs on the device, or near it, between CoAP programs and the network. A program sends to the relay
//! instead of the server. The relay absorbs the copies that the program's own timer makes, and forwards the message
//! with the mechanism: timeouts, NSTART, pace, marking, patience. In front of a server, the relay does the server's
//! part of congestion control.
//!
//! [`Relay`] is a state machine without sockets and without a clock, and is called like an endpoint. [`Service`] drives it
//! on real sockets.
//!
//! # How it is built
//!
//! The relay has two *faces*: the sides towards the clients and towards the server. Each face is an
//! [`Endpoint`](coapace_proto::Endpoint) with the mechanism. A request that arrives at one face is sent on by the
//! endpoint of the other face, and the answer returns the same way. This works in both directions. Endpoints handle
//! everything about messages: copies, retransmissions, separate responses, rates, markings, observers. The relay itself
//! only remembers which exchange at one face belongs to which request at the other (a *line*), and where to send it.
//!
//! Both endpoints identify a peer by the address of the client. At the face towards the server, this address (a
//! *source*) names the port of the relay that sends the client's requests: the server sees a different port for each
//! client.

mod bodies;
mod config;
mod counts;
mod face;
mod line;
mod loops;
mod message;
mod requests;
mod responses;
mod service;
mod sources;
mod strangers;
#[cfg(test)]
mod tests;
mod too_long;

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use coapace_control::{Draw, Instant};
use coapace_net::DtlsCounters;
use coapace_proto::echo::Gate;
use coapace_proto::{Event, ExchangeId, Setup};

pub use config::RelayConfig;
pub use counts::{RelayCounts, RelayReport};
pub use face::Face;
pub use service::{Handle, Service, ServiceOptions};

use bodies::RelayedBodies;
use face::FaceEndpoint;
use loops::Loops;
use sources::RelaySources;

/// The maximum number of queued datagrams of other protocols. They wait only until the next call of
/// [`Relay::poll_transmit`].
const MAX_UNSEEN: usize = 64;

/// The relay: its clients and their exchanges, without sockets and without a clock.
///
/// Call it like an [`Endpoint`](coapace_proto::Endpoint): pass it what arrives, and after each call send what
/// [`poll_transmit`](Self::poll_transmit) returns, close the ports that [`poll_closed`](Self::poll_closed) returns, and ask
/// [`poll_timeout`](Self::poll_timeout) when to call [`handle_timeout`](Self::handle_timeout).
#[derive(Debug)]
pub struct Relay {
    config: RelayConfig,
    /// The endpoints at the two faces: towards the clients, and towards the server.
    halves: [FaceEndpoint; 2],
    sources: RelaySources,
    /// The clients with a verified address.
    gate: Gate<SocketAddr>,
    /// The number of lines of unverified clients.
    strangers: usize,
    loops: Loops,
    /// Datagrams of other protocols, to be forwarded unchanged, with the face to send them from.
    unseen: VecDeque<(Face, SocketAddr, Vec<u8>)>,
    /// The bodies that are read ahead of their clients.
    bodies: RelayedBodies,
    /// The ends of the waits for responses to non-confirmable requests.
    waits: BTreeSet<(Instant, Face, ExchangeId)>,
    counts: RelayCounts,
    /// The seed of the relay's own tokens, and the number of tokens drawn so far.
    tokens: (u64, u64),
    /// The number of observations so far, which gives each a resource number.
    observations: u64,
}

impl Relay {
    /// Creates a relay. Message IDs, tokens and hash tables are derived from `seed`: take it from the operating system if
    /// someone could exploit a known one.
    pub fn new(config: RelayConfig, seed: u64) -> Self {
        let half = |face| {
            // No client is sent a body at once: it asks for each block.
            let bulk = config.bulk.filter(|_| face == Face::Server);
            let setup = Setup { controller: config.mechanism, config: config.endpoint(face), bulk };
            FaceEndpoint::new(Arc::new(setup), seed)
        };
        let mut halves = [half(Face::Clients), half(Face::Server)];
        halves[Face::Clients as usize].endpoint.keep_requests(strangers::network);
        Self {
            halves,
            sources: RelaySources::new(config.max_sources),
            gate: strangers::gate(&config, seed),
            strangers: 0,
            loops: Loops::default(),
            unseen: VecDeque::new(),
            bodies: RelayedBodies::default(),
            waits: BTreeSet::new(),
            counts: RelayCounts::default(),
            tokens: (seed, 0),
            observations: 0,
            config,
        }
    }

    fn half(&mut self, face: Face) -> &mut FaceEndpoint {
        &mut self.halves[face as usize]
    }

    /// Handles a datagram that arrived at `face`. `source` is the client's address at the face towards the clients. At the face
    /// towards the server it is the source whose port the datagram arrived at.
    pub fn handle_datagram(&mut self, now: Instant, face: Face, source: SocketAddr, bytes: &[u8]) {
        if message::is_dtls(bytes) {
            return self.pass_unseen(now, face, source, bytes);
        }
        if let Some(event) = self.half(face).endpoint.handle_datagram(now, source, bytes) {
            self.react(now, face, event);
        }
    }

    /// Handles the timers that are due by `now`. Call it at the time returned by [`poll_timeout`](Self::poll_timeout); earlier
    /// calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        for face in Face::BOTH {
            self.half(face).endpoint.handle_timeout(now);
        }
        while self.waits.first().is_some_and(|&(at, ..)| at <= now)
            && let Some((_, face, exchange)) = self.waits.pop_first()
        {
            self.half(face).endpoint.cancel(now, exchange);
            // An observer whose registration the server did not answer ends, too.
            let line = self.drop_line(now, face, exchange);
            self.counts.unanswered += u64::from(line.is_some_and(|line| !line.is_statement));
        }
        self.drop_idle_bodies(now);
        self.take_events(now);
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout); `None` without a deadline.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let ends = self.waits.first().map(|&(at, ..)| at);
        self.halves
            .iter()
            .filter_map(|half| half.endpoint.poll_timeout())
            .chain(ends)
            .chain(self.bodies.deadline())
            .min()
    }

    /// Appends the next datagram to send to `buffer`. Returns the face to send it from, and its destination: the address of a
    /// client, or the source whose port sends it to the server. Returns `None` if there is nothing to send now.
    ///
    /// `draw` returns the random number of a transmission.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        mut draw: impl FnMut() -> Draw,
        buffer: &mut Vec<u8>,
    ) -> Option<(Face, SocketAddr)> {
        if let Some((face, source, bytes)) = self.unseen.pop_front() {
            buffer.extend_from_slice(&bytes);
            return Some((face, source));
        }
        loop {
            self.read_ahead(now);
            for face in Face::BOTH {
                let start = buffer.len();
                while let Some(transmit) = self.half(face).endpoint.poll_transmit(now, |_| draw(), buffer) {
                    // A source that has left for another has no port any more. Its datagrams are dropped.
                    if face == Face::Clients || self.sources.has(transmit.to) {
                        return Some((face, transmit.to));
                    }
                    buffer.truncate(start);
                }
            }
            // A failure may have queued an answer, which departs in the next round.
            if !self.take_events(now) {
                return None;
            }
        }
    }

    /// Returns the next source whose port must be closed, because the source was dropped for another; `None` if no port
    /// must be closed.
    pub fn poll_closed(&mut self) -> Option<SocketAddr> {
        self.sources.poll_closed()
    }

    /// Changes the limit of sources, because the system has no more ports. It is at least 1. Idle sources are dropped; others
    /// stay until they are idle.
    pub fn set_max_sources(&mut self, bound: u32) {
        self.sources.set_bound(bound);
    }

    /// Handles the failures reported by the endpoints. Returns whether there were any.
    fn take_events(&mut self, now: Instant) -> bool {
        let mut any = false;
        for face in Face::BOTH {
            while let Some(event) = self.half(face).endpoint.poll_event() {
                self.react(now, face, event);
                any = true;
            }
        }
        any
    }

    /// Reacts to an event of the endpoint at `face`.
    fn react(&mut self, now: Instant, face: Face, event: Event<'_, SocketAddr>) {
        match event {
            Event::Request { responder, message } => self.pass_request(now, face, responder, &message),
            Event::Response { exchange, message } if self.bodies.has(exchange) => {
                self.take_ahead(now, exchange, Ok(&message));
            }
            Event::Failed { exchange, failure } if self.bodies.has(exchange) => {
                self.take_ahead(now, exchange, Err(failure));
            }
            Event::Response { exchange, message } => self.pass_response(now, face, exchange, &message),
            Event::Notification { exchange, message } => {
                self.pass_notification(now, face, exchange, &message);
            }
            Event::Acknowledged { exchange } => self.pass_acknowledgement(now, face, exchange),
            Event::Failed { exchange, failure } => self.pass_failure(now, face, exchange, failure),
            Event::ObserverGone { observer, .. } => self.end_observation(now, face, &observer),
            // The relay rejects no response.
            Event::Pong { .. } | Event::Rejected { .. } => {}
        }
    }

    /// Forwards a datagram of another protocol unchanged.
    fn pass_unseen(&mut self, now: Instant, face: Face, source: SocketAddr, bytes: &[u8]) {
        // DTLS is not opened here, so no Echo option can verify the client.
        let stranger = self.config.verify.concerns(source.ip());
        let known = match face {
            Face::Clients if self.loops.comes_back(now, source, bytes) => {
                self.counts.loops += 1;
                return;
            }
            Face::Clients => self.sources.admit(now, source, stranger),
            // An answer at a port that clients share does not show which client it is for.
            Face::Server => source.port() != 0 && self.sources.has(source),
        };
        if known && self.unseen.len() < MAX_UNSEEN {
            self.counts.unseen += 1;
            self.unseen.push_back((face.other(), source, bytes.into()));
        } else {
            self.counts.unseen_dropped += 1;
        }
    }

    /// Starts to collect distributions of round-trip times, timeouts and waits towards the server.
    pub fn measure(&mut self) {
        self.halves.iter_mut().for_each(|half| half.endpoint.measure());
    }

    /// Returns the counters so far, and the current sizes of the relay's tables.
    pub fn report(&self) -> RelayReport {
        let [clients, server] = &self.halves;
        RelayReport {
            mechanism: self.config.mechanism,
            relay: self.counts,
            clients: clients.endpoint.counters(),
            server: server.endpoint.counters(),
            measures: server.endpoint.measures().copied().unwrap_or_default(),
            lines: (clients.lines.len() + server.lines.len()) as u64,
            bodies: self.bodies.len() as u64,
            sources: self.sources.len() as u64,
            sources_met: self.sources.met,
            sources_closed: self.sources.closed,
            dtls: DtlsCounters::default(),
            sessions: 0,
        }
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
