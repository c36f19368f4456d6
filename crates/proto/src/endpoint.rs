//! The endpoint: what the application asks of it, and the life of an exchange.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use coapace_control::{Controller, Cue, Draw, Gauges, Instant, Marking, Outcome};

use crate::counters::{Counters, Tally};
use crate::deadlines::Deadlines;
use crate::deduplication::Deduplication;
use crate::exchange::{Exchange, ExchangeId, Failure, Purpose, Stage};
use crate::message::{Code, Kind, Message, Token};
use crate::outbox::Outbox;
use crate::peer::{Address, Peers};
use crate::slab::Slab;
use crate::{NONE, Setup};

/// One end of CoAP: client and server at once, towards any number of peers.
#[derive(Debug)]
pub struct Endpoint<C: Controller, A: Address> {
    pub(crate) setup: Arc<Setup<C>>,
    pub(crate) peers: Peers<C, A>,
    pub(crate) exchanges: Slab<Exchange<C>>,
    /// Of exchange `i` under the key `2i`, of peer `i` under `2i + 1`.
    pub(crate) deadlines: Deadlines,
    /// The line of departures, linked through [`Exchange::next_due`].
    pub(crate) due_head: u32,
    due_tail: u32,
    /// Exchanges that failed and are to be told, linked through [`Exchange::next`].
    failed: u32,
    begun: u32,
    pub(crate) outbox: Option<Box<Outbox<A>>>,
    pub(crate) deduplication: Option<Box<Deduplication<A>>>,
    pub(crate) tally: Tally,
}

/// A request to send.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Whether it is to be acknowledged, and so retransmitted until it is.
    pub confirmable: bool,
    /// The method: GET, PUT, … (constants in [`coap_numbers::code`]).
    pub code: Code,
    /// The token. Requests outstanding to one peer must differ in it, unless NSTART is 1 and responses are piggybacked
    /// (RFC 7252 §5.3.1). Markings in the token need a byte: it must not be longer than 7 then.
    pub token: Token,
    /// Options and payload, encoded.
    pub tail: &'a [u8],
}

/// What is needed to answer a request: kept by the application, so that the endpoint keeps nothing.
#[derive(Clone, Copy, Debug)]
pub struct Responder<A> {
    /// Whom to answer.
    pub to: A,
    pub(crate) message_id: u16,
    pub(crate) token: Token,
    pub(crate) confirmable: bool,
    pub(crate) acknowledged: bool,
    pub(crate) rexmit_cnt: Option<u8>,
}

/// What an endpoint tells the application.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a, A> {
    /// A request arrived; answer it with [`Endpoint::respond`].
    Request {
        /// Whom to answer, and how.
        responder: Responder<A>,
        /// The request.
        message: Message<'a>,
    },
    /// The response to a request arrived. The exchange is over.
    Response {
        /// Which request.
        exchange: ExchangeId,
        /// The response; its token is the request's.
        message: Message<'a>,
    },
    /// The peer has acknowledged. For a request, the response will come separately; else the exchange is over.
    Acknowledged {
        /// Which request or separate response.
        exchange: ExchangeId,
    },
    /// The peer answered a [`ping`](Endpoint::ping). The exchange is over.
    Pong {
        /// Which ping.
        exchange: ExchangeId,
    },
    /// The exchange is over without success.
    Failed {
        /// Which one.
        exchange: ExchangeId,
        /// Why.
        failure: Failure,
    },
}

/// Why a message is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// All of [`max_exchanges`](crate::Config::max_exchanges) are under way or waiting.
    ExchangesFull,
    /// All of [`max_peers`](crate::Config::max_peers) have exchanges under way.
    PeersFull,
    /// All of [`max_replies`](crate::Config::max_replies) are waiting to be sent.
    RepliesFull,
    /// The mechanism marks transmissions in the token, and the token has no byte left.
    TokenTooLong,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ExchangesFull => "too many exchanges under way",
            Self::PeersFull => "exchanges with too many peers under way",
            Self::RepliesFull => "too many replies waiting to be sent",
            Self::TokenTooLong => "the token leaves no byte for the ordinal of the transmission",
        })
    }
}

impl core::error::Error for SendError {}

impl<C: Controller, A: Address> Endpoint<C, A> {
    /// An endpoint. `seed` is its randomness for Message IDs and hash tables: where a stranger could exploit that,
    /// take it from the operating system.
    pub fn new(setup: Arc<Setup<C>>, seed: u64) -> Self {
        let bound = setup.config.max_deduplicated;
        Self {
            setup,
            peers: Peers::new(seed),
            exchanges: Slab::default(),
            deadlines: Deadlines::default(),
            due_head: NONE,
            due_tail: NONE,
            failed: NONE,
            begun: 0,
            outbox: None,
            deduplication: (bound > 0).then(|| Box::new(Deduplication::new(bound, seed))),
            tally: Tally::default(),
        }
    }

