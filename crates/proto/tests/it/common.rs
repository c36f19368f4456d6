//! An endpoint with one peer that is spoken to in bytes.

use std::sync::Arc;

use coapace_control::{Controller, Draw, Instant, Mechanism};
use coapace_proto::{Code, Config, Endpoint, Event, ExchangeId, Kind, Message, Request, Setup, Token};

pub(crate) const GET: Code = Code(coap_numbers::code::GET);
pub(crate) const CONTENT: Code = Code(coap_numbers::code::CONTENT);

/// The address of the only peer.
const PEER: u32 = 9;

pub(crate) struct Client<C: Controller = Mechanism> {
    pub(crate) endpoint: Endpoint<C, u32>,
}

impl Default for Client {
    fn default() -> Self {
        Self::with(Config::default())
    }
}

impl Client {
    pub(crate) fn with(config: Config) -> Self {
        Self::running("default", config)
    }

    pub(crate) fn running(mechanism: &str, config: Config) -> Self {
        Self::set_up(&Arc::new(Setup { controller: mechanism.parse().unwrap(), config, bulk: None }))
    }
}

impl<C: Controller> Client<C> {
    pub(crate) fn set_up(setup: &Arc<Setup<C>>) -> Self {
        Self { endpoint: Endpoint::new(setup.clone(), 42) }
    }

    /// Requests `x` with a confirmable GET.
    pub(crate) fn get(&mut self, now: Instant, token: &str) -> ExchangeId {
        self.ask(now, token, true)
    }

    /// Requests `x` with a GET.
    pub(crate) fn ask(&mut self, now: Instant, token: &str, confirmable: bool) -> ExchangeId {
        let token = Token::new(token.as_bytes()).unwrap();
        let request = Request { confirmable, code: GET, token, tail: b"\xb1x", repeatable: false };
        self.endpoint.request(now, PEER, request).unwrap()
    }

    /// Returns the next datagram that it sends.
    pub(crate) fn sent(&mut self, now: Instant) -> Option<Vec<u8>> {
        let mut buffer = Vec::new();
        let transmit = self.endpoint.poll_transmit(now, |_| Draw::ZERO, &mut buffer)?;
        assert_eq!(transmit.to, PEER);
        Some(buffer)
    }

    pub(crate) fn receive<'b>(&mut self, now: Instant, bytes: &'b [u8]) -> Option<Event<'b, u32>> {
        self.endpoint.handle_datagram(now, PEER, bytes)
    }
}

/// Returns a message that answers `request` with its Message ID and token.
pub(crate) fn reply_to(request: &[u8], kind: Kind, code: Code, tail: &[u8]) -> Vec<u8> {
    let request = Message::parse(request).unwrap();
    let mut bytes = Vec::new();
    Message { code, token: request.token, tail, ..Message::empty(kind, request.message_id) }
        .write(&mut bytes);
    bytes
}

pub(crate) fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

pub(crate) fn secs(s: u64) -> Instant {
    Instant::from_secs(s)
}

/// A source of numbers that depend on the seed alone.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // Constants of Knuth's MMIX.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }
}
