//! An endpoint with many peers that are spoken to in bytes.

use std::sync::Arc;

use coapace_control::{Draw, Instant, Mechanism};
use coapace_proto::{Allowance, Code, Config, Endpoint, Event, Kind, Message, Options, Setup, Token};

pub(crate) use crate::common::{CONTENT, GET, ms, secs};

pub(crate) const NOT_FOUND: Code = Code(coap_numbers::code::NOT_FOUND);

/// Returns a configuration without PROBING_RATE in which no message is made confirmable.
pub(crate) fn plain() -> Config {
    Config { probing_rate: 0, confirmable_every: 0, ..Config::default() }
}

pub(crate) fn token(text: &str) -> Token {
    Token::new(text.as_bytes()).unwrap()
}

pub(crate) fn bytes(message: &Message<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.write(&mut bytes);
    bytes
}

/// An endpoint whose peers are spoken to in bytes.
pub(crate) struct End(pub(crate) Endpoint<Mechanism, u32>);

impl End {
    pub(crate) fn new(config: Config) -> Self {
        Self::running("default", config)
    }

    pub(crate) fn running(mechanism: &str, config: Config) -> Self {
        let controller = mechanism.parse().unwrap();
        Self(Endpoint::new(Arc::new(Setup { controller, config, bulk: None }), 42))
    }

    /// Returns all datagrams that it sends now: destinations and bytes.
    pub(crate) fn sent(&mut self, now: Instant) -> Vec<(u32, Vec<u8>)> {
        std::iter::from_fn(|| {
            let mut buffer = Vec::new();
            let transmit = self.0.poll_transmit(now, |_| Draw::ZERO, &mut buffer)?;
            Some((transmit.to, buffer))
        })
        .collect()
    }

    /// Calls the endpoint at each moment that `poll_timeout` names, up to `until`. Returns what departs when.
    pub(crate) fn play(&mut self, from: Instant, until: Instant) -> Vec<(Instant, u32, Vec<u8>)> {
        let (mut now, mut departed) = (from, Vec::new());
        loop {
            departed.extend(self.sent(now).into_iter().map(|(to, bytes)| (now, to, bytes)));
            match self.0.poll_timeout().filter(|&at| at <= until) {
                Some(at) => now = at,
                None => return departed,
            }
            self.0.handle_timeout(now);
        }
    }

    /// Registers a client, and answers it.
    pub(crate) fn register(&mut self, now: Instant, from: u32, name: &str, resource: u64) {
        self.register_as(now, from, name, resource, false);
    }

    /// Registers a client that nobody has verified, over IPv4, and answers it.
    pub(crate) fn register_stranger(&mut self, now: Instant, from: u32, name: &str, resource: u64) {
        self.register_as(now, from, name, resource, true);
    }

    fn register_as(&mut self, now: Instant, from: u32, name: &str, resource: u64, is_stranger: bool) {
        let id = 1000 + u16::from(name.as_bytes()[0]);
        let get = bytes(&Message {
            code: GET,
            token: token(name),
            tail: b"\x60",
            ..Message::empty(Kind::Confirmable, id)
        });
        let Some(Event::Request { responder, .. }) = self.0.handle_datagram(now, from, &get) else {
            panic!("no request")
        };
        let allowance = if is_stranger { Allowance::ipv4(get.len()) } else { Allowance::UNLIMITED };
        let responder = responder.limited(allowance);
        let registered = if is_stranger {
            self.0.register_stranger(now, &responder, resource)
        } else {
            self.0.register(now, &responder, resource)
        };
        registered.unwrap();
        assert_eq!(self.0.respond(now, responder, CONTENT, b"\x61\x01"), Ok(None));
        assert_eq!(self.sent(now).len(), 1);
    }

    pub(crate) fn notify(&mut self, resource: u64, confirmable: bool, text: &str) -> usize {
        let tail = Options::default().observe(2).tail(text.as_bytes()).unwrap();
        self.0.notify(resource, confirmable, CONTENT, tail.as_bytes())
    }

    pub(crate) fn answer(
        &mut self,
        now: Instant,
        from: u32,
        kind: Kind,
        sent: &[u8],
    ) -> Option<Event<'static, u32>> {
        let id = Message::parse(sent).unwrap().message_id;
        match self.0.handle_datagram(now, from, &bytes(&Message::empty(kind, id))) {
            Some(Event::ObserverGone { observer, failure }) => {
                Some(Event::ObserverGone { observer, failure })
            }
            None => None,
            event => panic!("{event:?}"),
        }
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(Message::parse(bytes).unwrap().payload().to_vec()).unwrap()
}

pub(crate) fn kind(bytes: &[u8]) -> Kind {
    Message::parse(bytes).unwrap().kind
}
