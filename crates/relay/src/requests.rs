//! The requests that are forwarded from one face to the other.

use std::net::SocketAddr;

use coapace_control::{Controller, Instant, Marking};
use coapace_proto::{
    Allowance, Code, ExchangeId, Kind, Message, NotificationOrder, Options, Request, Responder, SendError,
    Token,
};

use crate::bodies::asks_for_front;
use crate::config::non_wait;
use crate::line::{RelayedExchange, RelayedObservation};
use crate::message::{next_hop, observe, wants_no_response};
use crate::strangers::NoRoom;
use crate::{Face, Relay};

/// The seconds after which a client may try again if a table was full (Max-Age, RFC 7252 §5.9.3.4).
const TRY_AGAIN_AFTER: u32 = 5;

/// The length of the relay's own tokens, in bytes: 32 random bits (RFC 7252 §5.3.1).
const OWN_TOKEN: usize = 4;

impl Relay {
    /// Forwards a request that arrived at `face`.
    pub(crate) fn pass_request(
        &mut self,
        now: Instant,
        face: Face,
        responder: Responder<SocketAddr>,
        message: &Message<'_>,
    ) {
        self.counts.requests[face as usize] += 1;
        let Some(source) = self.source_of(face, responder.to) else {
            // A port of several clients does not say which of them is meant.
            self.half(face).endpoint.reject(now, &responder);
            return;
        };
        let allowance = match face {
            Face::Clients => self.allowance(now, responder.to, message),
            Face::Server => Allowance::UNLIMITED,
        };
        let (responder, stranger) = (responder.limited(allowance), allowance.is_limited());
        let tail = match next_hop(message) {
            Ok(tail) => tail,
            Err(code) => {
                self.counts.loops += u64::from(code == Code::HOP_LIMIT_REACHED);
                return self.answer(now, face, responder, code, &[]);
            }
        };
        // A copy of a request that is not remembered would be passed on as another request.
        let remembered =
            responder.is_remembered() || !stranger && self.half(face).endpoint.remember(now, &responder);
        if !remembered {
            return self.turn_away(now, face, responder);
        }
        let may_be_ahead = face == Face::Clients && message.kind == Kind::Confirmable && !stranger;
        if !may_be_ahead || !self.answer_ahead(now, &responder, message) {
            self.pass_remembered(now, face, source, responder, message, tail);
        }
    }

    /// Forwards a request if the tables have room; otherwise answers it. The endpoint must recognise copies of the
    /// request. `tail` is its options and payload for the next hop.
    pub(crate) fn pass_remembered(
        &mut self,
        now: Instant,
        face: Face,
        source: SocketAddr,
        responder: Responder<SocketAddr>,
        message: &Message<'_>,
        tail: Vec<u8>,
    ) {
        let stranger = responder.allowance().is_limited();
        match self.has_room(face.other(), source, stranger) {
            Err(NoRoom::ForSource) => self.refuse(now, face, responder),
            Ok(()) if self.sources.admit(now, source, stranger) => {
                if self.begin_line(now, face, source, responder, message, tail).is_err() {
                    self.turn_away(now, face, responder);
                }
            }
            _ => self.turn_away(now, face, responder),
        }
    }

    /// Returns the source that an address at `face` belongs to; `None` if the server sends to a port that several
    /// clients share.
    fn source_of(&self, face: Face, address: SocketAddr) -> Option<SocketAddr> {
        match face {
            Face::Clients if self.config.shares => Some(port_of_all(address)),
            Face::Clients => Some(address),
            Face::Server => (address.port() != 0).then_some(address),
        }
    }

