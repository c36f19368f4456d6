//! The answers of a server over datagrams. Clients whose addresses may be forged are sent only small ones.

use std::collections::HashMap;
use std::time::SystemTime;

use coap_numbers::option;
use coapace_control::{Duration, Instant};
use coapace_proto::echo::{self, Echo, Gate};
use coapace_proto::{Code, Kind, Message, Options, Responder, SendError, Sequence, Token, group};

use super::hub::Locked;
use super::leisure::{Delayed, Leisure};
use crate::access::AccessLog;
use crate::address::Remote;
use crate::conversation::{Answered, Bodies, Format, Medium, Terms};
use crate::handler::or_panicked;
use crate::{Requests, Resource, Response, ServerConfig, log};

/// The clients that have to show with an Echo option that their address is their own. Until then they are sent at most 136
/// bytes, or three times the bytes that they sent if that is more (RFC 9175 §2.4, item 3).
///
/// Without this rule, anyone could make a server send large responses to a forged address. It costs one more round trip for
/// each client in five minutes. If a GET or FETCH has a large response, a client that does not know Echo gets 4.01. Other
/// methods have had their effect, so they are answered in smaller blocks instead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// No client, for networks without forged addresses.
    Nobody,
    /// All clients but those on this host, whose addresses cannot be forged from elsewhere. This is the default, which RFC
    /// 9175 §2.4 recommends.
    #[default]
    Strangers,
    /// All clients.
    Everybody,
}

impl Verify {
    /// Returns whether this client has to show that its address is its own.
    fn concerns(self, client: Remote) -> bool {
        match self {
            Self::Nobody => false,
            Self::Strangers => !client.ip().to_canonical().is_loopback(),
            Self::Everybody => true,
        }
    }
}

/// The time that an address stays verified.
const FRESHNESS: Duration = Duration::from_secs(300);

/// The part of a hub that only servers use.
#[derive(Debug)]
pub(crate) struct Answers {
    verify: Verify,
    /// Set if all clients have DTLS sessions, whose handshakes have verified their addresses.
    secure: bool,
    gate: Gate<Remote>,
    medium: Medium,
    /// The largest payload of a block, in bytes.
    block: usize,
    pub(crate) bodies: Bodies,
    /// The requests that observers have made, each once for all observers with equal requests. The key is the number that
    /// the endpoint knows it under.
    observed: HashMap<u64, ObservedRequest>,
    /// The bound of `observed`.
    max_observed: usize,
    sequence: Sequence,
    /// The responses to groups that wait to be sent.
    pub(crate) leisure: Leisure,
    pub(crate) requests: Requests,
    /// The requests that are not answered yet, by peer and token.
    pub(crate) access: AccessLog<(Remote, Token)>,
    /// The options and payload of the response that is being sent.
    scratch: Vec<u8>,
}

/// A request that observers have made. All who made it are sent the same notifications.
#[derive(Debug)]
struct ObservedRequest {
    resource: Resource,
    /// The first observer who made it, and its options.
    from: Remote,
    tail: Vec<u8>,
    terms: Terms,
    format: Format,
    /// The version of the resource that the handler was called for last.
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
    /// Returns the state of a server. `key` is the secret of its Echo values.
    pub(crate) fn of(config: &ServerConfig, key: [u8; 16], secure: bool) -> Self {
        let &ServerConfig { verify, bodies, leisure, max_delayed, .. } = config;
        let config = config.of_each_core().config;
        Self {
            verify,
            secure,
            // The number of verified addresses has the same bound as that of peers.
            gate: Gate::new(Echo::new(key, FRESHNESS), config.max_peers as usize),
            medium: Medium::Datagram { max_szx: bodies.max_szx },
            block: 16 << bodies.max_szx,
            bodies: Bodies::new(bodies),
            observed: HashMap::new(),
            // When the table is full, at least half of its requests have no observers any more, and are removed.
            max_observed: 2 * config.max_observers as usize,
            sequence: Sequence::after(first_number()),
            leisure: Leisure::new(leisure.into(), max_delayed),
            requests: Requests::default(),
            access: AccessLog::default(),
            scratch: Vec::new(),
        }
    }

