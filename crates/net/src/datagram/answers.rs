//! How a server over datagrams answers: through its endpoint, and with care for addresses that may be another's.

use std::collections::HashMap;
use std::time::SystemTime;

use coap_numbers::option;
use coapace_control::{Duration, Instant};
use coapace_proto::echo::{Echo, Gate};
use coapace_proto::{Code, Kind, Message, Options, Responder, SendError, Sequence, Token, group};

use super::hub::Locked;
use super::leisure::{Delayed, Leisure};
use crate::access::AccessLog;
use crate::address::Remote;
use crate::conversation::{Answered, Bodies, Format, Medium, Terms};
use crate::handler::or_panicked;
use crate::{Requests, Resource, Response, ServerConfig, log};

/// Which clients have to show that they are where they say they are, before they are sent more than 136 bytes and more
/// than three times what they sent: with an Echo option (RFC 9175 §2.4, item 3).
///
/// Without it anyone can have a server send large responses to whoever's address is written on the request. The price is
/// one more round trip, once for each client and five minutes, and that a client which knows nothing of Echo gets no
/// more than 4.01 where a GET or FETCH has a large response. Other methods are answered in smaller blocks instead, for
/// they have had their effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// Nobody: where the network lets no forged addresses in.
    Nobody,
    /// All but those on this host, whose addresses nobody else can forge. RFC 9175 §2.4 recommends this, and it is the default.
    #[default]
    Strangers,
    /// Everybody.
    Everybody,
}

/// How long an address stays verified.
const FRESHNESS: Duration = Duration::from_secs(300);

/// The part of a hub that only servers use.
#[derive(Debug)]
pub(crate) struct Answers {
    verify: Verify,
    /// Set if all clients have sessions of DTLS, for which they had to receive what was sent to them.
    secure: bool,
    gate: Gate<Remote>,
    medium: Medium,
    /// The largest payload of a block, in bytes.
    block: usize,
    pub(crate) bodies: Bodies,
    /// The forms of requests that observers have made, by the number that the endpoint knows them under.
    observed: HashMap<u64, ObservedRequest>,
    /// The bound of these.
    max_observed: usize,
    sequence: Sequence,
    /// The responses to groups that wait to be sent.
    pub(crate) leisure: Leisure,
    pub(crate) requests: Requests,
    /// The requests that are not answered yet, by peer and token.
    pub(crate) access: AccessLog<(Remote, Token)>,
    /// A response, encoded.
    scratch: Vec<u8>,
}

/// A form of a request that observers have made. All who made it are sent the same notifications.
#[derive(Debug)]
struct ObservedRequest {
    resource: Resource,
    /// The first who made it, and its options.
    from: Remote,
    tail: Vec<u8>,
    terms: Terms,
    format: Format,
    /// The version of the resource that the handler was called for last, and whether that call is under way.
    called: u64,
    under_way: bool,
}

/// A handler that is to be called for observers.
#[derive(Debug)]
pub(crate) struct Due {
    pub(crate) number: u64,
    pub(crate) from: Remote,
    pub(crate) tail: Vec<u8>,
}

impl Answers {
    /// Returns the part for a server, with a secret for Echo values.
    pub(crate) fn of(config: &ServerConfig, key: [u8; 16], secure: bool) -> Self {
        let &ServerConfig { verify, bodies, leisure, max_delayed, .. } = config;
        let config = config.of_each_core().config;
        Self {
            verify,
            secure,
            // As many addresses stay verified as are remembered otherwise.
            gate: Gate::new(Echo::new(key, FRESHNESS), config.max_peers as usize),
            medium: Medium::Datagram { max_szx: bodies.max_szx },
            block: 16 << bodies.max_szx,
            bodies: Bodies::new(bodies),
            observed: HashMap::new(),
            // Forms that nobody observes any more leave when it is full. They are half of them at least.
            max_observed: 2 * config.max_observers as usize,
            sequence: Sequence::after(first_number()),
            leisure: Leisure::new(leisure.into(), max_delayed),
            requests: Requests::default(),
            access: AccessLog::default(),
            scratch: Vec::new(),
        }
    }

