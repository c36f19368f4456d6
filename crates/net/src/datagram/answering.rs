//! How a hub answers requests: responses, challenges, and notifications to observers.

use coap_numbers::option;
use coapace_control::Instant;
use coapace_proto::block::{MAX_PAYLOADS, Overdue};
use coapace_proto::{Code, ExchangeId, Kind, Message, Options, Responder, SendError, Token, group};

use super::answers::{Answers, ObservedRequest};
use super::hub::LockedHub;
use super::leisure::Delayed;
use crate::address::Remote;
use crate::conversation::{Format, ResponseOutcome, Terms, length};
use crate::handler::or_panicked;
use crate::{Resource, Response, log};

impl LockedHub {
    /// Adds the sender of a request to the observers of a resource. If no slot is free, a verified client is answered without
    /// the Observe option (RFC 7641 §4.1); for an unverified client the function returns `false`, and the client is to be
    /// challenged.
    pub(crate) fn register(
        &mut self,
        now: Instant,
        responder: &Responder<Remote>,
        resource: &Resource,
        message: &Message<'_>,
        terms: &mut Terms,
    ) -> bool {
        let Self { endpoint, answers, .. } = self;
        let number = terms.observable();
        let registered = if terms.verified {
            endpoint.register(now, responder, number)
        } else {
            endpoint.register_stranger(now, responder, number)
        };
        // A client that is verified simply does not observe. A stranger may find room once it is verified.
        if registered.is_err() {
            self.stopped = Some(responder.to);
            self.counters.observers_refused += u64::from(terms.verified);
            return terms.verified;
        }
        self.counters.registered += 1;
        log::observer(responder.to.address(), "registered");
        terms.observed = Some(answers.sequence.next());
        if answers.observed.contains_key(&number) {
            return true;
        }
        if answers.observed.len() >= answers.max_observed {
            // Requests without observers are dropped only here: looking at all of them each time would cost more.
            answers.observed.retain(|&number, _| endpoint.is_observed(number));
        }
        // The request is kept once for all observers with equal requests, so options of a single exchange are left out.
        let options = Options::of(message).without(option::OBSERVE).without(option::BLOCK2);
        let mut tail = Vec::new();
        options.without(option::ECHO).without(option::NO_RESPONSE).write(&[], &mut tail);
        answers.observed.insert(
            number,
            ObservedRequest {
                resource: resource.clone(),
                from: responder.to,
                tail,
                terms: terms.published(),
                format: Format::default(),
                called: resource.version(),
                under_way: false,
            },
        );
        true
    }

    /// Removes the sender of a deregistration from the observers.
    pub(crate) fn deregister(&mut self, now: Instant, responder: &Responder<Remote>, token: Token) {
        let was_there = self.endpoint.deregister(now, responder.to, token);
        self.counters.deregistered += u64::from(was_there);
        log::observer(responder.to.address(), "deregistered");
    }

    /// Answers a request according to its terms with the result of a handler, which is `None` if it has panicked.
    pub(crate) fn answer(
        &mut self,
        now: Instant,
        responder: Responder<Remote>,
        terms: &Terms,
        response: Option<Response>,
    ) {
        let response = or_panicked(response, || self.counters.panics += 1);
        // Only a success begins an observation (RFC 7641 §4.1).
        self.refuse_to_observe(now, &responder, terms, !response.is_success());
        let Answers { bodies, observed, scratch, medium, .. } = &mut self.answers;
        if let Some(form) = terms.observed.and_then(|_| observed.get(&terms.observable())) {
            form.format.note(&response);
        }
        let rest = terms.further().next().is_some().then(|| response.clone());
        match bodies.answer(now, Some(responder.to), terms, response, *medium, scratch) {
            // A stranger is sent one block for a request.
            ResponseOutcome::Send(_) if rest.is_some() && terms.may_be_challenged() => {
                self.challenge(now, responder, terms);
            }
            ResponseOutcome::Send(_)
                if terms.observed.is_some()
                    && terms.repeatable
                    && !terms.allowance.has_room_for_two(length(terms.token, scratch.len())) =>
            {
                // Nothing would be left for the first notification.
                self.challenge(now, responder, terms);
            }
            ResponseOutcome::Send(code) => {
                match terms.set {
                    Some(_) => self.queue_first_of_set(now, responder, code),
                    None => self.respond_encoded(now, responder, code),
                }
                match rest.filter(|_| code.is_success()) {
                    Some(response) => self.answer_rest(now, responder, terms, &response),
                    None if terms.set.is_some() => self.answers.sets.close(&responder),
                    None => {}
                }
            }
            ResponseOutcome::TooLarge => self.challenge(now, responder, terms),
            ResponseOutcome::Unwanted => {
                // A confirmable request is acknowledged nevertheless.
                let _ = self.endpoint.acknowledge(now, responder);
                self.answers.note_answer(&responder, None, 0);
            }
        }
    }

