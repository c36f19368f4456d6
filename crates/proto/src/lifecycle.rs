//! The stages of an exchange: it begins, waits for a slot, is due for departure, and ends.

use coapace_control::{Controller, Cue, Draw, Instant, Limits, Marking, Outcome};

use crate::code::Code;
use crate::deadlines::DeadlineOwner;
use crate::endpoint::Endpoint;
use crate::exchange::{ExchangeEnd, ExchangeId, ExchangePurpose, ExchangeStage, Failure, OpenExchange};
use crate::message::{Message, Token};
use crate::peer::Address;
use crate::rare::Rare;
use crate::request::SendError;
use crate::{NONE, Patience, Setup};

impl<C: Controller, A: Address> Endpoint<C, A> {
    /// Begins an exchange: appends it to the queue of its peer, and admits it if no limit makes it wait.
    #[allow(clippy::too_many_arguments)] // the fields of an exchange, once
    pub(crate) fn begin(
        &mut self,
        now: Instant,
        to: A,
        confirmable: bool,
        purpose: ExchangePurpose,
        code: Code,
        token: Token,
        tail: &[u8],
    ) -> Result<ExchangeId, SendError> {
        // The mechanism may need a byte of the token. This comes first, because an error must leave the endpoint as it was.
        let marked = confirmable && purpose == ExchangePurpose::Request;
        if marked
            && token.is_full()
            && matches!(self.wanted_marking(to), Marking::Token | Marking::TokenOnRetransmit)
        {
            return Err(SendError::TokenTooLong);
        }
        let bound = self.setup.config.max_exchanges;
        let index = self.exchanges.take(bound, OpenExchange::blank).ok_or(SendError::ExchangesFull)?;
        // The slot of the exchange was taken before, so that a full table of exchanges does not displace a peer.
        let Some(peer) = self.find_or_insert_peer(to) else {
            self.exchanges.give_back(index);
            return Err(SendError::PeersFull);
        };
        let exchange = &mut self.exchanges[index];
        // This is the moment of the call, until the first transmission departs.
        exchange.first = now;
        // The slot has the content of its last exchange, whose allocations are used again.
        exchange.tail.clear();
        exchange.tail.extend_from_slice(tail);
        exchange.forget_departures();
        exchange.control = None;
        exchange.stage = ExchangeStage::Waiting;
        (exchange.departed, exchange.retransmits) = (false, 0);
        (exchange.peer, exchange.limited) = (peer, false);
        (exchange.confirmable, exchange.purpose) = (confirmable, purpose);
        (exchange.code, exchange.token) = (code, token);
        exchange.ordinal = self.begun;
        self.begun = self.begun.wrapping_add(1);
        let id = ExchangeId { index, generation: exchange.generation };

        // Parts of bodies have a queue of their own, so that single exchanges do not wait behind them.
        if purpose.is_in_lane() {
            self.wait_in_lane(index);
        } else {
            self.peers[peer].waiting.push(&mut self.exchanges, index);
        }
        self.admit(now, peer);
        Ok(id)
    }

    /// Returns the slot of a peer. If the table is full, a new peer takes the slot of the least recently used one. Returns
    /// `None` if all peers have outstanding exchanges.
    pub(crate) fn find_or_insert_peer(&mut self, to: A) -> Option<u32> {
        let Setup { controller, config, .. } = &*self.setup;
        let (slot, evicts) = self.peers.find_or_insert(to, config.max_peers, controller)?;
        if evicts {
            self.rare.get_or_insert_default().peers_evicted += 1;
        }
        Some(slot)
    }

    /// Returns how the mechanism marks transmissions to this peer, whether the peer is known or not.
    pub(crate) fn wanted_marking(&self, peer: A) -> Marking {
        let controller = &self.setup.controller;
        let limits = match self.peers.find(peer) {
            Some(slot) => controller.limits(&self.peers[slot].state),
            None => controller.limits(&controller.state()),
        };
        limits.marking
    }

