//! The endpoint, and the calls of the application.

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
    /// The ends of the line of departures, which is linked through [`OpenExchange::next_due`].
    pub(crate) due_head: u32,
    pub(crate) due_tail: u32,
    /// Exchanges that failed by a timeout and that [`poll_event`](Self::poll_event) has yet to return.
    pub(crate) failed: SlotStack,
    /// The number of exchanges that were begun.
    pub(crate) begun: u32,
    pub(crate) rare: Option<Box<Rare<A>>>,
    pub(crate) tally: EndpointTally,
}

impl<C: Controller, A: Address> Endpoint<C, A> {
    /// Creates an endpoint. Message IDs and hash tables are derived from `seed`. Take it from the operating
    /// system where anybody could exploit a known one.
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
    /// [`SendError`] names the bound that is reached. The endpoint has not changed then.
    pub fn request(&mut self, now: Instant, to: A, request: Request<'_>) -> Result<ExchangeId, SendError> {
        self.begin_request(now, to, request, ExchangePurpose::Request)
    }

    /// Sends a request for a part of a body, such as a block (RFC 7959), as soon as [`Setup::bulk`] allows. Other requests to
    /// the same peer do not wait for it. A copy of it has a Message ID of its own if the request is repeatable.
    ///
    /// A request that is not confirmable, or that finds no [`Setup::bulk`], is sent like [any other](Self::request).
    ///
    /// # Errors
    /// [`SendError`] names the bound that is reached. The endpoint has not changed then.
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
        let request = Message { code, tail, ..Message::empty(Kind::Confirmable, 0) };
        self.exchanges[id.index].repeatable = repeatable || request.is_repeatable();
        Ok(id)
    }

    /// Sends a request that asks for no response with its No-Response option (RFC 7967).
    ///
    /// A confirmable one ends with [`Event::Acknowledged`], or with [`Event::Response`] if the server does
    /// not know the option. A non-confirmable one ends without an event.
    ///
    /// # Errors
    /// [`SendError`] names the bound that is reached.
    pub fn tell(&mut self, now: Instant, to: A, request: Request<'_>) -> Result<ExchangeId, SendError> {
        let Request { confirmable, code, token, tail, .. } = request;
        self.begin(now, to, confirmable, ExchangePurpose::Statement, code, token, tail)
    }

    /// Asks whether the peer is alive, with an empty confirmable message (RFC 7252 §4.3).
    ///
    /// # Errors
    /// [`SendError`] names the bound that is reached.
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
            allowance.spend(EMPTY);
        }
        Responder { acknowledged: true, allowance, ..responder }
    }

    /// Answers a request. Returns the exchange of a separate response; `None` for any other.
    ///
    /// The response to a confirmable request is piggybacked on the acknowledgement. If that was sent before,
    /// the response is separate and confirmable. The response to a non-confirmable request is
    /// non-confirmable.
    ///
    /// # Errors
    /// [`SendError`] names the bound that is reached.
    pub fn respond(
        &mut self,
        now: Instant,
        responder: Responder<A>,
        code: Code,
        tail: &[u8],
    ) -> Result<Option<ExchangeId>, SendError> {
        self.respond_with(now, responder, ExchangePurpose::Response, code, tail)
    }

    /// Answers a request with a part of a body. A separate response departs when the mechanism for bodies ([`Setup::bulk`]) allows it,
    /// beside others of its kind.
    ///
    /// # Errors
    /// [`SendError`] names the bound that is reached.
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
        let reaction = || Reaction::Replied { code, tail: tail.into() };
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
            self.charge(&responder, tail.len());
        }
        Ok(None)
    }

    /// Rejects a request with a Reset (RFC 7252 §4.2, §4.3), and every copy of it. Returns false if it was acknowledged
    /// before: then it can only be [answered](Self::respond).
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
        if exchange.generation == id.generation && !exchange.stage.is_over() {
            self.end(now, id.index, ExchangeEnd::Cancelled);
        }
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout); `None` if there is nothing to wait for.
    ///
    /// The answer may change with every call that takes `now`, and with no other. The moment may be in the
    /// past: then call `handle_timeout` at once.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.next()
    }

    /// Handles every deadline up to `now`. Call it at the moment that [`poll_timeout`](Self::poll_timeout) names; earlier calls do
    /// nothing.
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
                ExchangeStage::InFlight | ExchangeStage::Acknowledged => {
                    self.end(now, index, ExchangeEnd::Failed(Failure::TimedOut));
                }
                ExchangeStage::Waiting
                | ExchangeStage::Due
                | ExchangeStage::Lost
                | ExchangeStage::Ended
                | ExchangeStage::Failed(_) => {}
            }
        }
    }

    /// Returns the next exchange that failed, or the next observer that was lost, unless another call has returned it.
    ///
    /// Call this until it returns `None`, after [`handle_timeout`](Self::handle_timeout) and after
    /// [`poll_transmit`](Self::poll_transmit). No other call adds an event. An exchange that is returned
    /// frees its slot, so notifications that waited for one may depart: call `poll_transmit` again.
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

    /// Returns the event for an exchange that failed. A notification takes its observer with it, and a
    /// registration its listener.
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

    /// Remembers every request that may not be carried out twice for its whole lifetime, from now on.
    /// `source` groups addresses into sources: the addresses of one network, for example, are one source.
    ///
    /// A quarter of [`max_deduplicated`](crate::Config::max_deduplicated) is for such requests of anybody. A
    /// source may have eight times as many places as it leaves free. A request without a place arrives with
    /// a responder that [is not remembered](Responder::is_remembered). Another quarter is for sources that the
    /// application has verified ([`remember`](Self::remember)). Half is for requests that may be carried out
    /// twice, the oldest of which make room.
    ///
    /// Without this call, the oldest request makes room for the next one.
    pub fn keep_requests(&mut self, source: fn(&A) -> u64) {
        if let Some(deduplication) = self.deduplication() {
            deduplication.keep_requests(source);
        }
    }

    /// Remembers a request [without a place](Responder::is_remembered), because its source is verified.
    /// Returns false if verified sources have no place left either: then answer 5.03, and do not carry it
    /// out.
    pub fn remember(&mut self, now: Instant, responder: &Responder<A>) -> bool {
        let &Responder { to: from, message_id, token, confirmable, .. } = responder;
        let arrival = IncomingMessage { from, message_id, token, confirmable, worth: Worth::Request };
        self.deduplication().is_none_or(|deduplication| deduplication.insert_verified(now, arrival))
    }

    /// Forgets the state of the mechanism for a peer, like a program that starts again. Message IDs to that peer begin elsewhere
    /// (RFC 7252 §4.4). Exchanges under way go on.
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

    /// Returns the counts so far.
    pub fn counters(&self) -> Counters {
        let EndpointTally { received, late_replies, started, retransmissions, completed, given_up } =
            self.tally;
        let rare = self.rare.as_deref();
        let known = rare.and_then(|rare| rare.deduplication.as_ref());
        let observers = rare.and_then(|rare| rare.observers.as_ref());
        let counts = observers.map(|observers| observers.counts).unwrap_or_default();
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

    /// Begins to keep [`measures`](Self::measures). They take 700 bytes.
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

    /// Returns the number of retransmissions of an exchange that is under way or was ended by the last event.
    pub fn retransmissions(&self, id: ExchangeId) -> u8 {
        self.exchanges.get(id.index).map_or(0, |exchange| exchange.retransmits)
    }

    /// Returns how many exchanges are under way or waiting.
    pub fn exchanges(&self) -> usize {
        self.exchanges.in_use()
    }

    /// Returns how many peers are remembered.
    pub fn peers(&self) -> usize {
        self.peers.len()
    }

    /// Returns whether there are Message IDs left that a peer no longer remembers (RFC 7252 §4.4). If not, 8,192 may be left for
    /// exchanges under way, and later ones may have to wait. Another endpoint, on another port, has Message IDs of its own.
    pub fn has_message_ids(&self, now: Instant, peer: A) -> bool {
        let known = self.peers.find(peer).map(|peer| &self.peers[peer].message_ids);
        known.is_none_or(|ids| ids.has_spare_block(now, || self.setup.exchange_lifetime()))
    }
}
