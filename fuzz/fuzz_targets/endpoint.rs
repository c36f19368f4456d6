//! An endpoint with an arbitrary application, network and clock: it keeps its bounds, and every exchange ends at most once.
//! When nothing more arrives, every remaining exchange ends.
#![no_main]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use arbitrary::Arbitrary;
use coapace_control::{Draw, Duration, Instant, Mechanism, REGISTRY};
use coapace_proto::{
    Code, Config, Endpoint, Event, ExchangeId, Kind, Message, REXMIT_CNT, Request, Responder, Setup, Tail,
    Token,
};
use libfuzzer_sys::fuzz_target;

/// The number of peers.
const PEERS: u8 = 3;
/// The most datagrams and requests that are kept to be answered.
const KEPT: usize = 16;

#[derive(Arbitrary, Debug)]
struct Script<'a> {
    mechanism: u8,
    /// 0 is no preset; of the mechanisms with a marking, 255 is the one that no entry has.
    preset: u8,
    bounds: Bounds,
    steps: Vec<Step<'a>>,
}

/// Numbers in an action are taken modulo the number of choices.
#[derive(Arbitrary, Debug)]
struct Bounds {
    max_retransmit: u8,
    nstart: u8,
    probing_rate: u8,
    confirmable_every: u8,
    max_exchanges: u8,
    max_peers: u8,
    max_replies: u8,
    max_deduplicated: u8,
    max_observers: u8,
    max_listeners: u8,
}

#[derive(Arbitrary, Debug)]
enum Step<'a> {
    Request {
        to: u8,
        confirmable: bool,
        code: u8,
        token: &'a [u8],
        content: Content<'a>,
    },
    /// A request with the Observe option, to a group, or with No-Response.
    Further {
        to: u8,
        how: u8,
        confirmable: bool,
        token: &'a [u8],
    },
    Register {
        which: u8,
        resource: u8,
    },
    Deregister {
        peer: u8,
        token: &'a [u8],
    },
    Notify {
        resource: u8,
        confirmable: bool,
        code: u8,
        content: Content<'a>,
    },
    GroupDatagram {
        from: u8,
        bytes: &'a [u8],
    },
    Ping {
        to: u8,
    },
    Cancel {
        which: u8,
    },
    Acknowledge {
        which: u8,
    },
    Respond {
        which: u8,
        code: u8,
        content: Content<'a>,
    },
    Forget {
        peer: u8,
    },
    /// Arbitrary bytes arrive.
    Datagram {
        from: u8,
        bytes: &'a [u8],
    },
    /// A fitting answer to a datagram that was sent arrives from its destination.
    Answer {
        which: u8,
        kind: u8,
        code: u8,
        message_id: Option<u16>,
        content: Content<'a>,
    },
    /// A datagram that was sent comes back from its destination.
    Mirror {
        which: u8,
    },
    Wait {
        ms: u16,
    },
    /// The clock advances to the deadline.
    Timeout,
    Transmit {
        draw: u32,
    },
}

/// The bytes of options and payload.
#[derive(Arbitrary, Debug)]
struct Content<'a> {
    rexmit_cnt: Option<u8>,
    option: Option<(u16, &'a [u8])>,
    payload: &'a [u8],
}

impl Content<'_> {
    fn encoded(&self) -> Vec<u8> {
        let mut tail = Tail::default();
        if let Some((number, value)) = self.option {
            tail = tail.option(number, value);
        }
        if let Some(count) = self.rexmit_cnt {
            tail = tail.option(REXMIT_CNT, &[count]);
        }
        tail.payload(self.payload).into_bytes()
    }
}

/// The application's view of an exchange.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Known {
    Request,
    AcknowledgedRequest,
    Response,
    Ping,
    /// An observation or a request to a group, which notifications may follow, or a request that gets no response.
    Further,
}

struct Play {
    endpoint: Endpoint<Mechanism, u8>,
    config: Config,
    now: Instant,
    open: BTreeMap<ExchangeId, Known>,
    /// Exchanges that notifications may name.
    listening: BTreeSet<ExchangeId>,
    /// Exchanges that may end without an event.
    untold: BTreeSet<ExchangeId>,
    requests: VecDeque<Responder<u8>>,
    sent: VecDeque<(u8, Vec<u8>)>,
}

fn mechanism(script: &Script<'_>) -> Mechanism {
    let mut mechanism = REGISTRY[usize::from(script.mechanism) % REGISTRY.len()].mechanism;
    let presets = mechanism.presets();
    if script.preset == u8::MAX {
        let _ = mechanism.set("marking", "fresh-message-id");
    } else if let Some(preset) = usize::from(script.preset).checked_sub(1)
        && let Some(preset) = presets.get(preset % presets.len().max(1))
    {
        mechanism.set("preset", preset.name).expect("a preset that is listed");
    }
    mechanism
}