    /// Admits waiting exchanges with this peer, as far as NSTART, the mechanism and PROBING_RATE allow.
    ///
    /// An exchange that its rate allows to depart overtakes one that must still wait for its rate. Otherwise a
    /// non-confirmable message would delay confirmable ones for minutes.
    pub(crate) fn admit(&mut self, now: Instant, peer: u32) {
        let single = self.admit_single(now, peer);
        let bulk = self.admit_to_lane(now, peer);
        if let Some(at) = single.into_iter().chain(bulk).min() {
            self.deadlines.set(DeadlineOwner::Peer(peer), at);
        }
    }

    /// Admits waiting exchanges outside the lane. Returns the time at which to try again; `None` if another event must
    /// come first, or if no exchange waits.
    fn admit_single(&mut self, now: Instant, peer: u32) -> Option<Instant> {
        while !self.peers[peer].waiting.is_empty() {
            let there = &self.peers[peer];
            let limits = self.setup.controller.limits(&there.state);
            let nstart = self.setup.config.nstart(&limits);
            if there.outstanding >= nstart {
                return None;
            }
            // A message that awaits no answer keeps its place until its gap is over (RFC 7641 §4.5.1).
            let gap =
                if there.has_gap(now) && there.outstanding + 1 >= nstart { there.next_non } else { now };
            let from = gap.max(there.message_ids.free_at(|| self.setup.exchange_lifetime()));
            if from > now {
                return Some(from);
            }
            let head = there.waiting.first();
            // A confirmable message at the front without a rate goes first, so the queue need not be searched.
            let unrated = self.exchanges[head].confirmable && limits.next_confirmable == Instant::ZERO;
            let first = if unrated { Ok(head) } else { self.first_to_go(now, peer, limits) };
            let index = match first {
                Ok(index) => index,
                Err(soonest) => return soonest,
            };
            let there = &mut self.peers[peer];
            there.waiting.remove(&mut self.exchanges, index);
            there.active.push(&mut self.exchanges, index);
            self.exchanges[index].message_id = there.message_ids.take(now);
            there.outstanding += 1;
            self.line_up(index);
        }
        None
    }

    /// Returns the first waiting exchange that may depart now by its rate.
    ///
    /// # Errors
    /// The time at which an exchange may depart by its rate. `None` if that depends on a departure: `admit` is called again
    /// after it.
    fn first_to_go(&self, now: Instant, peer: u32, limits: Limits) -> Result<u32, Option<Instant>> {
        let there = &self.peers[peer];
        let next_non = if there.owes_confirmable(self.setup.config.confirmable_every) {
            there.next_non.max(limits.next_confirmable)
        } else {
            there.next_non
        };
        // A rate is updated when a message departs. So only one message that obeys a rate may be admitted and
        // not yet departed. `active` has the exchange that was admitted last in front.
        let singles = there.active.iter(&self.exchanges).find(|(_, exchange)| !exchange.purpose.is_in_lane());
        let leaving = singles.is_some_and(|(_, last)| !last.departed);

        let mut soonest = Instant::MAX;
        for (index, exchange) in there.waiting.iter(&self.exchanges) {
            let earliest = if exchange.confirmable { limits.next_confirmable } else { next_non };
            let obeys_rate = !exchange.confirmable || earliest != Instant::ZERO;
            if earliest <= now && !(obeys_rate && leaving) {
                return Ok(index);
            }
            soonest = soonest.min(earliest);
        }
        Err((soonest > now).then_some(soonest))
    }

    /// Appends an exchange to the queue of departures.
    pub(crate) fn line_up(&mut self, index: u32) {
        let exchange = &mut self.exchanges[index];
        (exchange.stage, exchange.in_line, exchange.next_due) = (ExchangeStage::Due, true, NONE);
        match core::mem::replace(&mut self.due_tail, index) {
            NONE => self.due_head = index,
            tail => self.exchanges[tail].next_due = index,
        }
    }

