//! The single function through which messages depart.

use alloc::vec::Vec;

use coapace_control::{Controller, Cue, Draw, Duration, Instant, Limits, Marking};

use crate::deadlines::DeadlineOwner;
use crate::endpoint::Endpoint;
use crate::exchange::{ExchangeEnd, ExchangeStage, Failure, OpenExchange, Step};
use crate::message::{Kind, Message};
use crate::peer::{Address, Peer};
use crate::rare::Rare;
use crate::{Config, NONE, Setup};

/// A datagram to send. Its bytes were appended to the buffer passed to [`Endpoint::poll_transmit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit<A> {
    /// The destination.
    pub to: A,
    /// The exchange of the datagram, and which of its transmissions this is; `None` for a reply.
    pub step: Option<Step>,
    /// The timeout armed for the transmission; `None` if the message is non-confirmable, or if its exchange does not
    /// wait for an answer.
    pub timeout: Option<Duration>,
}

impl<C: Controller, A: Address> Endpoint<C, A> {
    /// Appends the next datagram to send to `buffer`. Returns its destination, or `None` if there is nothing to send now.
    ///
    /// `draw` returns the random number of a transmission.
    ///
    /// Call this until it returns `None`. After that, these calls may make a datagram available:
    /// [`handle_datagram`](Self::handle_datagram), [`handle_group_datagram`](Self::handle_group_datagram),
    /// [`handle_timeout`](Self::handle_timeout), [`poll_event`](Self::poll_event) if notifications wait, and all requests of
    /// the application: requests, pings, responses, acknowledgements, [`notify`](Self::notify), [`register`](Self::register),
    /// [`register_stranger`](Self::register_stranger), [`deregister`](Self::deregister) and [`cancel`](Self::cancel). The
    /// passage of time alone does not.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        mut draw: impl FnMut(Step) -> Draw,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit<A>> {
        let start = buffer.len();
        let transmit = self.next_datagram(now, &mut draw, buffer)?;
        if let Some(measures) = Rare::measures(&mut self.rare) {
            measures.sent += 1;
            measures.sent_bytes += (buffer.len() - start) as u64;
        }
        Some(transmit)
    }

    /// Writes a reply if one waits, otherwise the next transmission of an exchange.
    fn next_datagram(
        &mut self,
        now: Instant,
        draw: &mut impl FnMut(Step) -> Draw,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit<A>> {
        if let Some(rare) = &mut self.rare {
            // Replies go first: they wait for no rate, and a peer without its answer sends another copy.
            if let Some(to) = rare.outbox.pop(buffer) {
                return Some(Transmit { to, step: None, timeout: None });
            }
            if rare.observers.is_some() {
                self.begin_notifications(now);
            }
        }
        loop {
            let (index, start) = (self.next_in_line()?, buffer.len());
            let transmit = self.depart(now, index, draw, buffer);
            // Nothing was written if the allowance is used up. The next exchange has its turn then.
            if buffer.len() > start {
                return Some(transmit);
            }
        }
    }

    /// Writes the next transmission of an exchange, and advances the exchange. Writes nothing if the allowance of the exchange
    /// is used up; the exchange continues as if the copy were lost.
    fn depart(
        &mut self,
        now: Instant,
        index: u32,
        draw: &mut impl FnMut(Step) -> Draw,
        buffer: &mut Vec<u8>,
    ) -> Transmit<A> {
        // This comes before the choice of the type: the new representation may ask for a confirmable message.
        let may_be_last = self.exchanges[index].purpose.ends_with_departure();
        let renewed = may_be_last && self.renew(index);

        let Self { setup, exchanges, peers, deadlines, rare, tally, .. } = self;
        let (setup, exchange) = (&**setup, &mut exchanges[index]);
        let slot = exchange.peer;
        let peer = &mut peers[slot];

        let step = exchange.count_transmission();
        let first = step.transmission == 0;
        if first {
            // A lane counts its own exchanges in flight.
            peer.in_flight += u16::from(!exchange.purpose.is_in_lane());
            if choose_type(&setup.config, exchange, peer) {
                rare.get_or_insert_default().converted += 1;
            }
        }
        let limits = setup.controller.limits(&peer.state);
        let timeout = match &mut peer.lane {
            Some(lane) if exchange.purpose.is_in_lane() => lane.depart(now, setup, exchange, draw(step)),
            _ => ask(now, setup, exchange, peer, step, draw),
        };
        // A non-confirmable request has a deadline, too: the end of the wait for its response.
        deadlines.set(DeadlineOwner::Exchange(index), now + timeout);
        if first {
            if let Some(measures) = Rare::measures(rare) {
                // The RTO of a lane belongs to another mechanism, and a non-confirmable message arms none.
                let single = exchange.confirmable && !exchange.purpose.is_in_lane();
                let rto = single.then(|| setup.controller.gauges(&peer.state).rto);
                measures.departs(now.since(exchange.first), rto);
            }
            tally.started += 1;
            // Until now this was the moment of the call. Round-trip times count from the departure.
            exchange.first = now;
        } else {
            tally.retransmissions += 1;
        }
        exchange.last = now;
        exchange.stage = ExchangeStage::InFlight;

        let marking = exchange.marking(limits.marking);
        mark(now, setup, exchange, peer, marking, renewed, timeout);
        let start = buffer.len();
        encode(rare.as_deref(), exchange, peer, marking, buffer);
        // An unverified source gets no more than its allowance (RFC 9175 §2.4). The timer goes on as if this copy were lost.
        if exchange.limited && !Rare::spend(rare, index, buffer.len() - start) {
            buffer.truncate(start);
            // The copy was counted above.
            tally.retransmissions -= u64::from(!first);
        }
        if !exchange.confirmable {
            let bytes = buffer.len() - start;
            peer.next_non = now + setup.config.non_gap(bytes, limits.non_gap, peer.silent);
            // A response to a request ends the gap. No response follows a notification, so its gap has to pass (RFC 7641
            // §4.5.1).
            peer.last_non = if may_be_last { NONE } else { index };
        }
        let (to, timeout) = (peer.address, exchange.confirmable.then_some(timeout));
        // This may end the exchange, so everything that reads it comes before.
        let waits = self.move_on(now, index, limits, may_be_last);
        Transmit { to, step: Some(step), timeout: timeout.filter(|_| waits) }
    }

    /// Continues after a departure: gives the exchange up if the mechanism does not wait after the last retransmission,
    /// otherwise admits the next exchange with the peer. Returns whether the exchange may still wait for an answer.
    fn move_on(&mut self, now: Instant, index: u32, limits: Limits, may_be_last: bool) -> bool {
        let Config { max_retransmit, patience, .. } = self.setup.config;
        let &OpenExchange { retransmits, peer, .. } = &self.exchanges[index];
        // With MAX_RETRANSMIT 0 the first transmission is also waited for.
        let last = retransmits > 0 && retransmits >= max_retransmit;
        // Some mechanisms do not wait for an answer to the last retransmission. A patient endpoint does nevertheless.
        let is_over = last && !limits.final_wait && !patience;
        if is_over {
            self.end(now, index, ExchangeEnd::Failed(Failure::GivenUp));
        } else {
            self.admit(now, peer);
        }
        if may_be_last {
            self.note_departure(now, index);
        }
        !is_over
    }

    /// Records the departure of a message that may need no answer. If it is not confirmable, the exchange has ended.
    #[cold]
    fn note_departure(&mut self, now: Instant, index: u32) {
        self.note_notification(index);
        if !self.exchanges[index].confirmable {
            self.end(now, index, ExchangeEnd::Cancelled);
        }
    }
}

