//! A relay whose peers are played by a test in bytes, and the messages for that.

use std::net::SocketAddr;

use coapace_control::{Draw, Instant};
use coapace_proto::{Code, Kind, Message, Options, Token};

use crate::{Face, Relay, RelayConfig};

/// A relay, and the present moment.
pub(super) struct Bench {
    pub(super) relay: Relay,
    pub(super) now: Instant,
}

/// A datagram that the relay has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SentDatagram {
    pub(super) face: Face,
    pub(super) to: SocketAddr,
    pub(super) bytes: Vec<u8>,
}

impl SentDatagram {
    pub(super) fn message(&self) -> Message<'_> {
        Message::parse(&self.bytes).expect("a message")
    }

    pub(super) fn kind(&self) -> (Kind, Code) {
        let message = self.message();
        (message.kind, message.code)
    }
}

pub(super) fn client(number: u16) -> SocketAddr {
    ([127, 0, 0, 1], 40_000 + number).into()
}

pub(super) fn token(bytes: &[u8]) -> Token {
    Token::new(bytes).expect("at most 8 bytes")
}

pub(super) fn request(kind: Kind, message_id: u16, token_bytes: &[u8], options: &Options) -> Vec<u8> {
    encoded(kind, Code::GET, message_id, token_bytes, options)
}

pub(super) fn encoded(
    kind: Kind,
    code: Code,
    message_id: u16,
    token_bytes: &[u8],
    options: &Options,
) -> Vec<u8> {
    loaded(kind, code, message_id, token_bytes, options, &[])
}

/// Returns a message with a payload.
pub(super) fn loaded(
    kind: Kind,
    code: Code,
    message_id: u16,
    token_bytes: &[u8],
    options: &Options,
    payload: &[u8],
) -> Vec<u8> {
    let tail = options.tail(payload).expect("short options");
    let mut bytes = Vec::new();
    let message = Message {
        code,
        token: token(token_bytes),
        tail: tail.as_bytes(),
        ..Message::empty(kind, message_id)
    };
    message.write(&mut bytes);
    bytes
}

/// Returns the piggybacked response, with a payload, to a request that the relay has sent.
pub(super) fn content_of(to: &SentDatagram, options: &Options, payload: &[u8]) -> Vec<u8> {
    let Message { message_id, token, .. } = to.message();
    loaded(Kind::Acknowledgement, Code::CONTENT, message_id, &token, options, payload)
}

pub(super) fn get(message_id: u16, token_bytes: &[u8]) -> Vec<u8> {
    request(Kind::Confirmable, message_id, token_bytes, &Options::default().uri_path("t"))
}

/// Returns an answer to a request that the relay has sent, with the token that it has there.
pub(super) fn answer(
    kind: Kind,
    code: Code,
    message_id: u16,
    to: &SentDatagram,
    options: &Options,
) -> Vec<u8> {
    encoded(kind, code, message_id, &to.message().token, options)
}

pub(super) fn content(to: &SentDatagram) -> Vec<u8> {
    answer(Kind::Acknowledgement, Code::CONTENT, to.message().message_id, to, &Options::default())
}

pub(super) fn empty(kind: Kind, message_id: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    Message::empty(kind, message_id).write(&mut bytes);
    bytes
}

impl Bench {
    pub(super) fn new(cc: &str) -> Self {
        Self::with(cc, |_| ())
    }

    pub(super) fn with(cc: &str, change: impl FnOnce(&mut RelayConfig)) -> Self {
        let mut config = RelayConfig::new(cc.parse().expect("a mechanism"));
        change(&mut config);
        Self { relay: Relay::new(config, 7), now: Instant::from_secs(1_000) }
    }

    pub(super) fn sent(&mut self) -> Vec<SentDatagram> {
        let mut all = Vec::new();
        let mut bytes = Vec::new();
        while let Some((face, to)) = self.relay.poll_transmit(self.now, || Draw::ZERO, &mut bytes) {
            all.push(SentDatagram { face, to, bytes: std::mem::take(&mut bytes) });
        }
        all
    }

    /// Hands over a datagram. Returns the datagrams that the relay sends then.
    pub(super) fn arrives(&mut self, face: Face, source: SocketAddr, bytes: &[u8]) -> Vec<SentDatagram> {
        self.relay.handle_datagram(self.now, face, source, bytes);
        self.sent()
    }

    pub(super) fn client_sends(&mut self, bytes: &[u8]) -> Vec<SentDatagram> {
        self.arrives(Face::Clients, client(1), bytes)
    }

    pub(super) fn server_sends(&mut self, bytes: &[u8]) -> Vec<SentDatagram> {
        self.arrives(Face::Server, client(1), bytes)
    }

    /// Hands over a datagram to which the relay sends exactly one.
    pub(super) fn passes(&mut self, face: Face, bytes: &[u8]) -> SentDatagram {
        let sent = self.arrives(face, client(1), bytes);
        assert_eq!(sent.len(), 1, "{sent:?}");
        sent[0].clone()
    }

    /// Lets time pass. Returns the datagrams that the relay sends meanwhile, with the milliseconds that had passed.
    pub(super) fn wait(&mut self, ms: u64) -> Vec<(u64, SentDatagram)> {
        let begun = self.now;
        let end = Instant::from_micros(begun.as_micros() + ms * 1_000);
        let mut all = Vec::new();
        while let Some(at) = self.relay.poll_timeout().filter(|&at| at <= end) {
            self.now = at.max(self.now);
            self.relay.handle_timeout(self.now);
            let passed = self.now.since(begun).as_micros() / 1_000;
            all.extend(self.sent().into_iter().map(|sent| (passed, sent)));
        }
        self.now = end;
        all
    }
}

/// The empty acknowledgement that a client gets.
pub(super) fn ack(message_id: u16) -> SentDatagram {
    SentDatagram { face: Face::Clients, to: client(1), bytes: empty(Kind::Acknowledgement, message_id) }
}
