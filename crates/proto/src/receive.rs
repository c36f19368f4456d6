//! The handling of a received datagram.

use alloc::boxed::Box;

use coapace_control::{Controller, Instant, Marking, Outcome};

use crate::allowance::Allowance;
use crate::code::Code;
use crate::deduplication::{IncomingMessage, Reaction, Worth};
use crate::endpoint::Endpoint;
use crate::event::{Event, Responder};
use crate::exchange::{ExchangeEnd, ExchangeId, ExchangePurpose, ExchangeStage, Failure, OpenExchange};
use crate::message::{Kind, Malformed, Message, REXMIT_CNT_PROBE};
use crate::peer::{ASK_AGAIN_AFTER, Address, MarkedAnswer, RexmitCntEcho};
use crate::rare::Rare;

impl<C: Controller, A: Address> Endpoint<C, A> {
    /// Handles a received datagram. Returns the event for the application, if any.
    ///
    /// Malformed datagrams are counted, and ignored or rejected according to RFC 7252 §4.2 and §4.3.
    pub fn handle_datagram<'b>(&mut self, now: Instant, from: A, bytes: &'b [u8]) -> Option<Event<'b, A>> {
        self.note_received(bytes);
        let message = match Message::parse(bytes) {
            Ok(message) if message.extended_token.len() <= usize::from(self.setup.config.max_token) => {
                message
            }
            // A token above the bound is treated like a format error: a confirmable message gets a Reset (RFC 7252 §4.2).
            Ok(Message { kind: Kind::Confirmable, message_id, .. })
            | Err(Malformed::Format { kind: Kind::Confirmable, message_id }) => {
                self.reply(from, &Message::empty(Kind::Reset, message_id), None);
                return self.malformed();
            }
            _ => return self.malformed(),
        };
        match message.kind {
            // This is a ping: an empty confirmable message asks for a Reset (RFC 7252 §4.3).
            Kind::Confirmable if message.code == Code::EMPTY => {
                self.reply(from, &Message::empty(Kind::Reset, message.message_id), None);
                None
            }
            Kind::Confirmable | Kind::NonConfirmable if message.code.is_request() => {
                self.receive_request(now, from, message)
            }
            Kind::Confirmable | Kind::NonConfirmable if message.code.is_response() => {
                self.receive_separate(now, from, message)
            }
            Kind::Acknowledgement if message.code == Code::EMPTY || message.code.is_response() => {
                self.receive_ack(now, from, message)
            }
            Kind::Reset if message.code == Code::EMPTY => self.receive_reset(now, from, message.message_id),
            // Class 3 is reserved, like the classes that `Message::parse` rejects (RFC 7252 §3).
            Kind::Confirmable => {
                self.reply(from, &Message::empty(Kind::Reset, message.message_id), None);
                self.malformed()
            }
            _ => self.malformed(),
        }
    }

    pub(crate) fn note_received(&mut self, bytes: &[u8]) {
        self.tally.received += 1;
        if let Some(measures) = Rare::measures(&mut self.rare) {
            measures.received_bytes += bytes.len() as u64;
        }
    }

    pub(crate) fn malformed<'b>(&mut self) -> Option<Event<'b, A>> {
        self.rare.get_or_insert_default().malformed += 1;
        None
    }

    fn late<'b>(&mut self) -> Option<Event<'b, A>> {
        self.tally.late_replies += 1;
        None
    }

    pub(crate) fn receive_request<'b>(
        &mut self,
        now: Instant,
        from: A,
        message: Message<'b>,
    ) -> Option<Event<'b, A>> {
        let confirmable = message.kind == Kind::Confirmable;
        let Message { message_id, token, .. } = message;
        // The sluice comes first, because a copy that it withholds does not count as a duplicate.
        if let Some(sluice) = self.sluice().filter(|_| confirmable)
            && sluice.withholds(now, from, message_id)
        {
            return None;
        }
        if token.is_extended() {
            self.keep_token(from, &message);
        }
        let mut responder = Responder {
            to: from,
            method: message.code,
            group: false,
            message_id,
            token,
            confirmable,
            acknowledged: false,
            rexmit_cnt: message.rexmit_cnt,
            remembered: true,
            allowance: Allowance::UNLIMITED,
        };
        if let Some(deduplication) = self.deduplication() {
            if let Some(reaction) = deduplication.recognise(now, from, message_id, token) {
                if confirmable {
                    // The copy is acknowledged at once, so the response will come separately.
                    if *reaction == Reaction::None {
                        *reaction = Reaction::Acknowledged;
                    }
                    let reaction = reaction.clone();
                    self.reply_again(now, &responder, &reaction);
                }
                return None;
            }
            let worth = if message.is_repeatable() { Worth::Repeatable } else { Worth::Request };
            let arrival = IncomingMessage { from, message_id, token, confirmable, worth };
            responder.remembered = deduplication.insert(now, arrival, Reaction::None);
        }
        Some(Event::Request { responder, message })
    }

    /// Stores the bytes of a token of more than 8 bytes, because the answer needs them. They are kept as long as the
    /// client observes a resource with this token.
    #[cold]
    fn keep_token(&mut self, from: A, request: &Message<'_>) {
        let bound = self.setup.config.max_observers.saturating_add(self.setup.config.max_peers);
        let Rare { tokens, observers, .. } = &mut **self.rare.get_or_insert_default();
        let observes = |peer, token| {
            observers.as_ref().is_some_and(|observers| observers.find_token(peer, token).is_some())
        };
        tokens.get_or_insert_default().keep(bound, from, request.token, request.extended_token, observes);
    }

    /// Answers a duplicate with the answer to the first copy. The answer has the token of the duplicate, because the client may
    /// mark its retransmissions there.
    fn reply_again(&mut self, now: Instant, responder: &Responder<A>, reaction: &Reaction) {
        let empty = Message::empty(Kind::Acknowledgement, responder.message_id);
        match reaction {
            Reaction::Replied { code, tail } => {
                let reply = Message { code: *code, token: responder.token, tail, ..empty };
                let replied = self.reply(responder.to, &reply, responder.rexmit_cnt);
                if let Some(sluice) = self.sluice().filter(|_| replied) {
                    sluice.answers(now, responder.to, responder.message_id);
                }
            }
            Reaction::None | Reaction::Acknowledged => drop(self.reply(responder.to, &empty, None)),
            Reaction::Rejected => self.send_reset(responder),
        }
    }

    /// Returns whether the request, or a copy of it, was already acknowledged. If not, later copies get `reaction`.
    pub(crate) fn was_acknowledged(
        &mut self,
        now: Instant,
        responder: &Responder<A>,
        reaction: impl FnOnce() -> Reaction,
    ) -> bool {
        let Responder { to, message_id, token, acknowledged, .. } = *responder;
        if acknowledged {
            return true;
        }
        match self.deduplication().and_then(|deduplication| deduplication.find(now, to, message_id, token)) {
            Some(Reaction::Acknowledged) => true,
            Some(known) => {
                *known = reaction();
                false
            }
            None => false,
        }
    }

    /// Handles an acknowledgement, empty or with a piggybacked response.
    fn receive_ack<'b>(&mut self, now: Instant, from: A, message: Message<'b>) -> Option<Event<'b, A>> {
        let matches = |exchange: &OpenExchange<C>| exchange.departed_as(message.message_id);
        let Some((slot, index)) = self.find_active(from, matches) else {
            self.note_further_answer(from, &message);
            return self.late();
        };
        let exchange = &self.exchanges[index];
        // A non-confirmable message is never acknowledged (RFC 7252 §4.3).
        let expected = exchange.confirmable
            && matches!(exchange.stage, ExchangeStage::Due | ExchangeStage::InFlight | ExchangeStage::Lost);
        if !expected || exchange.purpose == ExchangePurpose::Ping {
            return self.late();
        }
        let marking = if exchange.is_marked() {
            exchange.marking(self.setup.controller.limits(&self.peers[slot].state).marking)
        } else {
            Marking::None
        };
        let by_message_id =
            exchange.ordinal_of(message.message_id).filter(|_| marking == Marking::FreshMessageId);

        if message.code == Code::EMPTY {
            // An acknowledgement repeats the Message ID that it answers, so the transmission it names is the
            // right one.
            let acked = Outcome::Acked(exchange.sample(now, by_message_id, true));
            let (id, purpose) = (self.id(index), exchange.purpose);
            self.peers[slot].note_answer();
            // The acknowledgement shows that the client receives messages at its address. If it observes, it is verified now.
            if matches!(purpose, ExchangePurpose::Response | ExchangePurpose::PartOfResponse) {
                self.verify_observer(now, from, self.exchanges[index].token);
            }
            if purpose.awaits_response() {
                self.await_response(now, index, acked);
            } else {
                self.end(now, index, ExchangeEnd::Answered(acked));
            }
            // The application does not know the exchanges of notifications.
            return (purpose != ExchangePurpose::Notification)
                .then_some(Event::Acknowledged { exchange: id });
        }
        // The token of a piggybacked response has to match, not only its Message ID (RFC 7252 §5.3.2).
        if !exchange.purpose.takes_response() || !may_answer(exchange, &message, marking) {
            return self.late();
        }
        let by_token = token_ordinal(exchange, &message, marking);
        let by_option = self.echoed_ordinal(slot, index, &message, marking);
        let answered = by_message_id.or(by_token).or(by_option);
        let (exchange, peer) = (&self.exchanges[index], &mut self.peers[slot]);
        // An acknowledgement has the Message ID of the copy that it answers (RFC 7252 §4.2), so that copy is believed.
        let each = by_message_id.is_some() || peer.answers_each;
        let sample = exchange.sample(now, answered, each);
        if let Some(ordinal) = answered.filter(|_| !each && exchange.retransmits > 0) {
            let (message_id, token) = (message.message_id, exchange.token);
            peer.answered = Some(Box::new(MarkedAnswer { message_id, token, ordinal }));
        }
        Some(self.respond_to(now, index, message, Outcome::Acked(sample)))
    }

    /// Handles a separate or non-confirmable response.
    fn receive_separate<'b>(&mut self, now: Instant, from: A, message: Message<'b>) -> Option<Event<'b, A>> {
        let (id, token) = (message.message_id, message.token);
        // A copy is recognised before its token is looked for (RFC 7252 §4.5): an empty token, or one used again, would make it
        // the response to a later request.
        let known = self.deduplication().and_then(|known| known.recognise(now, from, id, token));
        if let Some(reaction) = known {
            let rejected = *reaction == Reaction::Rejected;
            self.reply_to_response(from, &message, rejected);
            return self.late();
        }
        let wanted = self.wanted_marking(from);
        let matches = |exchange: &OpenExchange<C>| {
            exchange.purpose.takes_response()
                && matches!(
                    exchange.stage,
                    ExchangeStage::Due
                        | ExchangeStage::InFlight
                        | ExchangeStage::Lost
                        | ExchangeStage::Acknowledged
                )
                && exchange.departed
                && may_answer(exchange, &message, exchange.marking(wanted))
        };
        let Some((_, index)) = self.find_active(from, matches) else {
            return self.receive_further(now, from, message);
        };
        let rejected = self.unrecognised(&message).is_some();
        self.take_in(now, from, &message, rejected);
        // This response is not a sample of the round-trip time: it includes the time that the server took. So the mechanism learns
        // only that the exchange is over, if the acknowledgement was lost.
        Some(self.respond_to(now, index, message, Outcome::Cancelled))
    }

    /// Handles a response that belongs to no outstanding exchange and is not a copy. It may be a further response to an
    /// observation or to a request to a group, or unknown.
    fn receive_further<'b>(&mut self, now: Instant, from: A, message: Message<'b>) -> Option<Event<'b, A>> {
        let listened = self.listeners().and_then(|listeners| listeners.find(from, message.token));
        let unrecognised = listened.and_then(|_| self.unrecognised(&message));
        // A notification that nobody waits for is rejected, so that the server ends the observation (RFC 7641 §3.6).
        self.take_in(now, from, &message, listened.is_none() || unrecognised.is_some());
        let Some((exchange, observation)) = listened else { return self.late() };
        if let Some(option) = unrecognised {
            // Other members of the group may still answer, so the request goes on.
            if !observation {
                return self.late();
            }
            self.cancel(now, exchange);
            return Some(Event::Rejected { exchange, option });
        }
        if observation && !goes_on(&message) {
            self.listeners()?.remove(from, message.token);
        }
        Some(Event::Notification { exchange, message })
    }

    /// Returns the first critical option of a response that the application does not recognise.
    fn unrecognised(&self, response: &Message<'_>) -> Option<u16> {
        response.first_unrecognised(self.setup.config.recognised?)
    }

    /// Acknowledges or rejects a separate response, and remembers it, so that its copies get the same reply (RFC 7252 §4.5).
    ///
    /// A rejected response is among the messages that are dropped first, because anyone may send unwanted responses. A copy of
    /// it can be judged again.
    fn take_in(&mut self, now: Instant, from: A, message: &Message<'_>, rejected: bool) {
        self.reply_to_response(from, message, rejected);
        if let Some(deduplication) = self.deduplication() {
            let Message { kind, message_id, token, .. } = *message;
            let confirmable = kind == Kind::Confirmable;
            let worth = if rejected { Worth::Repeatable } else { Worth::Response };
            let arrival = IncomingMessage { from, message_id, token, confirmable, worth };
            let reaction = if rejected { Reaction::Rejected } else { Reaction::Acknowledged };
            deduplication.insert(now, arrival, reaction);
        }
    }

    /// Replies to a separate response with an acknowledgement, or with a Reset if it is `rejected`. A notification is
    /// rejected even if it is non-confirmable, because the Reset ends the observation (RFC 7641 §3.6).
    fn reply_to_response(&mut self, from: A, message: &Message<'_>, rejected: bool) {
        let confirmable = message.kind == Kind::Confirmable;
        let kind = match rejected {
            true if confirmable || message.observe().is_some() => Kind::Reset,
            false if confirmable => Kind::Acknowledgement,
            _ => return,
        };
        self.reply(from, &Message::empty(kind, message.message_id), None);
    }

    fn receive_reset<'b>(&mut self, now: Instant, from: A, message_id: u16) -> Option<Event<'b, A>> {
        // A message is acknowledged or rejected, not both (RFC 7252 §4.2). The Reset of a request that is acknowledged belongs to a
        // late copy, or is forged: a Message ID is guessed more easily than a token.
        let matches = |exchange: &OpenExchange<C>| {
            exchange.stage != ExchangeStage::Acknowledged && exchange.departed_as(message_id)
        };
        let Some((slot, index)) = self.find_active(from, matches) else {
            let Some(observer) = self.reset_observer(now, from, message_id) else { return self.late() };
            return Some(Event::ObserverGone { observer, failure: Failure::Reset });
        };
        let (id, purpose) = (self.id(index), self.exchanges[index].purpose);
        self.peers[slot].note_answer();
        if purpose == ExchangePurpose::Ping {
            self.end(now, index, ExchangeEnd::Answered(Outcome::Reset));
            return Some(Event::Pong { exchange: id });
        }
        self.end(now, index, ExchangeEnd::Failed(Failure::Reset));
        self.failure_event(id, purpose, Failure::Reset)
    }

    /// Learns from an acknowledgement that belongs to no outstanding exchange. It may be a second answer to the
    /// exchange that ended last. If it identifies another transmission than the first answer did, the peer marks each
    /// answer like the copy that it answers.
    fn note_further_answer(&mut self, from: A, message: &Message<'_>) {
        let Some(slot) = self.peers.find(from) else { return };
        let peer = &mut self.peers[slot];
        let Some(first) = peer.answered.as_ref().filter(|first| first.message_id == message.message_id)
        else {
            return;
        };
        let ordinal = match message.rexmit_cnt {
            Some(count) => Some(count).filter(|&count| count != REXMIT_CNT_PROBE),
            // A plain token is the marking of the first transmission.
            None if first.token == message.token => Some(0),
            None => first.token.byte_beyond(&message.token),
        };
        if ordinal.is_some_and(|ordinal| ordinal != first.ordinal) {
            peer.answers_each = true;
            peer.answered = None;
        }
    }

    /// Returns the slot of the peer, and the slot of its first active exchange that `matches`.
    fn find_active(&self, from: A, matches: impl Fn(&OpenExchange<C>) -> bool) -> Option<(u32, u32)> {
        let slot = self.peers.find(from)?;
        let mut active = self.peers[slot].active.iter(&self.exchanges);
        active.find(|(_, exchange)| matches(exchange)).map(|(index, _)| (slot, index))
    }

    /// Returns the ordinal in the Rexmit-Cnt option of a response. Records whether the peer echoes the option.
    fn echoed_ordinal(
        &mut self,
        slot: u32,
        index: u32,
        message: &Message<'_>,
        marking: Marking,
    ) -> Option<u8> {
        let peer = &mut self.peers[slot];
        if marking != Marking::Option
            || matches!(peer.rexmit_cnt_echo, RexmitCntEcho::Unknown | RexmitCntEcho::No(_))
        {
            return None;
        }
        peer.rexmit_cnt_echo = match (message.rexmit_cnt, peer.rexmit_cnt_echo) {
            (Some(_), _) => RexmitCntEcho::Yes,
            // A peer that has echoed it before is asked again with the next request.
            (None, RexmitCntEcho::Yes) => RexmitCntEcho::Unknown,
            (None, _) => RexmitCntEcho::No(ASK_AGAIN_AFTER),
        };
        let count = if message.rexmit_cnt? == REXMIT_CNT_PROBE { 0 } else { message.rexmit_cnt? };
        // A higher ordinal was never sent.
        (count <= self.exchanges[index].retransmits).then_some(count)
    }

    fn id(&self, index: u32) -> ExchangeId {
        ExchangeId { index, generation: self.exchanges[index].generation }
    }

    /// Ends an exchange with this response. Returns the event. The exchange also ends if the response is rejected,
    /// because no other response will come.
    fn respond_to<'b>(
        &mut self,
        now: Instant,
        index: u32,
        mut message: Message<'b>,
        outcome: Outcome,
    ) -> Event<'b, A> {
        let exchange = self.id(index);
        let unrecognised = self.unrecognised(&message);
        message.token = self.exchanges[index].token;
        let peer = &mut self.peers[self.exchanges[index].peer];
        peer.note_answer();
        // The response ends the gap after its request.
        if peer.last_non == index {
            peer.next_non = Instant::ZERO;
        }
        // A rejected response, or one without Observe, is the last one to this registration.
        let over = unrecognised.is_some() || !goes_on(&message);
        if self.exchanges[index].purpose == ExchangePurpose::Observation && over {
            self.stop_listening(exchange);
        }
        self.end(now, index, ExchangeEnd::Answered(outcome));
        match unrecognised {
            Some(option) => Event::Rejected { exchange, option },
            None => Event::Response { exchange, message },
        }
    }
}