impl Play {
    fn new(script: &Script<'_>) -> Self {
        let bounds = &script.bounds;
        let config = Config {
            max_retransmit: bounds.max_retransmit % 6,
            nstart: Some(1 + u16::from(bounds.nstart % 4)),
            probing_rate: u32::from(bounds.probing_rate % 4),
            confirmable_every: bounds.confirmable_every % 10,
            max_exchanges: u32::from(bounds.max_exchanges % 8),
            max_peers: u32::from(bounds.max_peers % (PEERS + 1)),
            max_replies: u32::from(bounds.max_replies % 4),
            max_deduplicated: u32::from(bounds.max_deduplicated % 8),
            max_sluiced: u32::from(bounds.max_deduplicated / 8 % 4),
            max_observers: u32::from(bounds.max_observers % 6),
            max_token: 8 + u16::from(bounds.max_observers) / 6,
            max_listeners: u32::from(bounds.max_listeners % 6),
            ..Config::default()
        };
        let setup = Setup { controller: mechanism(script), config, bulk: None };
        Self {
            endpoint: Endpoint::new(Arc::new(setup), 1),
            config,
            now: Instant::ZERO,
            open: BTreeMap::new(),
            listening: BTreeSet::new(),
            untold: BTreeSet::new(),
            requests: VecDeque::new(),
            sent: VecDeque::new(),
        }
    }

    fn begun(&mut self, exchange: ExchangeId, known: Known) {
        assert_eq!(self.open.insert(exchange, known), None, "an exchange has the name of another");
    }

    fn ended(&mut self, exchange: ExchangeId) -> Known {
        if self.untold.remove(&exchange) {
            return Known::Further;
        }
        self.open.remove(&exchange).expect("an exchange ends once")
    }

    fn step(&mut self, step: &Step<'_>) {
        let now = self.now;
        match *step {
            Step::Request { to, confirmable, code, token, ref content } => {
                let Some(token) = Token::new(&token[..token.len().min(8)]) else { return };
                let request = Request {
                    confirmable,
                    code: Code(1 + code % 31),
                    token,
                    tail: &content.encoded(),
                    repeatable: false,
                };
                if let Ok(exchange) = self.endpoint.request(now, to % PEERS, request) {
                    self.begun(exchange, Known::Request);
                }
            }
            Step::Further { to, how, confirmable, token } => {
                let Some(token) = Token::new(&token[..token.len().min(8)]) else { return };
                let request = Request { confirmable, code: Code(1), token, tail: b"\x60", repeatable: false };
                let begun = match how % 3 {
                    0 => self.endpoint.observe(now, to % PEERS, request),
                    1 => self.endpoint.request_group(now, to % PEERS, request),
                    _ => self.endpoint.tell(now, to % PEERS, request),
                };
                let Ok(exchange) = begun else { return };
                if how % 3 < 2 {
                    self.listening.insert(exchange);
                }
                // The end of a non-confirmable message is reported for observers only. The message may still depart as
                // confirmable.
                if how % 3 == 0 || how % 3 == 2 && confirmable {
                    self.begun(exchange, Known::Further);
                } else {
                    self.untold.insert(exchange);
                }
            }
            Step::Register { which, resource } => {
                let place = usize::from(which) % self.requests.len().max(1);
                if let Some(responder) = self.requests.get(place) {
                    let _ = self.endpoint.register(now, responder, (resource % 3).into());
                }
            }
            Step::Deregister { peer, token } => {
                let Some(token) = Token::new(&token[..token.len().min(8)]) else { return };
                self.endpoint.deregister(now, peer % PEERS, token);
            }
            Step::Notify { resource, confirmable, code, ref content } => {
                let class = if code < 0x80 { 0x40 } else { 0x80 };
                let code = Code(class | code % 32);
                self.endpoint.notify((resource % 3).into(), confirmable, code, &content.encoded());
            }
            Step::GroupDatagram { from, bytes } => {
                if let Some(Event::Request { responder, .. }) =
                    self.endpoint.handle_group_datagram(now, from % PEERS, bytes)
                {
                    self.requests.truncate(KEPT - 1);
                    self.requests.push_front(responder);
                }
            }
            Step::Ping { to } => {
                if let Ok(exchange) = self.endpoint.ping(now, to % PEERS) {
                    self.begun(exchange, Known::Ping);
                }
            }
            Step::Cancel { which } => {
                let place = usize::from(which) % self.open.len().max(1);
                if let Some((&exchange, _)) = self.open.iter().nth(place) {
                    self.endpoint.cancel(now, exchange);
                    // A failed one is still reported.
                    self.take_events();
                    self.open.remove(&exchange);
                    self.listening.remove(&exchange);
                }
            }
            Step::Acknowledge { which } => {
                let place = usize::from(which) % self.requests.len().max(1);
                if let Some(responder) = self.requests.get_mut(place) {
                    *responder = self.endpoint.acknowledge(now, *responder);
                }
            }
            Step::Respond { which, code, ref content } => {
                let place = usize::from(which) % self.requests.len().max(1);
                let Some(responder) = self.requests.remove(place) else { return };
                let code = Code(0x40 | code % 32);
                if let Ok(Some(exchange)) = self.endpoint.respond(now, responder, code, &content.encoded()) {
                    self.begun(exchange, Known::Response);
                }
            }
            Step::Forget { peer } => self.endpoint.forget(peer % PEERS),
            Step::Datagram { from, bytes } => self.receive(from % PEERS, bytes),
            Step::Answer { which, kind, code, message_id, ref content } => {
                let place = usize::from(which) % self.sent.len().max(1);
                let Some((from, request)) = self.sent.get(place) else { return };
                let Ok(request) = Message::parse(request) else { return };
                let kind = [Kind::Acknowledgement, Kind::Reset, Kind::Confirmable, Kind::NonConfirmable]
                    [usize::from(kind % 4)];
                let empty = Message::empty(kind, message_id.unwrap_or(request.message_id));
                let tail = content.encoded();
                let answer = match code {
                    0 => empty,
                    _ => Message { code: Code(0x40 | code % 32), token: request.token, tail: &tail, ..empty },
                };
                let (from, mut bytes) = (*from, Vec::new());
                answer.write(&mut bytes);
                self.receive(from, &bytes);
            }
            Step::Mirror { which } => {
                let place = usize::from(which) % self.sent.len().max(1);
                if let Some((from, bytes)) = self.sent.get(place).cloned() {
                    self.receive(from, &bytes);
                }
            }
            Step::Wait { ms } => {
                self.now = now + Duration::from_millis(ms.into());
                self.fire();
            }
            Step::Timeout => {
                self.now = self.endpoint.poll_timeout().map_or(now, |at| at.max(now));
                self.fire();
            }
            Step::Transmit { draw } => self.transmit(draw),
        }
    }

