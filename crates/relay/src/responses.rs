//! Messages that return from the face of an exchange to the face where its request arrived.

use std::net::SocketAddr;

use coapace_control::Instant;
use coapace_proto::{Code, ExchangeId, Failure, Kind, Message, Observer, Responder};

use crate::line::RelayedExchange;
use crate::message::{goes_on, unmarked_tail};
use crate::strangers::length;
use crate::{Face, Relay};

impl Relay {
    /// Forwards the response to an exchange at `face`. The response ends the exchange, unless it begins an observation.
    pub(crate) fn pass_response(
        &mut self,
        now: Instant,
        face: Face,
        exchange: ExchangeId,
        message: &Message<'_>,
    ) {
        let tail = unmarked_tail(message);
        let Some(line) = self.half(face).lines.get_mut(&exchange) else { return };
        let (responder, length) = (line.responder, length(&line.responder, &tail));
        let begins = line.observation.is_some() && goes_on(message);
        if begins && !responder.allowance().has_room_for_two(length) {
            // Nothing would be left for the first notification.
            self.half(face).endpoint.cancel(now, exchange);
            self.drop_line(now, face, exchange);
            return self.hold_back(now, responder);
        }
        if let Some(watch) = line.observation.as_mut().filter(|_| goes_on(message)) {
            watch.order.update(now, message);
            // The response below is paid from the allowance. The rest is for the first notification.
            line.responder = responder.limited(responder.allowance().less(length));
            // A wait ends with the first response. An observation lasts for as long as its notifications come.
            if let Some(until) = line.until.take() {
                self.waits.remove(&(until, face, exchange));
            }
        } else if let Some(RelayedExchange { front: Some(tail), responder, peer, .. }) =
            self.drop_line(now, face, exchange)
        {
            self.begin_body(now, responder.to, peer, &tail, message);
        }
        self.answer(now, face.other(), responder, message.code, &tail);
    }

    /// Forwards a notification that arrived at `face`, the side of the server or of the clients.
    pub(crate) fn pass_notification(
        &mut self,
        now: Instant,
        face: Face,
        exchange: ExchangeId,
        message: &Message<'_>,
    ) {
        let there = face.other();
        let tail = unmarked_tail(message);
        let Some(line) = self.half(face).lines.get_mut(&exchange) else { return };
        let Some(watch) = &mut line.observation else { return };
        if !watch.order.update(now, message) {
            self.counts.stale += 1;
            return;
        }
        let (responder, resource) = (line.responder, watch.resource);
        if self.dismisses(now, there, resource, &tail) {
            // The next notification of the server is then rejected with a Reset, which ends its observation (RFC 7641 §3.6).
            self.half(face).endpoint.cancel(now, exchange);
            self.end_line(face, exchange);
            return;
        }
        if goes_on(message) {
            let confirmable = message.kind == Kind::Confirmable;
            self.half(there).endpoint.notify(resource, confirmable, message.code, &tail);
        } else if message.code.is_success() {
            // The last response, without the Observe option.
            self.drop_line(now, face, exchange);
            let responder = self.half(there).endpoint.acknowledge(now, responder);
            self.answer(now, there, responder, message.code, &tail);
        } else {
            self.end_line(face, exchange);
            // This notification ends the observation at the other face, too.
            self.half(there).endpoint.notify(resource, true, message.code, &tail);
        }
    }

    /// Removes the observer of a resource if its address is unverified and a notification with this tail is too long
    /// for it. Returns whether an observer was removed.
    fn dismisses(&mut self, now: Instant, face: Face, resource: u64, tail: &[u8]) -> bool {
        let Self { halves, gate, .. } = self;
        let challenge = |to| gate.challenge(now, to);
        let endpoint = &mut halves[face as usize].endpoint;
        let dismissed = endpoint.dismiss_strangers(now, resource, tail.len(), Code::UNAUTHORIZED, challenge);
        self.counts.challenged += dismissed as u64;
        dismissed > 0
    }