    /// Removes and returns the first exchange in the queue of departures that is still due.
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
                ExchangeStage::Due => return Some(index),
                // The slot was kept only because the line led through it.
                ExchangeStage::Ended => self.exchanges.give_back(index),
                // It was acknowledged or has failed while its copy was queued, and keeps its slot.
                _ => {}
            }
        }
        None
    }

    /// Handles an empty acknowledgement: the slot of the exchange is free, and the response is expected.
    pub(crate) fn await_response(&mut self, now: Instant, index: u32, outcome: Outcome) {
        self.leave_outstanding(now, index, outcome, true);
        self.exchanges[index].stage = ExchangeStage::Acknowledged;
        self.deadlines.set(DeadlineOwner::Exchange(index), now + self.setup.config.response_timeout);
        self.admit(now, self.exchanges[index].peer);
    }

    /// Ends an exchange. Informs the mechanism and the table of observers, counts the exchange, frees its slots, and admits the
    /// next one.
    ///
    /// The table slot of an exchange that timed out is kept until [`pop_failed`](Self::pop_failed) takes it.
    pub(crate) fn end(&mut self, now: Instant, index: u32, end: ExchangeEnd) {
        let outcome = match end {
            ExchangeEnd::Answered(outcome) => {
                self.tally.completed += 1;
                outcome
            }
            ExchangeEnd::Cancelled => Outcome::Cancelled,
            ExchangeEnd::Failed(Failure::GivenUp) => {
                self.tally.given_up += 1;
                Outcome::GivenUp
            }
            ExchangeEnd::Failed(Failure::TimedOut) => {
                // The mechanism has no part in this wait: the message was acknowledged, or non-confirmable.
                self.rare.get_or_insert_default().timed_out += 1;
                Outcome::Cancelled
            }
            ExchangeEnd::Failed(Failure::Reset) => {
                self.rare.get_or_insert_default().rejected += 1;
                Outcome::Reset
            }
        };
        // The mechanism learns the outcome first: its limits decide in `leave_peer` which exchange is admitted next.
        self.leave_outstanding(now, index, outcome, matches!(end, ExchangeEnd::Answered(_)));
        self.leave_peer(now, index);
        // A Reset is the event of its own datagram. The other failures wait in their slots for `poll_event`.
        if let ExchangeEnd::Failed(failure @ (Failure::GivenUp | Failure::TimedOut)) = end {
            self.exchanges[index].stage = ExchangeStage::Failed(failure);
            self.failed.push(&mut self.exchanges, index);
            return;
        }
        self.release(index);
        if self.exchanges[index].purpose == ExchangePurpose::Notification {
            match end {
                ExchangeEnd::Answered(_) => self.notification_over(now, index, true),
                ExchangeEnd::Cancelled => self.notification_over(now, index, false),
                // The observer is removed when its event is returned.
                ExchangeEnd::Failed(_) => {}
            }
        }
    }

    /// Removes an exchange from the outstanding ones, and passes its outcome to the mechanism.
    fn leave_outstanding(&mut self, now: Instant, index: u32, outcome: Outcome, is_answered: bool) {
        self.deadlines.clear(DeadlineOwner::Exchange(index));
        let exchange = &mut self.exchanges[index];
        if exchange.purpose.is_in_lane() {
            return self.leave_lane(now, index, outcome, is_answered);
        }
        // Exchanges in other stages occupy no place of NSTART.
        if !matches!(exchange.stage, ExchangeStage::Due | ExchangeStage::InFlight) {
            return;
        }
        let peer = &mut self.peers[exchange.peer];
        if let Some(control) = exchange.control.take() {
            if let (Outcome::Acked(sample), Some(measures)) = (&outcome, Rare::measures(&mut self.rare)) {
                measures.acknowledged(sample);
            }
            let cue = Cue { now, draw: Draw::ZERO, outstanding: peer.in_flight };
            self.setup.controller.on_end(&mut peer.state, control, outcome, cue);
        }
        peer.outstanding -= 1;
        peer.in_flight -= u16::from(exchange.departed);
        if peer.last_non == index {
            peer.last_non = NONE;
        }
    }

    /// Removes an exchange from the lists of its peer, and admits the next one.
    fn leave_peer(&mut self, now: Instant, index: u32) {
        let OpenExchange { peer, stage, purpose, .. } = self.exchanges[index];
        let there = &mut self.peers[peer];
        if stage == ExchangeStage::Waiting {
            let lane = there.lane.as_mut().filter(|_| purpose.is_in_lane());
            let queue = lane.map_or(&mut there.waiting, |lane| lane.queue());
            queue.remove(&mut self.exchanges, index);
            // The deadline may have been set for this exchange.
            self.deadlines.clear(DeadlineOwner::Peer(peer));
        } else {
            there.active.remove(&mut self.exchanges, index);
        }
        self.admit(now, peer);
    }

    /// Frees the slot of an ended exchange. A slot in the queue of departures is freed once the queue has passed it.
    fn release(&mut self, index: u32) {
        let exchange = &mut self.exchanges[index];
        exchange.stage = ExchangeStage::Ended;
        // A late `cancel` of this exchange must not end the next one in the slot.
        exchange.generation = exchange.generation.wrapping_add(1);
        if !exchange.in_line {
            self.exchanges.give_back(index);
        }
    }

    /// Removes and returns the exchange that last failed by a timeout, and frees its slot.
    pub(crate) fn pop_failed(&mut self) -> Option<(ExchangeId, ExchangePurpose, Failure)> {
        let index = self.failed.first();
        let &OpenExchange { stage, generation, purpose, .. } = self.exchanges.get(index)?;
        let ExchangeStage::Failed(failure) = stage else { return None };
        self.failed.remove(&mut self.exchanges, index);
        self.release(index);
        Some((ExchangeId { index, generation }, purpose, failure))
    }

    /// Handles a timeout without an answer: queues the next copy, waits longer, or gives up.
    pub(crate) fn time_out(&mut self, now: Instant, index: u32) {
        let exchange = &self.exchanges[index];
        let (first, retransmits) = (exchange.first, exchange.retransmits);
        let max_retransmit = self.setup.config.max_retransmit;
        self.peers[exchange.peer].note_timeout(retransmits, max_retransmit);
        if retransmits < max_retransmit {
            self.line_up(index);
            return;
        }
        // A mechanism with short timers must not give up earlier than RFC 7252 does.
        let fast = |patience: &Patience| now.since(first) < patience.least_wait(max_retransmit);
        let Some(patience) = self.setup.patience().filter(fast) else {
            self.end(now, index, ExchangeEnd::Failed(Failure::GivenUp));
            return;
        };
        let probe = first + patience.max_span(max_retransmit);
        // Without retransmissions there are no further copies: wait for the answer as long as RFC 7252 does.
        if max_retransmit == 0 {
            self.deadlines.set(DeadlineOwner::Exchange(index), first + patience.max_wait(0));
        } else if now < probe {
            self.deadlines.set(DeadlineOwner::Exchange(index), probe);
        } else {
            self.line_up(index);
        }
    }

    /// Queues a reply, with the Rexmit-Cnt option if there is a `count`. Returns whether the queue had space.
    pub(crate) fn reply(&mut self, to: A, message: &Message<'_>, count: Option<u8>) -> bool {
        if message.token.is_extended() {
            return self.reply_extended(to, message, count);
        }
        let outbox = &mut self.rare.get_or_insert_default().outbox;
        outbox.push(self.setup.config.max_replies, to, |buffer| message.write_marked(count, buffer))
    }

    /// Queues a message whose token is longer than 8 bytes. Returns false if the bytes of that token were dropped: without them
    /// the client could not match the message to its request.
    #[cold]
    fn reply_extended(&mut self, to: A, message: &Message<'_>, count: Option<u8>) -> bool {
        let Rare { outbox, tokens, .. } = &mut **self.rare.get_or_insert_default();
        let known = tokens.as_ref().and_then(|tokens| tokens.get(to, message.token));
        let Some(extended_token) = known else { return false };
        let message = Message { extended_token, ..*message };
        outbox.push(self.setup.config.max_replies, to, |buffer| message.write_marked(count, buffer))
    }
}