/// Returns whether notifications follow this response (RFC 7641 §3.2, §4.2).
fn goes_on(response: &Message<'_>) -> bool {
    response.code.0 >> 5 == 2 && response.observe().is_some()
}

/// Returns whether a response has the token of the exchange, with or without the ordinal of a transmission.
fn may_answer<C: Controller>(exchange: &OpenExchange<C>, message: &Message<'_>, marking: Marking) -> bool {
    let plain = exchange.token == message.token;
    let ordinal = exchange.token.byte_beyond(&message.token);
    let longer = ordinal.is_some_and(|ordinal| ordinal <= exchange.retransmits);
    match marking {
        // With this marking, even the first transmission has the byte.
        Marking::Token => longer,
        Marking::TokenOnRetransmit => plain || longer,
        Marking::None | Marking::Option | Marking::FreshMessageId => plain,
    }
}

/// Returns the ordinal of the transmission that the token of a response identifies.
fn token_ordinal<C: Controller>(
    exchange: &OpenExchange<C>,
    message: &Message<'_>,
    marking: Marking,
) -> Option<u8> {
    match marking {
        Marking::TokenOnRetransmit if exchange.token == message.token => Some(0),
        Marking::Token | Marking::TokenOnRetransmit => exchange.token.byte_beyond(&message.token),
        Marking::None | Marking::Option | Marking::FreshMessageId => None,
    }
}
