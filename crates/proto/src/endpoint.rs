//! The endpoint, and the functions for the application.

use alloc::boxed::Box;
use alloc::sync::Arc;

use coapace_control::{Controller, Gauges, Instant};

use crate::code::Code;
use crate::counters::{Counters, EndpointTally};
use crate::deadlines::{DeadlineOwner, Deadlines};
use crate::deduplication::{Deduplication, IncomingMessage, Reaction, Worth};
use crate::event::{Event, Responder};
use crate::exchange::{ExchangeEnd, ExchangeId, ExchangePurpose, ExchangeStage, Failure, OpenExchange};
use crate::list::SlotStack;
use crate::measures::Measures;
use crate::message::{Kind, Message, Token};
use crate::peer::{Address, Peers};
use crate::rare::Rare;
use crate::request::{Request, SendError};
use crate::slab::Slab;
use crate::sluice::Sluice;
use crate::{Config, NONE, Setup};

/// The length of an empty message, in bytes (RFC 7252 §4.1).
const EMPTY: usize = 4;

/// A CoAP endpoint: client and server at once, towards any number of peers.
#[derive(Debug)]
pub struct Endpoint<C: Controller, A: Address> {
    pub(crate) setup: Arc<Setup<C>>,
    pub(crate) peers: Peers<C, A>,
    pub(crate) exchanges: Slab<OpenExchange<C>>,
    pub(crate) deadlines: Deadlines,
    /// The slots of the first exchange in the queue of departures (`due_head`) and of the last one (`due_tail`). The
    /// queue is linked through [`OpenExchange::next_due`].
    pub(crate) due_head: u32,
    pub(crate) due_tail: u32,
    /// Exchanges that failed by a timeout and that [`poll_event`](Self::poll_event) has yet to return.
    pub(crate) failed: SlotStack,
    /// The number of exchanges begun.
    pub(crate) begun: u32,
    pub(crate) rare: Option<Box<Rare<A>>>,
    pub(crate) tally: EndpointTally,
}

impl<C: Controller, A: Address> Endpoint<C, A> {
    /// Creates an endpoint. Message IDs and hash tables are derived from `seed`. Take a random seed from the operating
    /// system if someone could exploit a known seed.
    pub fn new(setup: Arc<Setup<C>>, seed: u64) -> Self {
        let Config { max_deduplicated: bound, max_sluiced, .. } = setup.config;
        let deduplication = (bound > 0).then(|| {
            let (exchange_lifetime, non_lifetime) = (setup.exchange_lifetime(), setup.non_lifetime());
            Deduplication::new(bound, seed, exchange_lifetime, non_lifetime)
        });
        let sluice = (max_sluiced > 0).then(|| Box::new(Sluice::new(max_sluiced, seed)));
        let rare = (deduplication.is_some() || sluice.is_some())
            .then(|| Box::new(Rare { deduplication, sluice, ..Rare::default() }));
        Self {
            setup,
            peers: Peers::new(seed),
            exchanges: Slab::default(),
            deadlines: Deadlines::default(),
            due_head: NONE,
            due_tail: NONE,
            failed: SlotStack::EMPTY,
            begun: 0,
            rare,
            tally: EndpointTally::default(),
        }
    }

    /// Sends a request as soon as NSTART and the mechanism allow, and PROBING_RATE if it is non-confirmable.
    ///
    /// # Errors
    /// [`SendError`] names the limit that is reached. The endpoint is not changed then.
    pub fn request(&mut self, now: Instant, to: A, request: Request<'_>) -> Result<ExchangeId, SendError> {
        self.begin_request(now, to, request, ExchangePurpose::Request)
    }