    /// Returns the largest payload, in bytes, that this client is sent whatever its request. There is room for the usual
    /// options beside it.
    pub(crate) fn unconditional(&self, client: Remote) -> usize {
        if self.verify.concerns(client) { 64 } else { self.block }
    }

    /// Returns the terms of a request, changed if the client's address is verified or cannot be forged.
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
        if !self.verify.concerns(from) {
            terms.allowance = usize::MAX;
        }
        terms
    }

    /// Counts a request and logs its response. `bytes` is the length of options and payload.
    pub(crate) fn note_answer(
        &mut self,
        responder: &Responder<Remote>,
        response: Option<Code>,
        bytes: usize,
    ) {
        self.requests.count(responder.method, response);
        self.access.answered(&(responder.to, responder.token()), response, bytes);
    }

    /// Returns the handlers to be called because their resource has changed. A handler that is still running is left out,
    /// and called again when it has ended.
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

/// Returns the first number of notifications, which is taken from the clock. With fewer than 125 notifications a second, the
/// clock runs ahead of the numbers, so that they are newer after a restart (RFC 7641 §4.4).
fn first_number() -> u32 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    (since.as_millis() / 8) as u32
}

impl Locked {
    /// Adds the sender of a request to the observers of a resource. If there is no room, the request is answered without the
    /// Observe option (RFC 7641 §4.1). Returns `false` if the client is a stranger and there is no place for one: then it is
    /// to be challenged.
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
        self.counters.registered += 1;
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

    /// Ends the observation of the sender of a request, which has asked for that.
    pub(crate) fn deregister(&mut self, now: Instant, responder: &Responder<Remote>, token: Token) {
        let was_there = self.endpoint.deregister(now, responder.to, token);
        self.counters.deregistered += u64::from(was_there);
        log::observer(responder.to.address(), "deregistered");
    }

    /// Answers a request on its terms with the result of a handler, which is `None` if it has panicked.
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

    /// Removes the sender of a request from the observers if it was just added and `refused` is set.
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

    /// Sends the result of a handler to the observers. Returns whether the resource has changed again.
    pub(crate) fn publish(&mut self, now: Instant, number: u64, response: Option<Response>) -> bool {
        let response = or_panicked(response, || self.counters.panics += 1);
        let Self { endpoint, answers, .. } = self;
        let Answers { bodies, observed, scratch, medium, sequence, gate, verify, .. } = answers;
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
        // A notification has a token of 8 bytes at most.
        if 12 + scratch.len() > echo::MODEST {
            let challenge = |to| verify.concerns(to).then(|| gate.challenge(now, to));
            let dismissed = endpoint.dismiss_strangers(now, number, Code::UNAUTHORIZED, challenge);
            self.counters.challenged += dismissed as u64;
        }
        endpoint.notify(number, form.resource.is_confirmable(), code, scratch);
        if !code.is_success() {
            observed.remove(&number);
        }
        again
    }

    /// Sends every observer this response. It is no success, so it ends the observation (RFC 7641 §4.2).
    pub(crate) fn dismiss_observers(&mut self, response: &Response) {
        let Self { endpoint, answers: Answers { observed, scratch, .. }, .. } = self;
        scratch.clear();
        response.options.write(&response.payload, scratch);
        for (number, form) in observed.drain() {
            endpoint.notify(number, form.resource.is_confirmable(), response.code, scratch);
        }
    }

    /// Queues a response without regard to terms.
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

    /// Queues the answer to a request. If the request came to a group, the answer is delayed first, or dropped if it is not
    /// worth sending.
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

    /// Queues the answers to groups whose delay is over.
    pub(crate) fn send_delayed(&mut self, now: Instant) {
        while let Some(Delayed { responder, code, tail }) = self.answers.leisure.take(now) {
            self.queue(now, responder, code, &tail);
        }
    }

    fn queue(&mut self, now: Instant, responder: Responder<Remote>, code: Code, tail: &[u8]) {
        match self.endpoint.respond(now, responder, code, tail) {
            Ok(_) => return self.answers.note_answer(&responder, Some(code), tail.len()),
            // The endpoint counts this error itself.
            Err(SendError::RepliesFull) => {}
            Err(_) => self.counters.responses_dropped += 1,
        }
        self.answers.note_answer(&responder, None, 0);
    }
}
