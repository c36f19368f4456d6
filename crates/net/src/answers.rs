//! How a server answers: in blocks, to observers, and to addresses that may be another's.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::time::SystemTime;

use coap_numbers::{code, option};
use coapace_control::{Duration, Instant};
use coapace_proto::block::{Block, Slice};
use coapace_proto::echo::{Echo, Gate};
use coapace_proto::{Code, Message, Options, Responder, SendError, Sequence, Token};

use crate::access::AccessLog;
use crate::address::Remote;
use crate::hub::State;
use crate::kept::Kept;
use crate::leisure::Leisure;
use crate::terms::{Terms, length};
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
    /// All but those on this host, whose addresses nobody else can forge. What RFC 9175 §2.4 recommends, and the default.
    #[default]
    Strangers,
    /// Everybody.
    Everybody,
}

/// How long an address stays verified.
const FRESHNESS: Duration = Duration::from_secs(300);

/// What a server needs beside an endpoint.
#[derive(Debug)]
pub(crate) struct Answers {
    verify: Verify,
    /// All clients have sessions of DTLS, for which they had to receive what was sent to them.
    secure: bool,
    gate: Gate<Remote>,
    max_szx: u8,
    kept: Kept,
    /// What is observed, by the number that the endpoint knows it under.
    watched: HashMap<u64, Watched>,
    /// How many may be in there.
    max_watched: usize,
    sequence: Sequence,
    /// What waits to be sent to those who asked a group.
    pub(crate) leisure: Leisure,
    pub(crate) requests: Requests,
    /// By peer and token.
    pub(crate) access: AccessLog<(Remote, Token)>,
}

/// A form of a request that observers have made.
#[derive(Debug)]
struct Watched {
    resource: Resource,
    operation: u64,
    /// The first who made it, and the options.
    from: Remote,
    tail: Vec<u8>,
    block: Option<Block>,
    /// The Content-Format of its representations, once there was one.
    format: OnceCell<Option<u16>>,
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

impl Watched {
    /// Whether a response has the Content-Format of those before it, as observers must be able to rely on; one that cannot
    /// have it ends the observations with 4.06 (RFC 7641 §4.2).
    fn keeps_format(&self, response: &Response) -> bool {
        response.code.0 != code::CONTENT
            || *self.format.get_or_init(|| response.format()) == response.format()
    }
}

impl Answers {
    /// With a secret for Echo values.
    pub(crate) fn of(config: &ServerConfig, key: [u8; 16], secure: bool) -> Self {
        let &ServerConfig { verify, bodies, leisure, max_delayed, .. } = config;
        let config = config.of_each_core().config;
        Self {
            verify,
            secure,
            // As many addresses stay verified as are remembered otherwise.
            gate: Gate::new(Echo::new(key, FRESHNESS), config.max_peers as usize),
            max_szx: bodies.max_szx,
            kept: Kept::new(bodies),
            watched: HashMap::new(),
            // Those that nobody observes any more leave when it is full: half of them at least.
            max_watched: 2 * config.max_observers as usize,
            sequence: Sequence::after(begin()),
            leisure: Leisure::new(leisure.into(), max_delayed),
            requests: Requests::default(),
            access: AccessLog::default(),
        }
    }

    fn must_verify(&self, client: Remote) -> bool {
        match self.verify {
            Verify::Nobody => false,
            Verify::Strangers => !client.ip().to_canonical().is_loopback(),
            Verify::Everybody => true,
        }
    }

    /// Payloads of so many bytes go to this client as they are, with what options a response has as a rule.
    pub(crate) fn unconditional(&self, client: Remote) -> usize {
        if self.must_verify(client) { 64 } else { 16 << self.max_szx }
    }

    /// Notes whether the client has shown its address.
    pub(crate) fn admit(&mut self, now: Instant, from: Remote, message: &Message<'_>, terms: &mut Terms) {
        let trusted = self.secure || self.verify == Verify::Nobody;
        terms.verified = trusted || self.gate.verifies(now, from, message);
        if terms.verified || !self.must_verify(from) {
            terms.allowance = usize::MAX;
        }
    }