    /// Forwards an empty acknowledgement: the response will come separately.
    pub(crate) fn pass_acknowledgement(&mut self, now: Instant, face: Face, exchange: ExchangeId) {
        // The acknowledgement of a separate response ends an exchange that has no line.
        let Some(line) = self.half(face).lines.get(&exchange) else { return };
        let (responder, is_over) = (line.responder, line.is_statement);
        let acknowledged = self.half(face.other()).endpoint.acknowledge(now, responder);
        if is_over {
            self.end_line(face, exchange);
        } else if let Some(line) = self.half(face).lines.get_mut(&exchange) {
            line.responder = acknowledged;
        }
    }

    /// Answers a failed request. A Reset is forwarded as a Reset, unless the request is already acknowledged. A non-confirmable
    /// request without a response fails silently.
    pub(crate) fn pass_failure(&mut self, now: Instant, face: Face, exchange: ExchangeId, failure: Failure) {
        let Some(line) = self.drop_line(now, face, exchange) else {
            // A separate response that the client did not acknowledge.
            self.counts.undelivered += 1;
            return;
        };
        let there = face.other();
        match failure {
            Failure::Reset => {
                self.counts.rejected += 1;
                // The request is acknowledged already, and cannot be rejected after that (RFC 7252 §4.2).
                if !self.half(there).endpoint.reject(now, &line.responder) {
                    self.answer(now, there, line.responder, Code::BAD_GATEWAY, &[]);
                }
            }
            Failure::GivenUp | Failure::TimedOut => {
                self.counts.given_up += 1;
                // The client of a non-confirmable request expects that it may get no response.
                if line.confirmable {
                    self.answer(now, there, line.responder, Code::GATEWAY_TIMEOUT, &[]);
                }
            }
        }
    }

    /// Ends an observation whose observer at `face` has gone. The next notification is answered with a Reset, after
    /// which its sender ends the observation, too (RFC 7641 §3.6).
    pub(crate) fn end_observation(&mut self, now: Instant, face: Face, observer: &Observer<SocketAddr>) {
        let there = face.other();
        let Some(exchange) = self.half(there).observation(observer.to, observer.token) else { return };
        self.half(there).endpoint.cancel(now, exchange);
        self.end_line(there, exchange);
    }

    /// Answers a request that arrived at `face`. If the answer is too long for an unverified client, demands an Echo
    /// option instead.
    pub(crate) fn answer(
        &mut self,
        now: Instant,
        face: Face,
        responder: Responder<SocketAddr>,
        code: Code,
        tail: &[u8],
    ) {
        if length(&responder, tail) > responder.allowance().room() {
            self.hold_back(now, responder);
        } else {
            self.send(now, face, responder, code, tail);
        }
    }

    /// Sends the answer to a request that arrived at `face`, even if it is too long for an unverified client.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        face: Face,
        responder: Responder<SocketAddr>,
        code: Code,
        tail: &[u8],
    ) {
        // The client sends a copy when its timeout passes, or gives up.
        if self.half(face).endpoint.respond(now, responder, code, tail).is_err() {
            self.counts.unanswerable += 1;
        }
    }

    /// Ends the line of an exchange at `face`, and deregisters its observer, if it has one. Returns the line; `None` if
    /// the exchange has none.
    pub(crate) fn drop_line(
        &mut self,
        now: Instant,
        face: Face,
        exchange: ExchangeId,
    ) -> Option<RelayedExchange> {
        let line = self.end_line(face, exchange)?;
        if line.observation.is_some() {
            let (from, token) = (line.responder.to, line.responder.token());
            self.half(face.other()).endpoint.deregister(now, from, token);
        }
        Some(line)
    }

    /// Removes the line of an exchange at `face` and returns it; `None` if the exchange has none.
    pub(crate) fn end_line(&mut self, face: Face, exchange: ExchangeId) -> Option<RelayedExchange> {
        let line = self.half(face).remove(exchange)?;
        self.sources.end(line.peer);
        self.strangers -= usize::from(line.is_stranger);
        if let Some(until) = line.until {
            self.waits.remove(&(until, face, exchange));
        }
        Some(line)
    }
}
