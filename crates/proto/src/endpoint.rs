//! The endpoint: what the application asks of it.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use coapace_control::{Controller, Gauges, Instant, Outcome};

use crate::code::Code;
use crate::counters::{Counters, Tally};
use crate::deadlines::Deadlines;
use crate::deduplication::{Deduplication, Memory};
use crate::exchange::{Exchange, ExchangeId, Failure, Purpose, Stage};
use crate::measures::Measures;
use crate::message::{Kind, Message, Token};
use crate::observers::Observer;
use crate::peer::{Address, Peers};
use crate::rare::Rare;
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
    pub(crate) due_tail: u32,
    /// Exchanges that failed and are to be told, linked through [`Exchange::next`].
    pub(crate) failed: u32,
    pub(crate) begun: u32,
    pub(crate) rare: Option<Box<Rare<A>>>,
    pub(crate) tally: Tally,
}

/// A request to send.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Whether it is to be acknowledged, and so retransmitted until it is. One that is not may still leave as
    /// confirmable ([`confirmable_every`](crate::Config::confirmable_every)), and then be acknowledged or given up.
    pub confirmable: bool,
    /// The method: GET, PUT, … (constants in [`coap_numbers::code`]).
    pub code: Code,
    /// The token. Requests outstanding to one peer must differ in it, unless NSTART is 1 and responses are piggybacked
    /// (RFC 7252 §5.3.1). Markings in the token need a byte: it must not be longer than 7 then.
    pub token: Token,
    /// Options and payload, encoded.
    pub tail: &'a [u8],
    /// Whether it may be carried out more than once, though its method or its options do not say so: a POST, say, that only
    /// reads. A request with Block1, If-Match or If-None-Match may not by itself, whatever its method: what a second copy
    /// does depends on the first.
    /// Under a mechanism with [`Marking::FreshMessageId`](coapace_control::Marking::FreshMessageId) the server takes a
    /// retransmission for a request of its own.
    pub repeatable: bool,
}

/// What is needed to answer a request: kept by the application, so that the endpoint keeps nothing.
#[derive(Clone, Copy, Debug)]
pub struct Responder<A> {
    /// Whom to answer.
    pub to: A,
    /// The method of the request.
    pub method: Code,
    /// Whether the request came to a group: then [few responses](crate::group::is_worth_sending) are sent, and not at once.
    pub group: bool,
    pub(crate) message_id: u16,
    pub(crate) token: Token,
    pub(crate) confirmable: bool,
    pub(crate) acknowledged: bool,
    pub(crate) rexmit_cnt: Option<u8>,
}

impl<A> Responder<A> {
    /// Returns the token of the request.
    pub fn token(&self) -> Token {
        self.token
    }

    /// The same for a response that nobody confirms, whatever the request was: [`Endpoint::respond`] lets it depart at
    /// once, not on the acknowledgement, and keeps nothing of it (RFC 7252 §5.2.2). One that was not
    /// [acknowledged](Endpoint::acknowledge) still has to be.
    #[must_use]
    pub fn unconfirmed(self) -> Self {
        Self { confirmable: false, ..self }
    }
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
    /// Another response to a request that goes on: a notification (RFC 7641), or what a member of a group answers
    /// (RFC 7252 §8). A notification that is not a success, or has no Observe option, is the last.
    Notification {
        /// Which observation or request to a group.
        exchange: ExchangeId,
        /// The response.
        message: Message<'a>,
    },
    /// A notification was rejected or given up: there is one observer less.
    ObserverGone {
        /// Who it was.
        observer: Observer<A>,
        /// Why.
        failure: Failure,
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
    /// All of [`max_observers`](crate::Config::max_observers) are registered.
    ObserversFull,
    /// All of [`max_listeners`](crate::Config::max_listeners) are open.
    ListenersFull,
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
            Self::ObserversFull => "too many observers",
            Self::ListenersFull => "too many observations and requests to groups open",
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
        let rare = (bound > 0).then(|| {
            let (exchange_lifetime, non_lifetime) = (setup.exchange_lifetime(), setup.non_lifetime());
            let deduplication = Deduplication::new(bound, seed, exchange_lifetime, non_lifetime);
            Box::new(Rare { deduplication: Some(deduplication), ..Rare::default() })
        });
        Self {
            setup,
            peers: Peers::new(seed),
            exchanges: Slab::default(),
            deadlines: Deadlines::default(),
            due_head: NONE,
            due_tail: NONE,
            failed: NONE,
            begun: 0,
            rare,
            tally: Tally::default(),
        }
    }