    fn must_verify(&self, client: Remote) -> bool {
        match self.verify {
            Verify::Nobody => false,
            Verify::Strangers => !client.ip().to_canonical().is_loopback(),
            Verify::Everybody => true,
        }
    }

    /// Returns the largest payload, in bytes, that goes to this client without a look at the request. The options that a
    /// response usually has fit in beside it.
    pub(crate) fn unconditional(&self, client: Remote) -> usize {
        if self.must_verify(client) { 64 } else { self.block }
    }

    /// Returns the terms of a request, in view of whether the client has shown its address.
    pub(crate) fn admit(
        &mut self,
        now: Instant,
        from: Remote,
        message: &Message<'_>,
        mut terms: Terms,
    ) -> Terms {
        let trusted = self.secure || self.verify == Verify::Nobody;
        if trusted || self.gate.verifies(now, from, message) {
            return terms.verified();
        }
        if !self.must_verify(from) {
            terms.allowance = usize::MAX;
        }
        terms
    }

    /// Counts a request, and logs the response that it got, if any, with its bytes of options and payload.
    fn note_answer(&mut self, responder: &Responder<Remote>, response: Option<Code>, bytes: usize) {
        self.requests.count(responder.method, response);
        self.access.answered(&(responder.to, responder.token()), response, bytes);
    }

    /// Returns the handlers to be called because their resource has changed. One that is still at it is called again after
    /// that.
    pub(crate) fn due(&mut self) -> Vec<Due> {
        let mut due = Vec::new();
        for (&number, observed) in self.observed.iter_mut().filter(|(_, observed)| !observed.under_way) {
            let version = observed.resource.version();
            if std::mem::replace(&mut observed.called, version) != version {
                observed.under_way = true;
                due.push(Due { number, from: observed.from, tail: observed.tail.clone() });
            }
        }
        due
    }
}

/// Returns where the numbers of notifications begin: a clock that is ahead of them, as long as there are less than 125 a
/// second, so that after a restart they are newer (RFC 7641 §4.4).
fn first_number() -> u32 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    (since.as_millis() / 8) as u32
}

impl Locked {
    /// Adds the sender of a request to the observers of a resource. Without room, the request is answered as if it had not
    /// asked (RFC 7641 §4.1). Returns `false` if the request is to be challenged instead, for strangers have few places.
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
        if registered.is_err() {
            self.counters.observers_refused += u64::from(terms.verified);
            return terms.verified;
        }
        log::observer(responder.to.address(), "registered");
        terms.observed = Some(answers.sequence.next());
        if answers.observed.contains_key(&number) {
            return true;
        }
        if answers.observed.len() >= answers.max_observed {
            answers.observed.retain(|&number, _| endpoint.is_observed(number));
        }
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

    /// Ends the observation of the sender of a request, because it has asked for that.
    pub(crate) fn deregister(&mut self, now: Instant, responder: &Responder<Remote>, token: Token) {
        let was_there = self.endpoint.deregister(now, responder.to, token);
        self.counters.deregistered += u64::from(was_there);
        log::observer(responder.to.address(), "deregistered");
    }

    /// Answers a request on its terms with the result of a handler, which is nothing if it panicked.
    pub(crate) fn answer(
        &mut self,
        now: Instant,
        responder: Responder<Remote>,
        terms: &Terms,
        response: Option<Response>,
    ) {
        let response = or_panicked(response, || self.counters.panics += 1);
        self.refuse_to_observe(now, &responder, terms, !response.is_success());
        let Answers { bodies, observed, scratch, medium, .. } = &mut self.answers;
        if let Some(form) = terms.observed.and_then(|_| observed.get(&terms.observable())) {
            form.format.note(&response);
        }
        match bodies.answer(now, Some(responder.to), terms, response, *medium, scratch) {
            Answered::Send(code) => self.respond_encoded(now, responder, code),
            Answered::TooLarge => self.challenge(now, responder, terms),
            Answered::Unwanted => {
                // A confirmable request is acknowledged nevertheless.
                let _ = self.endpoint.acknowledge(now, responder);
                self.answers.note_answer(&responder, None, 0);
            }
        }
    }