    /// Sends a request, as soon as NSTART and the mechanism allow.
    ///
    /// # Errors
    /// [`SendError`] says which bound is reached; nothing has changed then.
    pub fn request(&mut self, now: Instant, to: A, request: Request<'_>) -> Result<ExchangeId, SendError> {
        let Request { confirmable, code, token, tail } = request;
        self.begin(now, to, confirmable, Purpose::Request, code, token, tail)
    }

    /// Asks whether the peer is alive, with an empty confirmable message (RFC 7252 §4.3).
    ///
    /// # Errors
    /// [`SendError`] says which bound is reached.
    pub fn ping(&mut self, now: Instant, to: A) -> Result<ExchangeId, SendError> {
        self.begin(now, to, true, Purpose::Ping, Code::EMPTY, Token::EMPTY, &[])
    }

    /// Acknowledges a request whose response will take time: that response will be separate (RFC 7252 §5.2.2).
    /// Returns the responder to use for it.
    #[must_use]
    pub fn acknowledge(&mut self, now: Instant, responder: Responder<A>) -> Responder<A> {
        if !responder.confirmable || self.is_acknowledged(now, &responder) {
            return Responder { acknowledged: true, ..responder };
        }
        self.remember(now, &responder, crate::deduplication::Memory::Acknowledged);
        self.reply(responder.to, &Message::empty(Kind::Acknowledgement, responder.message_id), None);
        Responder { acknowledged: true, ..responder }
    }

    /// Answers a request: on its acknowledgement if that was not sent yet, else separately; without confirmation if the
    /// request came so. Returns the exchange of a separate response.
    ///
    /// # Errors
    /// [`SendError`] says which bound is reached.
    pub fn respond(
        &mut self,
        now: Instant,
        responder: Responder<A>,
        code: Code,
        tail: &[u8],
    ) -> Result<Option<ExchangeId>, SendError> {
        let Responder { to, message_id, token, confirmable, .. } = responder;
        if confirmable && self.is_acknowledged(now, &responder) {
            return self.begin(now, to, true, Purpose::Response, code, token, tail).map(Some);
        }
        let (kind, message_id) = if confirmable {
            if self.deduplication.is_some() {
                let memory = crate::deduplication::Memory::Replied { code, tail: tail.into() };
                self.remember(now, &responder, memory);
            }
            (Kind::Acknowledgement, message_id)
        } else {
            let bound = self.setup.config.max_peers;
            let peer = self.peers.find_or_insert(to, bound, &self.setup.controller);
            (Kind::NonConfirmable, self.next_message_id(peer.ok_or(SendError::PeersFull)?))
        };
        let reply = Message { code, token, tail, ..Message::empty(kind, message_id) };
        // The option is echoed on acknowledgements only (draft-ietf-core-fasor-02 §4.4).
        let count = responder.rexmit_cnt.filter(|_| confirmable);
        if self.reply(to, &reply, count) { Ok(None) } else { Err(SendError::RepliesFull) }
    }