    /// Sends a request for a part of a body, such as a block (RFC 7959), as soon as [`Setup::bulk`] allows. Other
    /// requests to the same peer do not wait for it. Each copy has its own Message ID if the request is repeatable.
    ///
    /// A non-confirmable request is sent like [any other](Self::request). So is every request if [`Setup::bulk`] is
    /// `None`.
    ///
    /// # Errors
    /// [`SendError`] names the limit that is reached. The endpoint is not changed then.
    pub fn request_part(
        &mut self,
        now: Instant,
        to: A,
        request: Request<'_>,
    ) -> Result<ExchangeId, SendError> {
        let in_lane = request.confirmable && self.setup.bulk.is_some();
        let purpose = if in_lane { ExchangePurpose::Part } else { ExchangePurpose::Request };
        self.begin_request(now, to, request, purpose)
    }

    fn begin_request(
        &mut self,
        now: Instant,
        to: A,
        request: Request<'_>,
        purpose: ExchangePurpose,
    ) -> Result<ExchangeId, SendError> {
        let Request { confirmable, code, token, tail, repeatable } = request;
        let id = self.begin(now, to, confirmable, purpose, code, token, tail)?;
        // Only the method and the options decide whether it may be executed twice.
        let request = Message { code, tail, ..Message::empty(Kind::Confirmable, 0) };
        self.exchanges[id.index].repeatable = repeatable || request.is_repeatable();
        Ok(id)
    }

    /// Sends a request whose No-Response option (RFC 7967) asks the server for no response.
    ///
    /// The exchange of a confirmable request ends with [`Event::Acknowledged`], or with [`Event::Response`] if the
    /// server does not know the option. The exchange of a non-confirmable request ends without an event.
    ///
    /// # Errors
    /// [`SendError`] names the limit that is reached.
    pub fn tell(&mut self, now: Instant, to: A, request: Request<'_>) -> Result<ExchangeId, SendError> {
        let Request { confirmable, code, token, tail, .. } = request;
        self.begin(now, to, confirmable, ExchangePurpose::Statement, code, token, tail)
    }

    /// Checks whether the peer is alive, with an empty confirmable message (RFC 7252 §4.3). The answer is returned as
    /// [`Event::Pong`].
    ///
    /// # Errors
    /// [`SendError`] names the limit that is reached.
    pub fn ping(&mut self, now: Instant, to: A) -> Result<ExchangeId, SendError> {
        self.begin(now, to, true, ExchangePurpose::Ping, Code::EMPTY, Token::EMPTY, &[])
    }

    /// Acknowledges a request whose response will take time (RFC 7252 §5.2.2). Returns the responder to use
    /// for that separate response.
    #[must_use]
    pub fn acknowledge(&mut self, now: Instant, responder: Responder<A>) -> Responder<A> {
        let mut allowance = responder.allowance;
        if responder.confirmable && !self.was_acknowledged(now, &responder, || Reaction::Acknowledged) {
            self.reply(responder.to, &Message::empty(Kind::Acknowledgement, responder.message_id), None);
            // The request has four bytes or more, so its allowance suffices for this.
            allowance.spend(EMPTY);
        }
        Responder { acknowledged: true, allowance, ..responder }
    }

    /// Answers a request. Returns the exchange of a response that is separate and confirmable; `None` for any other
    /// response.
    ///
    /// The response to a confirmable request is piggybacked on the acknowledgement. If the request was already
    /// acknowledged, the response is separate and confirmable. The response to a non-confirmable request is
    /// non-confirmable.
    ///
    /// # Errors
    /// [`SendError`] names the limit that is reached.
    pub fn respond(
        &mut self,
        now: Instant,
        responder: Responder<A>,
        code: Code,
        tail: &[u8],
    ) -> Result<Option<ExchangeId>, SendError> {
        self.respond_with(now, responder, ExchangePurpose::Response, code, tail)
    }