    /// Counts a request, and says of it what response it got, if any, with how many bytes of options and payload.
    pub(crate) fn note_answer(
        &mut self,
        responder: &Responder<Remote>,
        response: Option<Code>,
        bytes: usize,
    ) {
        self.requests.count(responder.method, response);
        self.access.answered(&(responder.to, responder.token()), response, bytes);
    }

    /// A response to the same request of which the client has blocks.
    pub(crate) fn kept(&self, now: Instant, from: Remote, terms: &Terms) -> Option<Response> {
        self.kept.get(now, from, terms.operation)
    }

    /// Handlers to be called, because what they say has changed. One that is still at it is called again after that.
    pub(crate) fn due(&mut self) -> Vec<Due> {
        let mut due = Vec::new();
        for (&number, watched) in self.watched.iter_mut().filter(|(_, watched)| !watched.under_way) {
            let version = watched.resource.version();
            if std::mem::replace(&mut watched.called, version) != version {
                watched.under_way = true;
                due.push(Due { number, from: watched.from, tail: watched.tail.clone() });
            }
        }
        due
    }
}

/// Where the numbers of notifications begin: a clock that is ahead of them, as long as there are less than 125 a second,
/// so that after a restart they are newer (RFC 7641 §4.4).
fn begin() -> u32 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    (since.as_millis() / 8) as u32
}