    /// Sends all blocks but the first that a request asks for with Q-Block2, each in its own response. If the queue has
    /// no space for the last of them, the client requests them again.
    fn answer_rest(
        &mut self,
        now: Instant,
        responder: Responder<Remote>,
        terms: &Terms,
        response: &Response,
    ) {
        // A stranger gets one block for each request.
        if terms.allowance.is_limited() {
            return;
        }
        let mut middle = None;
        for (place, terms) in (1..).zip(terms.further()) {
            let Answers { bodies, scratch, medium, .. } = &mut self.answers;
            let answered = bodies.answer(now, Some(responder.to), &terms, response.clone(), *medium, scratch);
            let sent = match answered {
                ResponseOutcome::Send(code) if code.is_success() => {
                    self.endpoint.respond_part(now, responder.further(), code, &self.answers.scratch)
                }
                // The representation ends before the set.
                _ => return self.answers.sets.close(&responder),
            };
            self.counters.responses_dropped += u64::from(sent.is_err());
            let Ok(sent) = sent else { return self.answers.sets.close(&responder) };
            // The block in the middle shows when the next set may follow.
            if place <= MAX_PAYLOADS / 2 {
                middle = sent.zip(terms.block2);
            }
        }
        if let Some((exchange, block)) = middle {
            self.answers.sets.wait(&responder, exchange, block.szx());
        }
    }

    /// If `refused` is true, removes the observer that this request has just registered, if it has registered one.
    pub(crate) fn refuse_to_observe(
        &mut self,
        now: Instant,
        responder: &Responder<Remote>,
        terms: &Terms,
        refused: bool,
    ) {
        if refused && terms.observed.is_some() {
            self.endpoint.deregister(now, responder.to, terms.token);
        }
    }

    /// Challenges the client: asks it to repeat its request with an Echo value (RFC 9175 §2.3). A new observation is
    /// ended.
    pub(crate) fn challenge(&mut self, now: Instant, responder: Responder<Remote>, terms: &Terms) {
        self.refuse_to_observe(now, &responder, terms, true);
        self.counters.challenged += 1;
        let challenge = self.answers.gate.challenge(now, responder.to);
        self.respond_with(now, responder, Code::UNAUTHORIZED, challenge.as_bytes());
    }

    /// Sends the result of a handler, `None` if it has panicked, to the observers whose request has this `number`.
    /// Returns whether the resource has changed again, so that the handler must be called again.
    pub(crate) fn publish(&mut self, now: Instant, number: u64, response: Option<Response>) -> bool {
        let response = or_panicked(response, || self.counters.panics += 1);
        let Self { endpoint, answers, .. } = self;
        let Answers { bodies, observed, scratch, medium, sequence, gate, .. } = answers;
        let Some(form) = observed.get_mut(&number) else { return false };
        // The last observer has left while the handler ran.
        if !endpoint.is_observed(number) {
            observed.remove(&number);
            return false;
        }
        form.under_way = false;
        let again = form.resource.version() != form.called;
        let response = form.format.admit(response);
        form.terms.observed = response.is_success().then(|| sequence.next());
        // Nothing is to be sent to observers, but the resource may have changed again.
        let ResponseOutcome::Send(code) = bodies.answer(now, None, &form.terms, response, *medium, scratch)
        else {
            return again;
        };
        let challenge = |to| gate.challenge(now, to);
        // Strangers for whom this notification is too large are removed, with a challenge if it is small enough.
        let dismissed = endpoint.dismiss_strangers(now, number, scratch.len(), Code::UNAUTHORIZED, challenge);
        self.counters.challenged += dismissed as u64;
        endpoint.notify(number, form.resource.is_confirmable(), code, scratch);
        // An error has ended the observations (RFC 7641 §4.2), so the handler need not be called again.
        if !code.is_success() {
            observed.remove(&number);
        }
        again
    }