    /// Starts the exchange that forwards a request at the other face, and inserts its line.
    fn begin_line(
        &mut self,
        now: Instant,
        face: Face,
        peer: SocketAddr,
        responder: Responder<SocketAddr>,
        message: &Message<'_>,
        tail: Vec<u8>,
    ) -> Result<(), SendError> {
        let (there, from) = (face.other(), responder.to);
        let is_stranger = responder.allowance().is_limited();
        let earlier = self.half(there).observation(from, message.token);
        let observes = observe(message);
        // To register again or to deregister, the client uses the token of the registration (RFC 7641 §3.3.1, §3.6). So does the
        // relay.
        let token = match earlier.filter(|_| observes.is_some()) {
            Some(exchange) => self.leave_observation(now, face, exchange),
            None => None,
        };
        let token = token.unwrap_or_else(|| self.choose_token(there, peer, message.token));
        let watch = (observes == Some(0)).then(|| {
            self.observations += 1;
            RelayedObservation { resource: self.observations, order: NotificationOrder::new() }
        });
        // Without a place for the observer the server is not asked: its notifications would have nowhere to go.
        if let Some(watch) = watch {
            let endpoint = &mut self.half(face).endpoint;
            if is_stranger {
                endpoint.register_stranger(now, &responder, watch.resource)?;
            } else {
                endpoint.register(now, &responder, watch.resource)?;
            }
        }
        let is_statement = watch.is_none() && wants_no_response(message);
        let confirmable = message.kind == Kind::Confirmable;
        let request = Request { confirmable, code: message.code, token, tail: &tail, repeatable: false };
        let endpoint = &mut self.half(there).endpoint;
        let begun = match watch {
            Some(_) => endpoint.observe(now, peer, request),
            None if is_statement => endpoint.tell(now, peer, request),
            None => endpoint.request(now, peer, request),
        };
        let exchange = begun.inspect_err(|_| {
            // The client hears an error, so it expects no notifications.
            if watch.is_some() {
                self.half(face).endpoint.deregister(now, from, message.token);
            }
        })?;
        let until = (!confirmable).then(|| self.note_wait(now, there, peer, exchange));
        let may_read_ahead = there == Face::Server && !is_stranger && self.config.bulk.is_some();
        let line = RelayedExchange {
            responder,
            confirmable,
            is_statement,
            is_stranger,
            peer,
            token,
            observation: watch,
            until,
            front: (may_read_ahead && asks_for_front(message)).then_some(tail),
        };
        self.half(there).insert(exchange, line);
        self.strangers += usize::from(is_stranger);
        self.sources.begin(peer);
        Ok(())
    }

    /// Records until when the relay waits for the response to a non-confirmable request. Returns that time.
    fn note_wait(&mut self, now: Instant, face: Face, peer: SocketAddr, exchange: ExchangeId) -> Instant {
        let gauges = self.half(face).endpoint.gauges(peer);
        // The lines ahead of it have their places first.
        let places = self.sources.lines(peer).saturating_add(1);
        // A peer without estimates has an RTO of 0 here, and `non_wait` has a lower bound.
        let until = now + non_wait(gauges.unwrap_or_default().rto).times(places);
        self.waits.insert((until, face, exchange));
        until
    }

    /// Ends a client's observation at `face`, because it registers again or deregisters. Returns the token of the observation
    /// at the other face.
    fn leave_observation(&mut self, now: Instant, face: Face, exchange: ExchangeId) -> Option<Token> {
        let there = face.other();
        self.half(there).endpoint.cancel(now, exchange);
        let line = self.end_line(there, exchange)?;
        self.half(face).endpoint.deregister(now, line.responder.to, line.responder.token());
        Some(line.token)
    }

    /// Returns the token for an exchange at `face`. It is the client's token `asked`, unless another exchange uses
    /// this, or it has no byte left for the mechanism's marking, or it is extended (RFC 8974).
    pub(crate) fn choose_token(&mut self, face: Face, peer: SocketAddr, asked: Token) -> Token {
        let mechanism = self.config.mechanism;
        let marking = mechanism.limits(&mechanism.state()).marking;
        let in_token = matches!(marking, Marking::Token | Marking::TokenOnRetransmit);
        let unusable = asked.is_extended() || in_token && asked.is_full();
        if !unusable && self.half(face).is_free(peer, asked) {
            return asked;
        }
        // Four random bytes rarely belong to another line of this peer, so one draw nearly always suffices.
        loop {
            let token = self.draw_token();
            if self.half(face).is_free(peer, token) {
                return token;
            }
        }
    }

    /// Draws a token that cannot be guessed without the seed.
    fn draw_token(&mut self) -> Token {
        use std::hash::{DefaultHasher, Hash, Hasher};
        self.tokens.1 += 1;
        // SipHash of a secret.
        let mut hasher = DefaultHasher::new();
        self.tokens.hash(&mut hasher);
        Token::new(&hasher.finish().to_be_bytes()[..OWN_TOKEN]).unwrap_or_default()
    }

    /// Answers a request with 5.03, because a table is full.
    pub(crate) fn refuse(&mut self, now: Instant, face: Face, responder: Responder<SocketAddr>) {
        self.counts.refused += 1;
        let tail = Options::default().max_age(TRY_AGAIN_AFTER).tail(&[]).unwrap_or_default();
        self.answer(now, face, responder, Code::SERVICE_UNAVAILABLE, tail.as_bytes());
    }
}

/// Returns the source that represents all clients of an IP address, with port 0, which no client has.
fn port_of_all(address: SocketAddr) -> SocketAddr {
    let mut all = address;
    all.set_port(0);
    // The names of DTLS sessions have their numbers here.
    if let SocketAddr::V6(all) = &mut all {
        all.set_flowinfo(0);
    }
    all
}