    /// Answers a request with a part of a body. A separate response departs when the bulk mechanism ([`Setup::bulk`]) allows
    /// it, concurrently with others.
    ///
    /// # Errors
    /// [`SendError`] names the limit that is reached.
    pub fn respond_part(
        &mut self,
        now: Instant,
        responder: Responder<A>,
        code: Code,
        tail: &[u8],
    ) -> Result<Option<ExchangeId>, SendError> {
        let in_lane = self.setup.bulk.is_some();
        let purpose = if in_lane { ExchangePurpose::PartOfResponse } else { ExchangePurpose::Response };
        self.respond_with(now, responder, purpose, code, tail)
    }

    fn respond_with(
        &mut self,
        now: Instant,
        responder: Responder<A>,
        purpose: ExchangePurpose,
        code: Code,
        tail: &[u8],
    ) -> Result<Option<ExchangeId>, SendError> {
        let Responder { to, message_id, token, confirmable, .. } = responder;
        // Copies of the request get this response. It is only copied if the request is remembered.
        let reaction = || Reaction::Replied { code, tail: tail.into() };
        // The acknowledgement has left already, so the response is an exchange of its own (RFC 7252 §5.2.2).
        if confirmable && self.was_acknowledged(now, &responder, reaction) {
            let id = self.begin(now, to, true, purpose, code, token, tail)?;
            let allowance = self.charge(&responder, tail.len());
            self.limit(id.index, allowance);
            return Ok(Some(id));
        }
        let (kind, message_id) = if confirmable {
            (Kind::Acknowledgement, message_id)
        } else {
            let peer = self.find_or_insert_peer(to).ok_or(SendError::PeersFull)?;
            // It does not wait for a free Message ID. A client that is answered so often uses its own IDs
            // again as fast.
            (Kind::NonConfirmable, self.peers[peer].message_ids.take(now))
        };
        let reply = Message { code, token, tail, ..Message::empty(kind, message_id) };
        // Only acknowledgements echo the option (draft-ietf-core-fasor-02 §4.4).
        let count = responder.rexmit_cnt.filter(|_| confirmable);
        if !self.reply(to, &reply, count) {
            return Err(SendError::RepliesFull);
        }
        if let Some(sluice) = self.sluice().filter(|_| confirmable) {
            sluice.answers(now, to, message_id);
        }
        if responder.allowance.is_limited() {
            // The endpoint does not repeat this reply. What it leaves of the allowance is for the notifications of an observer.
            self.charge(&responder, tail.len());
        }
        Ok(None)
    }

    /// Rejects a request and every copy of it with a Reset (RFC 7252 §4.2, §4.3). Returns false if the request was
    /// already acknowledged: then it can only be [answered](Self::respond).
    pub fn reject(&mut self, now: Instant, responder: &Responder<A>) -> bool {
        let acknowledged =
            responder.confirmable && self.was_acknowledged(now, responder, || Reaction::Rejected);
        if !acknowledged {
            self.send_reset(responder);
        }
        !acknowledged
    }

    pub(crate) fn send_reset(&mut self, responder: &Responder<A>) {
        self.reply(responder.to, &Message::empty(Kind::Reset, responder.message_id), None);
    }

