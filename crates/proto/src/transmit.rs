//! The one place where a message leaves.

use alloc::vec::Vec;

use coapace_control::{Controller, Cue, Draw, Duration, Instant, Marking, Outcome};

use crate::endpoint::Endpoint;
use crate::exchange::Stage;
use crate::message::{Kind, Message};
use crate::peer::Address;
use crate::rare::Rare;
use crate::{NONE, Setup};

/// A datagram to send; its bytes are in the buffer that was passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit<A> {
    /// Where it goes.
    pub to: A,
    /// Which transmission of which exchange it is; nothing for a reply.
    pub step: Option<Step>,
    /// The timeout that is armed for it, if it is confirmable.
    pub timeout: Option<Duration>,
}

/// One transmission of one exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The exchange, counted from 0 in the order in which they were begun.
    pub exchange: u32,
    /// The transmission, 0 for the first.
    pub transmission: u8,
}

impl<C: Controller, A: Address> Endpoint<C, A> {
    /// The next datagram to send: appended to `buffer`. To be called until there is none.
    ///
    /// `draw` gives the one random number of a transmission.
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

    fn next_datagram(
        &mut self,
        now: Instant,
        draw: &mut impl FnMut(Step) -> Draw,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit<A>> {
        if let Some(rare) = &mut self.rare {
            if let Some(to) = rare.outbox.pop(buffer) {
                return Some(Transmit { to, step: None, timeout: None });
            }
            if rare.observers.is_some() {
                self.begin_notifications(now);
            }
        }
        let index = self.next_in_line()?;
        Some(self.depart(now, index, draw, buffer))
    }

    /// What may need no answer has departed: if it is not confirmable, it is over.
    #[cold]
    fn note_departure(&mut self, now: Instant, index: u32) {
        self.note_notification(index);
        if !self.exchanges[index].confirmable {
            self.finish(now, index, Outcome::Cancelled);
            self.release(index);
            self.notification_over(now, index, false);
        }
    }

    fn depart(
        &mut self,
        now: Instant,
        index: u32,
        draw: &mut impl FnMut(Step) -> Draw,
        buffer: &mut Vec<u8>,
    ) -> Transmit<A> {
        let may_be_last = self.exchanges[index].purpose.ends_with_departure();
        let renewed = may_be_last && self.renew(index);
        let setup = &*self.setup;
        let Setup { controller, config } = setup;
        let exchange = &mut self.exchanges[index];
        let slot = exchange.peer;
        let peer = &mut self.peers[slot];
        let again = core::mem::replace(&mut exchange.departed, true);
        exchange.retransmits = exchange.retransmits.saturating_add(u8::from(again));
        peer.in_flight += u16::from(!again);
        let step = Step { exchange: exchange.ordinal, transmission: exchange.retransmits };

        if !again && exchange.purpose.may_be_confirmable() {
            if !exchange.confirmable && peer.owes_confirmable(config.confirmable_every) {
                exchange.confirmable = true;
                self.rare.get_or_insert_default().converted += 1;
            }
            peer.nons = if exchange.confirmable { 0 } else { peer.nons.saturating_add(1) };
        }

        let limits = controller.limits(&peer.state);
        let marking = exchange.marking(limits.marking);
        let timeout = if exchange.confirmable {
            let cue = Cue { now, draw: draw(step), outstanding: peer.in_flight };
            let timeout = if let Some(control) = &mut exchange.control {
                controller.on_retransmit(&mut peer.state, control, cue)
            } else {
                let (control, timeout) = controller.on_start(&mut peer.state, cue);
                exchange.control = Some(control);
                timeout
            };
            setup.patient(now, exchange.first, step.transmission, peer.silent, cue.draw, timeout)
        } else {
            config.response_timeout
        };
        self.deadlines.set(2 * index, now + timeout);
        if again {
            self.tally.retransmissions += 1;
        } else {
            if let Some(measures) = Rare::measures(&mut self.rare) {
                let rto = exchange.confirmable.then(|| controller.gauges(&peer.state).rto);
                measures.departs(now.since(exchange.first), rto);
            }
            exchange.first = now;
            self.tally.started += 1;
        }
        exchange.last = now;
        exchange.stage = Stage::InFlight;
        // A copy that would need an ID in use goes out under the one it had; other content must not.
        let fresh = marking == Marking::FreshMessageId
            && peer.message_ids.free_at(|| self.setup.exchange_lifetime()) <= now;
        if again && (renewed || fresh) {
            exchange.message_id = peer.message_ids.take(now);
        }
        if marking != Marking::None {
            if renewed {
                exchange.outdate_departures();
            }
            exchange.note_departure(now, timeout);
        }

        let armed = exchange.confirmable.then_some(timeout);
        let kind = if exchange.confirmable { Kind::Confirmable } else { Kind::NonConfirmable };
        let token = match marking {
            Marking::Token => exchange.token.with(step.transmission),
            Marking::TokenOnRetransmit if again => exchange.token.with(step.transmission),
            _ => exchange.token,
        };
        let (code, tail) = (exchange.code, exchange.tail.as_slice());
        let mut message = Message { code, token, tail, ..Message::empty(kind, exchange.message_id) };
        if token.is_extended() {
            // Of one that is forgotten the digest goes out, and the peer rejects the message.
            let tokens = self.rare.as_ref().and_then(|rare| rare.tokens.as_ref());
            let known = tokens.and_then(|tokens| tokens.get(peer.address, token));
            message.extended_token = known.unwrap_or(&token);
        }
        let count = peer.rexmit_cnt(marking, step.transmission);
        let (to, start) = (peer.address, buffer.len());
        message.write_marked(count, buffer);
        if !exchange.confirmable {
            peer.next_non = now + config.non_gap(buffer.len() - start, limits.non_gap, peer.silent);
            peer.last_non = if may_be_last { NONE } else { index };
        }
        let last = again && exchange.retransmits >= config.max_retransmit;
        if last && !limits.final_wait && !config.patience {
            self.give_up(now, index);
        } else {
            self.admit(now, slot);
        }
        if may_be_last {
            self.note_departure(now, index);
        }
        Transmit { to, step: Some(step), timeout: armed }
    }
}