impl State {
    /// Adds the sender of a request to the observers of a resource. If there is no room, it is answered as if it had
    /// not asked (RFC 7641 §4.1). Returns whether the request is to be answered: one who is not verified may have to
    /// show an Echo option first, for strangers have few places.
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
        if answers.watched.contains_key(&number) {
            return true;
        }
        if answers.watched.len() >= answers.max_watched {
            answers.watched.retain(|&number, _| endpoint.is_observed(number));
        }
        let options = Options::of(message).without(option::OBSERVE).without(option::BLOCK2);
        let mut tail = Vec::new();
        options.without(option::ECHO).without(option::NO_RESPONSE).write(&[], &mut tail);
        answers.watched.insert(
            number,
            Watched {
                resource: resource.clone(),
                operation: terms.operation,
                from: responder.to,
                tail,
                block: terms.block2,
                format: OnceCell::new(),
                called: resource.version(),
                under_way: false,
            },
        );
        true
    }

    /// Answers a request on its terms; `later` if it may have been acknowledged already.
    pub(crate) fn answer(
        &mut self,
        now: Instant,
        responder: Responder<Remote>,
        terms: &Terms,
        response: Response,
        later: bool,
    ) {
        if terms.observed.is_some() && !response.is_success() {
            self.endpoint.deregister(now, responder.to, terms.token);
        }
        if terms.suppresses(response.code) {
            // What is confirmable is acknowledged nevertheless.
            let _ = self.endpoint.acknowledge(now, responder);
            self.answers.note_answer(&responder, None, 0);
            return;
        }
        let observed = terms.observed.filter(|_| response.is_success());
        if observed.is_some()
            && let Some(watched) = self.answers.watched.get(&terms.observable())
        {
            watched.keeps_format(&response);
        }
        let asked = terms.block2.filter(|_| response.is_success());
        let mut max_szx = self.answers.max_szx;
        let response = if response.size() > 16 << max_szx { response.with_etag() } else { response };
        let mut options = terms.block1.into_iter().fold(response.options.clone(), Options::block1);
        options = observed.into_iter().fold(options, Options::observe);
        let last = loop {
            let Some(slice) = Slice::of(response.representation(), asked, max_szx) else {
                return self.respond(now, responder, &Response::new(Code(code::BAD_REQUEST)));
            };
            self.scratch.clear();
            slice.options(options.clone()).write(slice.payload, &mut self.scratch);
            if length(terms.token, self.scratch.len()) <= terms.allowance {
                break asked.map_or(0, Block::offset) + slice.payload.len() == response.size();
            }
            // To a group that would be an error; who wants the other blocks asks for them alone (RFC 7959 §2.8).
            if terms.is_safe && !later && !responder.group {
                return self.challenge(now, responder, terms);
            }
            // It has had its effect, and cannot be asked for again: in blocks that anyone may be sent.
            match max_szx.checked_sub(1) {
                Some(smaller) => max_szx = smaller,
                None => break false,
            }
        };
        self.respond_encoded(now, responder, response.code);
        let (to, operation) = (Some(responder.to), terms.operation);
        match terms.block2.is_none_or(|block| block.num() == 0) {
            true if !last && !responder.group => self.answers.kept.put(now, to, operation, response),
            false if last => self.answers.kept.take(to, operation),
            _ => {}
        }
    }

    /// Asks the client to repeat its request with an Echo value (RFC 9175 §2.3).
    pub(crate) fn challenge(&mut self, now: Instant, responder: Responder<Remote>, terms: &Terms) {
        if terms.observed.is_some() {
            self.endpoint.deregister(now, responder.to, terms.token);
        }
        self.counters.challenged += 1;
        let challenge = self.answers.gate.challenge(now, responder.to);
        self.scratch.clear();
        self.scratch.extend_from_slice(challenge.as_bytes());
        self.respond_encoded(now, responder, Code(code::UNAUTHORIZED));
    }

    /// What a handler says of a resource that has changed goes to those who observe it. Returns whether it has changed
    /// again.
    pub(crate) fn publish(&mut self, now: Instant, number: u64, mut response: Response) -> bool {
        let Self { endpoint, answers, scratch, .. } = self;
        let Some(watched) = answers.watched.get_mut(&number) else { return false };
        if !endpoint.is_observed(number) {
            answers.watched.remove(&number);
            return false;
        }
        watched.under_way = false;
        let again = watched.resource.version() != watched.called;
        if !watched.keeps_format(&response) {
            response = Response::new(Code(code::NOT_ACCEPTABLE));
        }
        let mut options = response.options.clone();
        if response.is_success() {
            options = options.observe(answers.sequence.next());
        }
        let first = watched.block.and_then(|block| Block::new(0, false, block.szx()));
        let Some(slice) = Slice::of(response.representation(), first, answers.max_szx) else { return again };
        scratch.clear();
        slice.options(options).write(slice.payload, scratch);
        endpoint.notify(number, watched.resource.is_confirmable(), response.code, scratch);
        if slice.payload.len() < response.size() {
            answers.kept.put(now, None, watched.operation, response);
        } else if !response.is_success() {
            answers.watched.remove(&number);
        }
        again
    }

    /// Sends every observer this response, which is no success and therefore its last (RFC 7641 §4.2).
    pub(crate) fn dismiss_observers(&mut self, response: &Response) {
        let Self { endpoint, answers, scratch, .. } = self;
        scratch.clear();
        response.options.write(&response.payload, scratch);
        for (number, watched) in answers.watched.drain() {
            endpoint.notify(number, watched.resource.is_confirmable(), response.code, scratch);
        }
    }

    /// Queues the answer to a request, whose options and payload are in `scratch`.
    fn respond_encoded(&mut self, now: Instant, responder: Responder<Remote>, code: Code) {
        if responder.group {
            return self.respond_at_leisure(now, responder, code);
        }
        let tail = std::mem::take(&mut self.scratch);
        self.respond_with(now, responder, code, &tail);
        self.scratch = tail;
    }

    /// Queues the answer to a request, of these options and payload.
    pub(crate) fn respond_with(
        &mut self,
        now: Instant,
        responder: Responder<Remote>,
        code: Code,
        tail: &[u8],
    ) {
        match self.endpoint.respond(now, responder, code, tail) {
            Ok(_) => return self.answers.note_answer(&responder, Some(code), tail.len()),
            // The endpoint counts these itself.
            Err(SendError::RepliesFull) => {}
            Err(_) => self.counters.responses_dropped += 1,
        }
        self.answers.note_answer(&responder, None, 0);
    }

    /// Queues the answer to a part of a body.
    pub(crate) fn respond_in_between(
        &mut self,
        now: Instant,
        responder: Responder<Remote>,
        code: Code,
        tail: &[u8],
    ) {
        self.scratch.clear();
        self.scratch.extend_from_slice(tail);
        self.respond_encoded(now, responder, code);
    }

    /// Queues the answer to a request, as it is.
    pub(crate) fn respond(&mut self, now: Instant, responder: Responder<Remote>, response: &Response) {
        self.scratch.clear();
        response.options.write(&response.payload, &mut self.scratch);
        self.respond_encoded(now, responder, response.code);
    }
}