    /// Ends an exchange, an observation or a request to a group. No event follows for it.
    pub fn cancel(&mut self, now: Instant, id: ExchangeId) {
        self.stop_listening(id);
        let Some(exchange) = self.exchanges.get(id.index) else { return };
        // The slot may have another exchange by now.
        if exchange.generation == id.generation && !exchange.stage.is_over() {
            self.end(now, id.index, ExchangeEnd::Cancelled);
        }
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout); `None` without a deadline.
    ///
    /// The time may change with every call that takes `now`, and with no other. It may be in the past: then call
    /// `handle_timeout` at once.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.next()
    }

    /// Handles every deadline up to `now`. Call it at the time returned by [`poll_timeout`](Self::poll_timeout); earlier calls
    /// do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(timer) = self.deadlines.pop_due(now) {
            let index = match timer {
                DeadlineOwner::Peer(slot) => {
                    self.admit(now, slot);
                    continue;
                }
                DeadlineOwner::Exchange(index) => index,
            };
            let OpenExchange { stage, confirmable, purpose, .. } = self.exchanges[index];
            match stage {
                ExchangeStage::InFlight if purpose.is_in_lane() => self.time_out_in_lane(now, index),
                ExchangeStage::InFlight if confirmable => self.time_out(now, index),
                // The message was acknowledged or non-confirmable, so only its response was still due.
                ExchangeStage::InFlight | ExchangeStage::Acknowledged => {
                    self.end(now, index, ExchangeEnd::Failed(Failure::TimedOut));
                }
                // No deadline is set in these stages.
                ExchangeStage::Waiting
                | ExchangeStage::Due
                | ExchangeStage::Lost
                | ExchangeStage::Ended
                | ExchangeStage::Failed(_) => {}
            }
        }
    }

    /// Returns the event of the next failed exchange or lost observer; `None` if there are no more. A failure that
    /// another call has returned, such as a Reset, is not returned again.
    ///
    /// Call this until it returns `None`, after [`handle_timeout`](Self::handle_timeout) and after
    /// [`poll_transmit`](Self::poll_transmit). No other call adds an event. A returned exchange frees its slot, so
    /// notifications that waited for one may depart: call `poll_transmit` again.
    pub fn poll_event(&mut self) -> Option<Event<'static, A>> {
        while let Some((id, purpose, failure)) = self.pop_failed() {
            // An observer that has left in the meantime makes no event.
            let event = self.failure_event(id, purpose, failure);
            if event.is_some() {
                return event;
            }
        }
        None
    }

    /// Returns the event for a failed exchange. A failed notification removes its observer, and a failed registration
    /// its listener. Returns `None` if that observer was removed before.
    pub(crate) fn failure_event(
        &mut self,
        id: ExchangeId,
        purpose: ExchangePurpose,
        failure: Failure,
    ) -> Option<Event<'static, A>> {
        match purpose {
            ExchangePurpose::Notification => return self.observer_failed(id.index, failure),
            ExchangePurpose::Observation => self.stop_listening(id),
            _ => {}
        }
        Some(Event::Failed { exchange: id, failure })
    }

    pub(crate) fn deduplication(&mut self) -> Option<&mut Deduplication<A>> {
        self.rare.as_mut()?.deduplication.as_mut()
    }

    pub(crate) fn sluice(&mut self) -> Option<&mut Sluice<A>> {
        self.rare.as_mut()?.sluice.as_deref_mut()
    }

    /// From now on, a request that must not be executed twice is remembered until its lifetime has passed, and never
    /// displaced. `source` maps an address to its source: the addresses of one network, for example, are one source.
    ///
    /// Responses then have their own slots. The slots of [`max_deduplicated`](crate::Config::max_deduplicated) are
    /// divided:
    ///
    /// * A quarter is for such requests from any source. One source may have eight times as many slots as it leaves
    ///   free.
    /// * A quarter is for such requests from sources that the application has verified ([`remember`](Self::remember)).
    /// * Half is for requests that may be executed twice. The oldest of them are displaced.
    ///
    /// A request that gets no slot arrives with a responder that [is not remembered](Responder::is_remembered).
    ///
    /// Without this call, a request may displace the oldest message of its table.
    pub fn keep_requests(&mut self, source: fn(&A) -> u64) {
        if let Some(deduplication) = self.deduplication() {
            deduplication.keep_requests(source);
        }
    }

    /// Remembers a request [without a slot](Responder::is_remembered), because its source is verified. Returns false if
    /// no slot for verified sources is left either: then answer 5.03, and do not execute the request.
    pub fn remember(&mut self, now: Instant, responder: &Responder<A>) -> bool {
        let &Responder { to: from, message_id, token, confirmable, .. } = responder;
        let arrival = IncomingMessage { from, message_id, token, confirmable, worth: Worth::Request };
        self.deduplication().is_none_or(|deduplication| deduplication.insert_verified(now, arrival))
    }

    /// Drops the mechanism's state for a peer, as a restart of the program would. Message IDs to that peer continue at
    /// a distant number (RFC 7252 §4.4). Outstanding exchanges continue.
    pub fn forget(&mut self, peer: A) {
        if let Some(slot) = self.peers.find(peer) {
            self.peers[slot].state = self.setup.controller.state();
            self.peers.renumber(slot);
        }
    }

    /// Returns the estimates of the mechanism for a peer, if the peer is known.
    pub fn gauges(&self, peer: A) -> Option<Gauges> {
        Some(self.setup.controller.gauges(&self.peers[self.peers.find(peer)?].state))
    }

    /// Returns the counters so far.
    pub fn counters(&self) -> Counters {
        let EndpointTally { received, late_replies, started, retransmissions, completed, given_up } =
            self.tally;
        // Parts that this endpoint never needed are not there, and have counted nothing.
        let rare = self.rare.as_deref();
        let known = rare.and_then(|rare| rare.deduplication.as_ref());
        let observers = rare.and_then(|rare| rare.observers.as_ref());
        let counts = observers.map(|observers| observers.counts).unwrap_or_default();
        // Every field is named, so that the compiler asks for a new one.
        Counters {
            received,
            malformed: rare.map_or(0, |rare| rare.malformed),
            duplicates: known.map_or(0, |known| known.duplicates),
            withheld: rare.and_then(|rare| rare.sluice.as_ref()).map_or(0, |sluice| sluice.withheld),
            late_replies,
            started,
            retransmissions,
            completed,
            converted: rare.map_or(0, |rare| rare.converted),
            given_up,
            timed_out: rare.map_or(0, |rare| rare.timed_out),
            rejected: rare.map_or(0, |rare| rare.rejected),
            notifications: counts.notifications,
            notifications_replaced: counts.replaced,
            observers_rejected: counts.rejected,
            observers_given_up: counts.given_up,
            observers_displaced: counts.displaced,
            peers_evicted: rare.map_or(0, |rare| rare.peers_evicted),
            replies_dropped: rare.map_or(0, |rare| rare.outbox.dropped),
            forgotten_early: known.map_or(0, Deduplication::forgotten_early),
            repeatable_forgotten: known.map_or(0, Deduplication::repeatable_forgotten),
        }
    }

    /// Starts to collect [`measures`](Self::measures). They take 700 bytes.
    pub fn measure(&mut self) {
        self.rare.get_or_insert_default().measures.get_or_insert_default();
    }

    /// Returns the measures so far; `None` before a call of [`measure`](Self::measure).
    pub fn measures(&self) -> Option<&Measures> {
        self.rare.as_deref()?.measures.as_deref()
    }

    /// Returns the mechanism and the parameters.
    pub fn setup(&self) -> &Setup<C> {
        &self.setup
    }

    /// Returns the number of retransmissions of an exchange that is outstanding or was ended by the last event.
    pub fn retransmissions(&self, id: ExchangeId) -> u8 {
        self.exchanges.get(id.index).map_or(0, |exchange| exchange.retransmits)
    }

    /// Returns how many exchanges are outstanding or waiting.
    pub fn exchanges(&self) -> usize {
        self.exchanges.in_use()
    }

    /// Returns how many peers are remembered.
    pub fn peers(&self) -> usize {
        self.peers.len()
    }

    /// Returns whether the next block of 8,192 Message IDs to a peer is free, because the peer no longer remembers them
    /// (RFC 7252 §4.4). If not, only the rest of the current block is left, and further exchanges may have to wait.
    /// Another endpoint, on another port, has separate Message IDs.
    pub fn has_message_ids(&self, now: Instant, peer: A) -> bool {
        let known = self.peers.find(peer).map(|peer| &self.peers[peer].message_ids);
        known.is_none_or(|ids| ids.has_spare_block(now, || self.setup.exchange_lifetime()))
    }
}
