//! The life of an exchange: it begins, waits for its place, departs, and ends.

use coapace_control::{Controller, Cue, Draw, Instant, Limits, Marking, Outcome};

use crate::code::Code;
use crate::endpoint::{Endpoint, SendError};
use crate::exchange::{Exchange, ExchangeId, Failure, Purpose, Stage};
use crate::message::{Message, Token};
use crate::peer::{Address, Peer};
use crate::rare::Rare;
use crate::slab::Slab;
use crate::{NONE, Patience, Setup};

impl<C: Controller, A: Address> Endpoint<C, A> {
    #[allow(clippy::too_many_arguments)] // the fields of an exchange, once
    pub(crate) fn begin(
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
            && token.is_full()
            && matches!(self.wanted_marking(to), Marking::Token | Marking::TokenOnRetransmit)
        {
            return Err(SendError::TokenTooLong);
        }
        let bound = self.setup.config.max_exchanges;
        let index = self.exchanges.take(bound, Exchange::blank).ok_or(SendError::ExchangesFull)?;
        let Some(peer) = self.find_or_insert_peer(to) else {
            self.exchanges.give_back(index);
            return Err(SendError::PeersFull);
        };
        let exchange = &mut self.exchanges[index];
        // Until it departs, the moment of the call.
        exchange.first = now;
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

    /// The slot of a peer, in place of another's if there is no room; `None` if all have exchanges under way.
    pub(crate) fn find_or_insert_peer(&mut self, to: A) -> Option<u32> {
        let Setup { controller, config } = &*self.setup;
        let (slot, evicts) = self.peers.find_or_insert(to, config.max_peers, controller)?;
        if evicts {
            self.rare.get_or_insert_default().peers_evicted += 1;
        }
        Some(slot)
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

    /// Lets exchanges that wait for a place go, as far as NSTART, the mechanism and PROBING_RATE allow. One whose rate
    /// allows it overtakes one that has to wait for its own: else a non-confirmable message would hold up confirmable
    /// ones for minutes.
    pub(crate) fn admit(&mut self, now: Instant, peer: u32) {
        while self.peers[peer].waiting_head != NONE {
            let there = &self.peers[peer];
            let limits = self.setup.controller.limits(&there.state);
            let nstart = self.setup.config.nstart(&limits);
            if there.outstanding >= nstart {
                return;
            }
            let gap =
                if there.has_gap(now) && there.outstanding + 1 >= nstart { there.next_non } else { now };
            let from = gap.max(there.message_ids.free_at(|| self.setup.exchange_lifetime()));
            if from > now {
                self.deadlines.set(2 * peer + 1, from);
                return;
            }
            let head = there.waiting_head;
            let unrated = self.exchanges[head].confirmable && limits.next_confirmable == Instant::ZERO;
            let first = if unrated { Some((NONE, head)) } else { self.first_to_go(now, peer, limits) };
            let Some((before, index)) = first else { return };
            let there = &mut self.peers[peer];
            leave_queue(there, &mut self.exchanges, before, index);
            self.exchanges[index].next = core::mem::replace(&mut there.active, index);
            self.exchanges[index].message_id = there.message_ids.take(now);
            there.outstanding += 1;
            self.line_up(index);
        }
    }

    /// The first of those that wait whose rate allows it to go now, and the one before it. If there is none, `admit` is
    /// called again when a rate allows one: by the clock, or by the departure that the rate depends on.
    fn first_to_go(&mut self, now: Instant, peer: u32, limits: Limits) -> Option<(u32, u32)> {
        let there = &self.peers[peer];
        let next_non = if there.owes_confirmable(self.setup.config.confirmable_every) {
            there.next_non.max(limits.next_confirmable)
        } else {
            there.next_non
        };
        // A rate knows of a message only once it has departed: until then none follows that obeys one. Departures are in
        // the order of admissions, and the last admitted is the first of the list.
        let leaving = self.exchanges.get(there.active).is_some_and(|last| !last.departed);

        let (mut before, mut index, mut soonest) = (NONE, there.waiting_head, Instant::MAX);
        while let Some(exchange) = self.exchanges.get(index) {
            let earliest = if exchange.confirmable { limits.next_confirmable } else { next_non };
            let obeys_rate = !exchange.confirmable || earliest != Instant::ZERO;
            if earliest <= now && !(obeys_rate && leaving) {
                return Some((before, index));
            }
            soonest = soonest.min(earliest);
            (before, index) = (index, exchange.next);
        }
        if soonest > now {
            self.deadlines.set(2 * peer + 1, soonest);
        }
        None
    }

    /// Puts an exchange at the end of the line of departures.
    pub(crate) fn line_up(&mut self, index: u32) {
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
            leave_queue(&mut self.peers[peer], &mut self.exchanges, before, index);
            // Perhaps it was the one whose moment was waited for.
            self.deadlines.clear(2 * peer + 1);
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
        if failure == Failure::TimedOut {
            self.rare.get_or_insert_default().timed_out += 1;
        }
        self.finish(now, index, outcome);
        self.exchanges[index].stage = Stage::Failed(failure);
        self.exchanges[index].next = core::mem::replace(&mut self.failed, index);
    }

    /// A timeout has passed without an answer. Sends the next copy, waits on, or gives up.
    pub(crate) fn time_out(&mut self, now: Instant, index: u32) {
        let exchange = &self.exchanges[index];
        let (first, retransmits) = (exchange.first, exchange.retransmits);
        let max_retransmit = self.setup.config.max_retransmit;
        self.peers[exchange.peer].note_timeout(retransmits, max_retransmit);
        if retransmits < max_retransmit {
            self.line_up(index);
            return;
        }
        let fast = |patience: &Patience| now.since(first) < patience.least_wait(max_retransmit);
        let Some(patience) = self.setup.patience().filter(fast) else {
            self.give_up(now, index);
            return;
        };
        let probe = first + patience.max_span(max_retransmit);
        if max_retransmit == 0 {
            self.deadlines.set(2 * index, first + patience.max_wait(0));
        } else if now < probe {
            self.deadlines.set(2 * index, probe);
        } else {
            self.line_up(index);
        }
    }

    /// The last retransmission was in vain, or is not waited for.
    pub(crate) fn give_up(&mut self, now: Instant, index: u32) {
        self.tally.given_up += 1;
        self.fail(now, index, Failure::GivenUp, Outcome::GivenUp);
    }

    /// Queues a message that waits for nothing, with the Rexmit-Cnt option if there is a `count`.
    pub(crate) fn reply(&mut self, to: A, message: &Message<'_>, count: Option<u8>) -> bool {
        if message.token.is_extended() {
            return self.reply_extended(to, message, count);
        }
        let outbox = &mut self.rare.get_or_insert_default().outbox;
        outbox.push(self.setup.config.max_replies, to, |buffer| message.write_marked(count, buffer))
    }

    /// Queues a message whose token is longer than 8 bytes; without that it would be a reply to nothing.
    #[cold]
    fn reply_extended(&mut self, to: A, message: &Message<'_>, count: Option<u8>) -> bool {
        let Rare { outbox, tokens, .. } = &mut **self.rare.get_or_insert_default();
        let known = tokens.as_ref().and_then(|tokens| tokens.get(to, message.token));
        let Some(extended_token) = known else { return false };
        let message = Message { extended_token, ..*message };
        outbox.push(self.setup.config.max_replies, to, |buffer| message.write_marked(count, buffer))
    }
}

/// Takes an exchange, which stands behind `before`, out of those that wait for a place.
fn leave_queue<C: Controller, A>(
    peer: &mut Peer<C, A>,
    exchanges: &mut Slab<Exchange<C>>,
    before: u32,
    index: u32,
) {
    let next = exchanges[index].next;
    match before {
        NONE => peer.waiting_head = next,
        before => exchanges[before].next = next,
    }
    if next == NONE {
        peer.waiting_tail = before;
    }
}