    fn receive(&mut self, from: u8, bytes: &[u8]) {
        match self.endpoint.handle_datagram(self.now, from, bytes) {
            Some(Event::Request { responder, .. }) => {
                self.requests.truncate(KEPT - 1);
                self.requests.push_front(responder);
            }
            Some(Event::Response { exchange, .. }) => {
                let known = self.ended(exchange);
                let expected = matches!(known, Known::Request | Known::AcknowledgedRequest | Known::Further);
                assert!(expected, "{known:?}");
            }
            Some(Event::Acknowledged { exchange }) => match self.ended(exchange) {
                Known::Request => self.begun(exchange, Known::AcknowledgedRequest),
                // An observation continues until its response; a request without a response is over.
                Known::Further if self.listening.contains(&exchange) => self.begun(exchange, Known::Further),
                Known::Further => {}
                known => assert_eq!(known, Known::Response, "acknowledged"),
            },
            Some(Event::Pong { exchange }) => assert_eq!(self.ended(exchange), Known::Ping),
            Some(Event::Failed { exchange, .. }) => drop(self.ended(exchange)),
            Some(Event::Rejected { exchange, .. }) => {
                // The exchange of an observation may have ended long ago.
                let listened = self.listening.remove(&exchange);
                let under_way = self.untold.remove(&exchange) || self.open.remove(&exchange).is_some();
                assert!(listened || under_way, "nobody waits for it");
            }
            Some(Event::Notification { exchange, .. }) => {
                assert!(self.listening.contains(&exchange), "nobody listens for it");
            }
            Some(Event::ObserverGone { .. }) => {}
            None => {}
        }
    }

    fn fire(&mut self) {
        self.endpoint.handle_timeout(self.now);
        assert!(self.endpoint.poll_timeout().is_none_or(|at| at > self.now), "a deadline lies behind");
        self.take_events();
    }

    fn take_events(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Failed { exchange, .. } => drop(self.ended(exchange)),
                Event::ObserverGone { .. } => {}
                _ => panic!("{event:?}"),
            }
        }
    }

    fn transmit(&mut self, draw: u32) {
        let mut bytes = Vec::new();
        while let Some(transmit) =
            self.endpoint.poll_transmit(self.now, |_| Draw::from_bits(draw), &mut bytes)
        {
            let message = Message::parse(&bytes).expect("a message");
            assert!(message.code != Code::EMPTY || bytes.len() == 4);
            self.sent.truncate(KEPT - 1);
            self.sent.push_front((transmit.to, std::mem::take(&mut bytes)));
        }
        self.take_events();
    }

    fn check(&self) {
        assert!(self.endpoint.exchanges() <= self.config.max_exchanges as usize);
        // Peers that observe are remembered beside the others.
        assert!(self.endpoint.peers() <= (self.config.max_peers + self.config.max_observers) as usize);
        assert!(self.endpoint.observer_count() <= self.config.max_observers as usize);
        assert!(self.endpoint.exchanges() >= self.open.len());
    }

    /// Nothing arrives any more, and all remaining exchanges end.
    fn end(&mut self) {
        for _ in 0..10_000 {
            self.transmit(0);
            self.take_events();
            let Some(at) = self.endpoint.poll_timeout() else { break };
            assert!(at > self.now, "a deadline lies behind");
            self.now = at;
            self.fire();
        }
        assert!(self.open.is_empty(), "{:?} never end", self.open);
        assert_eq!(self.endpoint.exchanges(), 0, "a slot is lost");
        assert_eq!(self.endpoint.poll_timeout(), None);
    }
}

fuzz_target!(|script: Script<'_>| {
    let mut play = Play::new(&script);
    for step in &script.steps {
        play.step(step);
        play.check();
    }
    play.end();
});