    /// Removes the sender of a request from the observers it was just added to, if `refused`.
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

    /// Asks the client to repeat its request with an Echo value (RFC 9175 §2.3).
    pub(crate) fn challenge(&mut self, now: Instant, responder: Responder<Remote>, terms: &Terms) {
        self.refuse_to_observe(now, &responder, terms, true);
        self.counters.challenged += 1;
        let challenge = self.answers.gate.challenge(now, responder.to);
        self.respond_with(now, responder, Code::UNAUTHORIZED, challenge.as_bytes());
    }

    /// Sends what a handler has said of a resource that has changed to those who observe it. Returns whether the resource
    /// has changed again.
    pub(crate) fn publish(&mut self, now: Instant, number: u64, response: Option<Response>) -> bool {
        let response = or_panicked(response, || self.counters.panics += 1);
        let Self { endpoint, answers, .. } = self;
        let Answers { bodies, observed, scratch, medium, sequence, .. } = answers;
        let Some(form) = observed.get_mut(&number) else { return false };
        if !endpoint.is_observed(number) {
            observed.remove(&number);
            return false;
        }
        form.under_way = false;
        let again = form.resource.version() != form.called;
        let response = form.format.admit(response);
        form.terms.observed = response.is_success().then(|| sequence.next());
        let Answered::Send(code) = bodies.answer(now, None, &form.terms, response, *medium, scratch) else {
            return again;
        };
        endpoint.notify(number, form.resource.is_confirmable(), code, scratch);
        if !code.is_success() {
            observed.remove(&number);
        }
        again
    }

    /// Sends every observer this response, which is no success and therefore its last (RFC 7641 §4.2).
    pub(crate) fn dismiss_observers(&mut self, response: &Response) {
        let Self { endpoint, answers: Answers { observed, scratch, .. }, .. } = self;
        scratch.clear();
        response.options.write(&response.payload, scratch);
        for (number, form) in observed.drain() {
            endpoint.notify(number, form.resource.is_confirmable(), response.code, scratch);
        }
    }

    /// Queues a response as it is.
    pub(crate) fn respond(&mut self, now: Instant, responder: Responder<Remote>, response: &Response) {
        self.answers.scratch.clear();
        response.options.write(&response.payload, &mut self.answers.scratch);
        self.respond_encoded(now, responder, response.code);
    }

    /// Queues the answer to a request, whose options and payload are in `scratch`.
    fn respond_encoded(&mut self, now: Instant, responder: Responder<Remote>, code: Code) {
        let tail = std::mem::take(&mut self.answers.scratch);
        self.respond_with(now, responder, code, &tail);
        self.answers.scratch = tail;
    }

    /// Queues the answer to a request. One to a group waits for its moment first, if it is worth sending.
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

    /// Queues the answers to groups whose moment has come.
    pub(crate) fn send_delayed(&mut self, now: Instant) {
        while let Some(Delayed { responder, code, tail }) = self.answers.leisure.take(now) {
            self.queue(now, responder, code, &tail);
        }
    }

    fn queue(&mut self, now: Instant, responder: Responder<Remote>, code: Code, tail: &[u8]) {
        match self.endpoint.respond(now, responder, code, tail) {
            Ok(_) => return self.answers.note_answer(&responder, Some(code), tail.len()),
            // The endpoint counts these itself.
            Err(SendError::RepliesFull) => {}
            Err(_) => self.counters.responses_dropped += 1,
        }
        self.answers.note_answer(&responder, None, 0);
    }
}