    /// Sends a request, as soon as NSTART, the mechanism and, for a non-confirmable one, PROBING_RATE allow.
    ///
    /// # Errors
    /// [`SendError`] says which bound is reached; nothing has changed then.
    pub fn request(&mut self, now: Instant, to: A, request: Request<'_>) -> Result<ExchangeId, SendError> {
        let Request { confirmable, code, token, tail, repeatable } = request;
        let id = self.begin(now, to, confirmable, Purpose::Request, code, token, tail)?;
        self.exchanges[id.index].repeatable = repeatable || code.is_repeatable(tail);
        Ok(id)
    }

    /// Sends a request that asks for no response (RFC 7967), as its No-Response option says. One that is confirmable ends
    /// with [`Event::Acknowledged`], or with the response of a server that does not know the option; of one that is not,
    /// nothing is told.
    ///
    /// # Errors
    /// [`SendError`] says which bound is reached.
    pub fn tell(&mut self, now: Instant, to: A, request: Request<'_>) -> Result<ExchangeId, SendError> {
        let Request { confirmable, code, token, tail, .. } = request;
        self.begin(now, to, confirmable, Purpose::Statement, code, token, tail)
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
        if responder.confirmable && !self.was_acknowledged(now, &responder, || Memory::Acknowledged) {
            self.reply(responder.to, &Message::empty(Kind::Acknowledgement, responder.message_id), None);
        }
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
        let memory = || Memory::Replied { code, tail: tail.into() };
        if confirmable && self.was_acknowledged(now, &responder, memory) {
            return self.begin(now, to, true, Purpose::Response, code, token, tail).map(Some);
        }
        let (kind, message_id) = if confirmable {
            (Kind::Acknowledgement, message_id)
        } else {
            let peer = self.find_or_insert_peer(to).ok_or(SendError::PeersFull)?;
            // It does not wait for an ID to be free: whoever is answered so often asks under IDs that come back as fast.
            (Kind::NonConfirmable, self.peers[peer].message_ids.take(now))
        };
        let reply = Message { code, token, tail, ..Message::empty(kind, message_id) };
        // The option is echoed on acknowledgements only (draft-ietf-core-fasor-02 §4.4).
        let count = responder.rexmit_cnt.filter(|_| confirmable);
        if self.reply(to, &reply, count) { Ok(None) } else { Err(SendError::RepliesFull) }
    }