    /// Sends this response to every observer. It is an error response, so it ends their observations (RFC 7641 §4.2).
    pub(crate) fn dismiss_observers(&mut self, response: &Response) {
        let Self { endpoint, answers: Answers { observed, scratch, .. }, .. } = self;
        scratch.clear();
        response.options.write(&response.payload, scratch);
        for (number, form) in observed.drain() {
            endpoint.notify(number, form.resource.is_confirmable(), response.code, scratch);
        }
    }

    /// Queues a response as it is, whatever the terms of the request are.
    pub(crate) fn respond(&mut self, now: Instant, responder: Responder<Remote>, response: &Response) {
        self.answers.scratch.clear();
        response.options.write(&response.payload, &mut self.answers.scratch);
        self.respond_encoded(now, responder, response.code);
    }

    /// Queues the answer to a request, whose options and payload are in `scratch`.
    pub(super) fn respond_encoded(&mut self, now: Instant, responder: Responder<Remote>, code: Code) {
        let tail = std::mem::take(&mut self.answers.scratch);
        self.respond_with(now, responder, code, &tail);
        self.answers.scratch = tail;
    }

    /// Queues the answer to a request. If the request came to a group, the answer is delayed first, and dropped if it
    /// is an error or has no payload.
    pub(crate) fn respond_with(
        &mut self,
        now: Instant,
        responder: Responder<Remote>,
        code: Code,
        tail: &[u8],
    ) {
        if !responder.group {
            return self.queue(now, responder, code, tail);
        }
        let message = Message { code, tail, ..Message::empty(Kind::NonConfirmable, 0) };
        if !group::is_worth_sending(code, message.payload()) {
            return self.answers.note_answer(&responder, None, 0);
        }
        let delayed = Delayed { responder, code, tail: tail.to_vec() };
        if let Err(Delayed { responder, .. }) = self.answers.leisure.put(now, self.random.draw(), delayed) {
            self.counters.group_responses_dropped += 1;
            self.answers.note_answer(&responder, None, 0);
        }
    }

    /// Sends the answers to group requests whose delay has passed, and 4.08 to clients whose blocks are overdue.
    pub(crate) fn send_delayed(&mut self, now: Instant) {
        while let Some(Overdue { to, token, tail }) = self.answers.bodies.take_overdue(now) {
            let responder = Responder::later(to, Code::EMPTY, token);
            // Without room now, the next timeout asks again.
            let _ = self.endpoint.respond(now, responder, Code::REQUEST_ENTITY_INCOMPLETE, tail.as_bytes());
        }
        while let Some(Delayed { responder, code, tail }) = self.answers.leisure.take(now) {
            self.queue(now, responder, code, &tail);
        }
    }

    fn queue(&mut self, now: Instant, responder: Responder<Remote>, code: Code, tail: &[u8]) {
        let queued = self.endpoint.respond(now, responder, code, tail);
        self.note_queued(&responder, code, tail.len(), queued);
    }

    /// Queues the first of the blocks that a request asks for with Q-Block2. The options and payload of this block are
    /// in `scratch`.
    fn queue_first_of_set(&mut self, now: Instant, responder: Responder<Remote>, code: Code) {
        let tail = &self.answers.scratch;
        let queued = self.endpoint.respond_part(now, responder, code, tail);
        self.note_queued(&responder, code, tail.len(), queued);
    }

    fn note_queued(
        &mut self,
        responder: &Responder<Remote>,
        code: Code,
        bytes: usize,
        queued: Result<Option<ExchangeId>, SendError>,
    ) {
        match queued {
            Ok(_) => return self.answers.note_answer(responder, Some(code), bytes),
            // The endpoint counts this error itself.
            Err(SendError::RepliesFull) => {}
            Err(_) => self.counters.responses_dropped += 1,
        }
        self.stopped = Some(responder.to);
        self.answers.note_answer(responder, None, 0);
    }
}