/// Decides, before the first transmission, whether the message is sent as confirmable. Returns true if a
/// non-confirmable message was made confirmable.
fn choose_type<C: Controller, A>(
    config: &Config,
    exchange: &mut OpenExchange<C>,
    peer: &mut Peer<C, A>,
) -> bool {
    // A response takes its type from the request (RFC 7252 §5.2.3), and a request to a group is never confirmable (§8.1).
    if !exchange.purpose.may_be_confirmable() {
        return false;
    }
    let converted = !exchange.confirmable && peer.owes_confirmable(config.confirmable_every);
    exchange.confirmable |= converted;
    peer.nons = if exchange.confirmable { 0 } else { peer.nons.saturating_add(1) };
    converted
}

/// Returns how long to wait for an answer to this transmission. The mechanism decides that for a confirmable message.
/// For a non-confirmable one it is [`response_timeout`](Config::response_timeout).
fn ask<C: Controller, A>(
    now: Instant,
    setup: &Setup<C>,
    exchange: &mut OpenExchange<C>,
    peer: &mut Peer<C, A>,
    step: Step,
    draw: &mut impl FnMut(Step) -> Draw,
) -> Duration {
    if !exchange.confirmable {
        // The mechanism arms no timer here. This is the time for the response.
        return setup.config.response_timeout;
    }
    let cue = Cue { now, draw: draw(step), outstanding: peer.in_flight };
    let timeout = exchange.arm(&setup.controller, &mut peer.state, cue);
    setup.patient(now, exchange.first, step.transmission, peer.silent, cue.draw, timeout)
}

/// Gives a transmission its own Message ID if it needs one. Records a marked transmission, so that an answer can
/// identify it.
fn mark<C: Controller, A>(
    now: Instant,
    setup: &Setup<C>,
    exchange: &mut OpenExchange<C>,
    peer: &mut Peer<C, A>,
    marking: Marking,
    renewed: bool,
    timeout: Duration,
) {
    // A copy keeps its Message ID if no other is free. New content must not.
    let fresh =
        marking == Marking::FreshMessageId && peer.message_ids.free_at(|| setup.exchange_lifetime()) <= now;
    if exchange.retransmits > 0 && (renewed || fresh) {
        exchange.message_id = peer.message_ids.take(now);
    }
    if marking != Marking::None {
        if renewed {
            exchange.outdate_departures();
        }
        exchange.note_departure(now, timeout);
    }
}

/// Appends the message to `buffer`, with the marking of this transmission.
fn encode<C: Controller, A: Address>(
    rare: Option<&Rare<A>>,
    exchange: &OpenExchange<C>,
    peer: &mut Peer<C, A>,
    marking: Marking,
    buffer: &mut Vec<u8>,
) {
    let transmission = exchange.retransmits;
    let kind = if exchange.confirmable { Kind::Confirmable } else { Kind::NonConfirmable };
    let token = match marking {
        Marking::Token => exchange.token.with(transmission),
        // The first transmission has the token of the application, so that only copies are longer.
        Marking::TokenOnRetransmit if transmission > 0 => exchange.token.with(transmission),
        _ => exchange.token,
    };
    let (code, tail) = (exchange.code, exchange.tail.as_slice());
    let mut message = Message { code, token, tail, ..Message::empty(kind, exchange.message_id) };
    if token.is_extended() {
        // If the bytes of the token are forgotten, its digest is sent, and the peer rejects the message.
        let tokens = rare.and_then(|rare| rare.tokens.as_ref());
        let known = tokens.and_then(|tokens| tokens.get(peer.address, token));
        message.extended_token = known.unwrap_or(&token);
    }
    message.write_marked(peer.rexmit_cnt(marking, transmission), buffer);
}