    /// Ends an exchange, an observation or a request to a group that the application has lost interest in. Nothing will
    /// be told of it.
    pub fn cancel(&mut self, now: Instant, id: ExchangeId) {
        if let Some(listeners) = self.listeners() {
            listeners.forget(id);
        }
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
                Stage::InFlight => self.time_out(now, index),
                Stage::Acknowledged => self.fail(now, index, Failure::TimedOut, Outcome::Cancelled),
                Stage::Waiting | Stage::Due | Stage::Ended | Stage::Failed(_) => {}
            }
        }
    }

    /// The next exchange that failed, or the next observer that was lost.
    pub fn poll_event(&mut self) -> Option<Event<'static, A>> {
        loop {
            let index = self.failed;
            let exchange = self.exchanges.get(index)?;
            let Stage::Failed(failure) = exchange.stage else { return None };
            let (id, purpose) = (ExchangeId { index, generation: exchange.generation }, exchange.purpose);
            self.failed = exchange.next;
            self.release(index);
            if purpose != Purpose::Notification {
                self.observation_failed(id, purpose);
                return Some(Event::Failed { exchange: id, failure });
            }
            // The observer may have left in the meantime.
            let gone = self.observer_failed(index, failure);
            if gone.is_some() {
                return gone;
            }
        }
    }

    /// A request is over without a response: if it was to register, no notification is listened for.
    pub(crate) fn observation_failed(&mut self, id: ExchangeId, purpose: Purpose) {
        if purpose == Purpose::Observation
            && let Some(listeners) = self.listeners()
        {
            listeners.forget(id);
        }
    }

    pub(crate) fn deduplication(&mut self) -> Option<&mut Deduplication<A>> {
        self.rare.as_mut()?.deduplication.as_mut()
    }

    /// Tells addresses apart by where they come from: those of one network, say, are one source. Where there is no room
    /// for all messages to be remembered, a source that has more than its share is the first to go short. Without this
    /// each address is a source of its own.
    pub fn set_source(&mut self, source: fn(&A) -> u64) {
        if let Some(deduplication) = self.deduplication() {
            deduplication.set_source(source);
        }
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
        let Tally { received, late_replies, started, retransmissions, completed, given_up } = self.tally;
        let rare = self.rare.as_deref();
        let known = rare.and_then(|rare| rare.deduplication.as_ref());
        let observers = rare.and_then(|rare| rare.observers.as_ref());
        let told = observers.map(|observers| observers.told).unwrap_or_default();
        Counters {
            received,
            malformed: rare.map_or(0, |rare| rare.malformed),
            duplicates: known.map_or(0, |known| known.duplicates),
            late_replies,
            started,
            retransmissions,
            completed,
            converted: rare.map_or(0, |rare| rare.converted),
            given_up,
            timed_out: rare.map_or(0, |rare| rare.timed_out),
            rejected: rare.map_or(0, |rare| rare.rejected),
            notifications: told.notifications,
            notifications_replaced: told.replaced,
            observers_rejected: told.rejected,
            observers_given_up: told.given_up,
            observers_displaced: told.displaced,
            peers_evicted: rare.map_or(0, |rare| rare.peers_evicted),
            replies_dropped: rare.map_or(0, |rare| rare.outbox.dropped),
            forgotten_early: known.map_or(0, Deduplication::forgotten_early),
        }
    }

    /// From now on [`measures`](Self::measures) are kept, in 700 bytes.
    pub fn measure(&mut self) {
        self.rare.get_or_insert_default().measures.get_or_insert_default();
    }

    /// What was measured so far, if it was asked for.
    pub fn measures(&self) -> Option<&Measures> {
        self.rare.as_deref()?.measures.as_deref()
    }

    /// Mechanism and parameters.
    pub fn setup(&self) -> &Setup<C> {
        &self.setup
    }

    /// Retransmissions of an exchange: of one under way, or of the one that the last event ended.
    pub fn retransmissions(&self, id: ExchangeId) -> u8 {
        self.exchanges.get(id.index).map_or(0, |exchange| exchange.retransmits)
    }

    /// Exchanges under way or waiting.
    pub fn exchanges(&self) -> usize {
        self.exchanges.in_use()
    }

    /// Peers remembered.
    pub fn peers(&self) -> usize {
        self.peers.len()
    }

    /// Returns whether messages to a peer have Message IDs left that it does not remember (RFC 7252 §4.4). If not, 8,192 may be
    /// left for what is under way, and what begins later may have to wait. Another endpoint, on another port, has others.
    pub fn has_message_ids(&self, now: Instant, peer: A) -> bool {
        let known = self.peers.find(peer).map(|peer| &self.peers[peer].message_ids);
        known.is_none_or(|ids| ids.has_spare_block(now, || self.setup.exchange_lifetime()))
    }
}