    /// Ends an exchange that the application has lost interest in. Nothing will be told of it.
    pub fn cancel(&mut self, now: Instant, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get(id.index) else { return };
        let ended = matches!(exchange.stage, Stage::Ended | Stage::Failed(_));
        if exchange.generation == id.generation && !ended {
            self.finish(now, id.index, Outcome::Cancelled);
            self.release(id.index);
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.next()
    }

    /// The moment named by [`poll_timeout`](Self::poll_timeout) has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(key) = self.deadlines.pop_due(now) {
            let index = key / 2;
            if key % 2 == 1 {
                self.admit(now, index);
                continue;
            }
            match self.exchanges[index].stage {
                Stage::InFlight if !self.exchanges[index].confirmable => {
                    self.fail(now, index, Failure::TimedOut, Outcome::Cancelled);
                }
                Stage::InFlight if self.exchanges[index].retransmits < self.setup.config.max_retransmit => {
                    self.line_up(index);
                }
                Stage::InFlight => {
                    self.tally.given_up += 1;
                    self.fail(now, index, Failure::GivenUp, Outcome::GivenUp);
                }
                Stage::Acknowledged => self.fail(now, index, Failure::TimedOut, Outcome::Cancelled),
                Stage::Waiting | Stage::Due | Stage::Ended | Stage::Failed(_) => {}
            }
        }
    }

    /// The next exchange that failed.
    pub fn poll_event(&mut self) -> Option<Event<'static, A>> {
        let index = self.failed;
        let exchange = self.exchanges.get(index)?;
        let Stage::Failed(failure) = exchange.stage else { return None };
        let id = ExchangeId { index, generation: exchange.generation };
        self.failed = exchange.next;
        self.release(index);
        Some(Event::Failed { exchange: id, failure })
    }

    /// Forgets what the mechanism has learnt of a peer. Exchanges under way go on.
    pub fn forget(&mut self, peer: A) {
        if let Some(slot) = self.peers.find(peer) {
            self.peers[slot].state = self.setup.controller.state();
        }
    }

    /// What the mechanism believes of a peer, if there is state of it.
    pub fn gauges(&self, peer: A) -> Option<Gauges> {
        Some(self.setup.controller.gauges(&self.peers[self.peers.find(peer)?].state))
    }

    /// What was counted so far.
    pub fn counters(&self) -> Counters {
        let Tally { received, malformed, late_replies, started, retransmissions, completed, given_up } =
            self.tally;
        let known = self.deduplication.as_deref();
        Counters {
            received,
            malformed,
            duplicates: known.map_or(0, |known| known.duplicates),
            late_replies,
            started,
            retransmissions,
            completed,
            given_up,
            replies_dropped: self.outbox.as_deref().map_or(0, |outbox| outbox.dropped),
            forgotten_early: known.map_or(0, |known| known.forgotten_early),
        }
    }

    /// Exchanges under way or waiting.
    pub fn exchanges(&self) -> usize {
        self.exchanges.in_use()
    }

    /// Peers remembered.
    pub fn peers(&self) -> usize {
        self.peers.len()
    }

    #[allow(clippy::too_many_arguments)] // the fields of an exchange, once
    fn begin(
        &mut self,
        now: Instant,
        to: A,
        confirmable: bool,
        purpose: Purpose,
        code: Code,
        token: Token,
        tail: &[u8],
    ) -> Result<ExchangeId, SendError> {
        let marked = confirmable && purpose == Purpose::Request;
        if marked
            && token.len() == 8
            && matches!(self.wanted_marking(to), Marking::Token | Marking::TokenOnRetransmit)
        {
            return Err(SendError::TokenTooLong);
        }
        let Setup { controller, config } = &*self.setup;
        let index =
            self.exchanges.take(config.max_exchanges, Exchange::blank).ok_or(SendError::ExchangesFull)?;
        let Some(peer) = self.peers.find_or_insert(to, config.max_peers, controller) else {
            self.exchanges.give_back(index);
            return Err(SendError::PeersFull);
        };
        let exchange = &mut self.exchanges[index];
        exchange.tail.clear();
        exchange.tail.extend_from_slice(tail);
        exchange.forget_departures();
        exchange.control = None;
        exchange.stage = Stage::Waiting;
        (exchange.departed, exchange.retransmits) = (false, 0);
        (exchange.peer, exchange.next) = (peer, NONE);
        (exchange.confirmable, exchange.purpose) = (confirmable, purpose);
        (exchange.code, exchange.token) = (code, token);
        exchange.ordinal = self.begun;
        self.begun = self.begun.wrapping_add(1);
        let id = ExchangeId { index, generation: exchange.generation };

        let tail = core::mem::replace(&mut self.peers[peer].waiting_tail, index);
        match tail {
            NONE => self.peers[peer].waiting_head = index,
            tail => self.exchanges[tail].next = index,
        }
        self.admit(now, peer);
        Ok(id)
    }

    /// How the mechanism wants transmissions to this peer to be told apart, whether there is state of it or not.
    pub(crate) fn wanted_marking(&self, peer: A) -> Marking {
        let controller = &self.setup.controller;
        let limits = match self.peers.find(peer) {
            Some(slot) => controller.limits(&self.peers[slot].state),
            None => controller.limits(&controller.state()),
        };
        limits.marking
    }

    /// Lets exchanges that wait for a place go, as far as NSTART and the mechanism allow.
    pub(crate) fn admit(&mut self, now: Instant, peer: u32) {
        while self.peers[peer].waiting_head != NONE {
            let there = &mut self.peers[peer];
            let index = there.waiting_head;
            let exchange = &mut self.exchanges[index];
            let confirmable = exchange.confirmable;
            let limits = self.setup.controller.limits(&there.state);
            if there.outstanding >= limits.nstart.unwrap_or(self.setup.config.nstart) {
                return;
            }
            let earliest = if confirmable { limits.next_confirmable } else { there.next_non };
            if earliest > now {
                return self.deadlines.set(2 * peer + 1, earliest);
            }
            there.waiting_head = exchange.next;
            if there.waiting_head == NONE {
                there.waiting_tail = NONE;
            }
            exchange.next = core::mem::replace(&mut there.active, index);
            there.outstanding += 1;
            self.line_up(index);
            if earliest != Instant::ZERO || !confirmable {
                // What paces knows of this one only once it has departed: transmit calls again then.
                return;
            }
        }
    }

    /// Puts an exchange at the end of the line of departures.
    fn line_up(&mut self, index: u32) {
        let exchange = &mut self.exchanges[index];
        (exchange.stage, exchange.in_line, exchange.next_due) = (Stage::Due, true, NONE);
        match core::mem::replace(&mut self.due_tail, index) {
            NONE => self.due_head = index,
            tail => self.exchanges[tail].next_due = index,
        }
    }

    /// Takes from the line of departures the first exchange that is still due.
    pub(crate) fn next_in_line(&mut self) -> Option<u32> {
        while self.due_head != NONE {
            let index = self.due_head;
            let exchange = &mut self.exchanges[index];
            exchange.in_line = false;
            self.due_head = exchange.next_due;
            if self.due_head == NONE {
                self.due_tail = NONE;
            }
            match exchange.stage {
                Stage::Due => return Some(index),
                Stage::Ended => self.exchanges.give_back(index),
                _ => {}
            }
        }
        None
    }

    /// Gives up the exchange's place among the outstanding, telling the mechanism.
    pub(crate) fn settle(&mut self, now: Instant, index: u32, outcome: Outcome) {
        let exchange = &mut self.exchanges[index];
        if !matches!(exchange.stage, Stage::Due | Stage::InFlight) {
            return;
        }
        let peer = &mut self.peers[exchange.peer];
        if let Some(control) = exchange.control.take() {
            let cue = Cue { now, draw: Draw::ZERO, outstanding: peer.outstanding };
            self.setup.controller.on_end(&mut peer.state, control, outcome, cue);
        }
        peer.outstanding -= 1;
        self.deadlines.clear(2 * index);
    }

    /// Takes an exchange away from its peer. Its slot is still to be released, or to be told as failed.
    pub(crate) fn finish(&mut self, now: Instant, index: u32, outcome: Outcome) {
        self.settle(now, index, outcome);
        self.deadlines.clear(2 * index);
        let (peer, next) = (self.exchanges[index].peer, self.exchanges[index].next);
        if self.exchanges[index].stage == Stage::Waiting {
            let mut before = NONE;
            let mut at = self.peers[peer].waiting_head;
            while at != index {
                before = at;
                at = self.exchanges[at].next;
            }
            match before {
                NONE => self.peers[peer].waiting_head = next,
                before => self.exchanges[before].next = next,
            }
            if next == NONE {
                self.peers[peer].waiting_tail = before;
            }
        } else if self.peers[peer].active == index {
            self.peers[peer].active = next;
        } else {
            let mut at = self.peers[peer].active;
            while self.exchanges[at].next != index {
                at = self.exchanges[at].next;
            }
            self.exchanges[at].next = next;
        }
        self.admit(now, peer);
    }

    /// Frees the slot of a finished exchange, now or, if it stands in the line of departures, when that has passed it.
    pub(crate) fn release(&mut self, index: u32) {
        let exchange = &mut self.exchanges[index];
        exchange.stage = Stage::Ended;
        exchange.generation = exchange.generation.wrapping_add(1);
        if !exchange.in_line {
            self.exchanges.give_back(index);
        }
    }

    pub(crate) fn fail(&mut self, now: Instant, index: u32, failure: Failure, outcome: Outcome) {
        self.finish(now, index, outcome);
        self.exchanges[index].stage = Stage::Failed(failure);
        self.exchanges[index].next = core::mem::replace(&mut self.failed, index);
    }

    /// Queues a message that waits for nothing, with the Rexmit-Cnt option if there is a `count`.
    pub(crate) fn reply(&mut self, to: A, message: &Message<'_>, count: Option<u8>) -> bool {
        let outbox = self.outbox.get_or_insert_default();
        outbox.push(self.setup.config.max_replies, to, |buffer| message.write_marked(count, buffer))
    }

    pub(crate) fn next_message_id(&mut self, peer: u32) -> u16 {
        let next = self.peers[peer].next_message_id;
        self.peers[peer].next_message_id = next.wrapping_add(1);
        next
    }
}
