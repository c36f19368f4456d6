//! Tests of the relay, datagram by datagram.

use std::net::SocketAddr;

use coapace_control::{Draw, Instant};
use coapace_proto::{Code, Kind, Message, Options, REXMIT_CNT, Token};
use proptest::prelude::*;

use super::{Face, Relay, RelayConfig};

/// A relay at one moment, and what it has sent.
struct Bench {
    relay: Relay,
    now: Instant,
}

/// A datagram that the relay has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sent {
    face: Face,
    to: SocketAddr,
    bytes: Vec<u8>,
}

impl Sent {
    fn message(&self) -> Message<'_> {
        Message::parse(&self.bytes).expect("a message")
    }

    fn kind(&self) -> (Kind, Code) {
        let message = self.message();
        (message.kind, message.code)
    }
}

fn client(number: u16) -> SocketAddr {
    ([127, 0, 0, 1], 40_000 + number).into()
}

fn token(bytes: &[u8]) -> Token {
    Token::new(bytes).expect("at most 8 bytes")
}

fn request(kind: Kind, message_id: u16, token_bytes: &[u8], options: &Options) -> Vec<u8> {
    encoded(kind, Code::GET, message_id, token_bytes, options)
}

fn encoded(kind: Kind, code: Code, message_id: u16, token_bytes: &[u8], options: &Options) -> Vec<u8> {
    let tail = options.tail(&[]).expect("short options");
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

fn get(message_id: u16, token_bytes: &[u8]) -> Vec<u8> {
    request(Kind::Confirmable, message_id, token_bytes, &Options::default().uri_path("t"))
}

/// Returns an answer to a request that the relay has sent, with the token that it has there.
fn answer(kind: Kind, code: Code, message_id: u16, to: &Sent, options: &Options) -> Vec<u8> {
    encoded(kind, code, message_id, &to.message().token, options)
}

fn content(to: &Sent) -> Vec<u8> {
    answer(Kind::Acknowledgement, Code::CONTENT, to.message().message_id, to, &Options::default())
}

fn empty(kind: Kind, message_id: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    Message::empty(kind, message_id).write(&mut bytes);
    bytes
}

impl Bench {
    fn new(cc: &str) -> Self {
        Self::with(cc, |_| ())
    }

    fn with(cc: &str, change: impl FnOnce(&mut RelayConfig)) -> Self {
        let mut config = RelayConfig::new(cc.parse().expect("a mechanism"));
        change(&mut config);
        Self { relay: Relay::new(config, 7), now: Instant::from_secs(1_000) }
    }

    fn sent(&mut self) -> Vec<Sent> {
        let mut all = Vec::new();
        let mut bytes = Vec::new();
        while let Some((face, to)) = self.relay.poll_transmit(self.now, || Draw::ZERO, &mut bytes) {
            all.push(Sent { face, to, bytes: std::mem::take(&mut bytes) });
        }
        all
    }

    /// Hands over a datagram. Returns what the relay sends then.
    fn arrives(&mut self, face: Face, source: SocketAddr, bytes: &[u8]) -> Vec<Sent> {
        self.relay.handle_datagram(self.now, face, source, bytes);
        self.sent()
    }

    fn from_client(&mut self, bytes: &[u8]) -> Vec<Sent> {
        self.arrives(Face::Clients, client(1), bytes)
    }

    fn from_server(&mut self, bytes: &[u8]) -> Vec<Sent> {
        self.arrives(Face::Server, client(1), bytes)
    }

    /// Hands over a datagram to which the relay sends exactly one.
    fn passes(&mut self, face: Face, bytes: &[u8]) -> Sent {
        let sent = self.arrives(face, client(1), bytes);
        assert_eq!(sent.len(), 1, "{sent:?}");
        sent[0].clone()
    }

    /// Lets time pass. Returns what the relay sends meanwhile, with the milliseconds that had passed.
    fn wait(&mut self, ms: u64) -> Vec<(u64, Sent)> {
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

#[test]
fn a_request_and_its_answer_pass_with_the_token_and_the_options_that_they_have() {
    let mut bench = Bench::new("cocoa");
    let options = Options::default().uri_path("t").with(9, b"protected").with(2_053, b"unknown");
    let asked = request(Kind::Confirmable, 77, b"tok", &options);
    let up = bench.passes(Face::Clients, &asked);
    assert_eq!((up.face, up.to), (Face::Server, client(1)));
    assert_eq!(up.bytes[4..], asked[4..], "all but the Message ID");
    let down = bench.passes(Face::Server, &content(&up));
    assert_eq!(
        down,
        Sent { face: Face::Clients, to: client(1), bytes: content(&Sent { bytes: asked, ..up }) }
    );
    assert_eq!(bench.relay.report().lines, 0);
    assert_eq!(bench.relay.poll_timeout(), None);
}

#[test]
fn a_copy_of_the_app_is_acknowledged_and_goes_no_further() {
    let mut bench = Bench::new("cocoa");
    let up = bench.passes(Face::Clients, &get(1, b"a"));
    assert_eq!(bench.from_client(&get(1, b"a")), [Sent { face: Face::Clients, ..ack(1) }]);
    assert_eq!(
        bench.from_client(&get(1, b"a")),
        [ack(1)],
        "every copy, because the acknowledgement may be lost"
    );
    let down = bench.passes(Face::Server, &content(&up));
    assert_eq!(down.kind(), (Kind::Confirmable, Code::CONTENT), "the response is separate then");
    assert_eq!(*down.message().token, *b"a");
    assert_eq!(bench.relay.report().clients.duplicates, 2);
    assert!(bench.from_client(&empty(Kind::Acknowledgement, down.message().message_id)).is_empty());
    assert!(bench.wait(300_000).is_empty());
}

fn ack(message_id: u16) -> Sent {
    Sent { face: Face::Clients, to: client(1), bytes: empty(Kind::Acknowledgement, message_id) }
}

#[test]
fn a_separate_response_is_repeated_until_the_app_acknowledges_it() {
    let mut bench = Bench::new("default");
    let up = bench.passes(Face::Clients, &get(1, b"a"));
    bench.from_client(&get(1, b"a"));
    let down = bench.passes(Face::Server, &content(&up));
    let again = bench.wait(2_000);
    assert_eq!(again, [(2_000, down.clone())]);
    bench.from_client(&empty(Kind::Acknowledgement, down.message().message_id));
    assert!(bench.wait(300_000).is_empty());
}

#[test]
fn a_late_copy_gets_the_answer_again() {
    let mut bench = Bench::new("fasor");
    let up = bench.passes(Face::Clients, &get(1, b"a"));
    let down = bench.passes(Face::Server, &content(&up));
    for _ in 0..3 {
        assert_eq!(bench.passes(Face::Clients, &get(1, b"a")), down);
        bench.wait(30_000);
    }
    assert_eq!(bench.relay.report().server.started, 1);
}

#[test]
fn the_timer_towards_the_server_is_that_of_the_mechanism() {
    let mut bench = Bench::new("default:ack_timeout=700ms");
    bench.from_client(&get(1, b"a"));
    let departures: Vec<u64> = bench.wait(20_000).into_iter().map(|(at, _)| at).collect();
    assert_eq!(departures, [700, 2_100, 4_900, 10_500]);
}

#[test]
fn a_dead_server_gets_five_datagrams_and_the_app_is_told_5_04() {
    for cc in ["default", "cocoa", "fasor", "fasor-token", "rtt-coap", "ebb", "linux-rto"] {
        let mut bench = Bench::new(cc);
        let first = bench.from_client(&get(1, b"a"));
        let sent = bench.wait(400_000);
        let (up, down): (Vec<_>, Vec<_>) = sent.into_iter().partition(|(_, sent)| sent.face == Face::Server);
        assert_eq!(first.len() + up.len(), 5, "{cc}");
        let [(_, told)] = &down[..] else { panic!("{cc}: {down:?}") };
        assert_eq!(told.kind(), (Kind::Acknowledgement, Code::GATEWAY_TIMEOUT), "{cc}");
        assert_eq!(bench.relay.report().lines, 0);
    }
}

#[test]
fn a_reset_is_passed_on_and_a_copy_gets_it_again() {
    let mut bench = Bench::new("cocoa");
    let up = bench.passes(Face::Clients, &get(9, b"a"));
    let down = bench.passes(Face::Server, &empty(Kind::Reset, up.message().message_id));
    assert_eq!(down.bytes, empty(Kind::Reset, 9));
    assert_eq!(bench.passes(Face::Clients, &get(9, b"a")), down);
}

#[test]
fn a_reset_to_a_request_that_was_acknowledged_becomes_5_02() {
    let mut bench = Bench::new("cocoa");
    let up = bench.passes(Face::Clients, &get(9, b"a"));
    bench.from_client(&get(9, b"a"));
    let down = bench.passes(Face::Server, &empty(Kind::Reset, up.message().message_id));
    assert_eq!(down.kind(), (Kind::Confirmable, Code::BAD_GATEWAY));
}

#[test]
fn an_empty_acknowledgement_and_the_separate_response_are_passed_on() {
    let mut bench = Bench::new("cocoa");
    let up = bench.passes(Face::Clients, &get(5, b"a"));
    let acknowledged = bench.passes(Face::Server, &empty(Kind::Acknowledgement, up.message().message_id));
    assert_eq!(acknowledged, ack(5));
    bench.wait(10_000);
    let separate = answer(Kind::Confirmable, Code::CONTENT, 300, &up, &Options::default());
    let sent = bench.from_server(&separate);
    let (up, down): (Vec<_>, Vec<_>) = sent.into_iter().partition(|sent| sent.face == Face::Server);
    assert_eq!(up[0].bytes, empty(Kind::Acknowledgement, 300));
    assert_eq!(down[0].kind(), (Kind::Confirmable, Code::CONTENT));
    let copies = bench.from_server(&separate);
    assert_eq!(copies, up, "a copy is acknowledged and not passed on");
}

#[test]
fn a_non_confirmable_request_stays_one_and_leaves_by_the_rate_of_the_endpoint() {
    let mut bench = Bench::new("default");
    let options = Options::default().uri_path("t");
    let ask = |id| request(Kind::NonConfirmable, id, &[id as u8], &options);
    let up = bench.passes(Face::Clients, &ask(1));
    assert_eq!(up.kind(), (Kind::NonConfirmable, Code::GET));
    let down =
        bench.passes(Face::Server, &answer(Kind::NonConfirmable, Code::CONTENT, 8, &up, &Options::default()));
    assert_eq!((down.kind(), down.message().token), ((Kind::NonConfirmable, Code::CONTENT), token(&[1])));
    // Nothing answers the second. It gives its place up after three times the RTO.
    assert_eq!(bench.from_client(&ask(2)).len(), 1);
    assert!(bench.from_client(&ask(3)).is_empty(), "NSTART is 1");
    let departures: Vec<u64> = bench.wait(10_000).into_iter().map(|(at, _)| at).collect();
    assert_eq!(departures, [6_000]);
    assert_eq!(bench.relay.report().relay.unanswered, 1);
}

#[test]
fn a_request_that_wants_no_response_leaves_nothing_behind() {
    let mut bench = Bench::new("default");
    let options = Options::default().uri_path("t").no_response(26);
    bench.passes(Face::Clients, &encoded(Kind::NonConfirmable, Code::PUT, 1, b"a", &options));
    assert_eq!(bench.relay.report().lines, 0);
    bench.wait(10_000);
    let up = bench.passes(Face::Clients, &encoded(Kind::Confirmable, Code::PUT, 2, b"b", &options));
    let down = bench.passes(Face::Server, &empty(Kind::Acknowledgement, up.message().message_id));
    assert_eq!((down, bench.relay.report().lines), (ack(2), 0));
}

/// Observes a resource. Returns the request that the relay has sent.
fn observed(bench: &mut Bench) -> Sent {
    let register = request(Kind::Confirmable, 1, b"obs", &Options::default().observe(0).uri_path("t"));
    let up = bench.passes(Face::Clients, &register);
    let first = answer(
        Kind::Acknowledgement,
        Code::CONTENT,
        up.message().message_id,
        &up,
        &Options::default().observe(10),
    );
    let down = bench.passes(Face::Server, &first);
    assert_eq!(down.message().observe(), Some(10));
    up
}

fn notification(kind: Kind, message_id: u16, number: u32, up: &Sent) -> Vec<u8> {
    answer(kind, Code::CONTENT, message_id, up, &Options::default().observe(number))
}

#[test]
fn notifications_pass_in_their_order_with_their_numbers_and_types() {
    let mut bench = Bench::new("cocoa");
    let up = observed(&mut bench);
    let sent = bench.from_server(&notification(Kind::Confirmable, 500, 11, &up));
    assert_eq!(sent[0].bytes, notification(Kind::Confirmable, sent[0].message().message_id, 11, &up));
    assert_eq!(sent[1], Sent { face: Face::Server, to: client(1), bytes: empty(Kind::Acknowledgement, 500) });
    assert!(bench.from_client(&empty(Kind::Acknowledgement, sent[0].message().message_id)).is_empty());
    bench.wait(5_000);
    let down = bench.passes(Face::Server, &notification(Kind::NonConfirmable, 501, 12, &up));
    assert_eq!((down.message().kind, down.message().observe()), (Kind::NonConfirmable, Some(12)));
    bench.wait(5_000);
    assert!(bench.from_server(&notification(Kind::NonConfirmable, 502, 9, &up)).is_empty());
    assert_eq!(bench.relay.report().relay.stale, 1);
}

#[test]
fn an_app_that_rejects_a_notification_ends_the_observation_at_the_server() {
    for kind in [Kind::Confirmable, Kind::NonConfirmable] {
        let mut bench = Bench::new("cocoa");
        let up = observed(&mut bench);
        let sent = bench.from_server(&notification(kind, 500, 11, &up));
        let reset = empty(Kind::Reset, sent[0].message().message_id);
        assert!(bench.from_client(&reset).is_empty());
        assert_eq!(bench.relay.report().lines, 0);
        let sent = bench.passes(Face::Server, &notification(kind, 501, 12, &up));
        assert_eq!((sent.face, sent.bytes), (Face::Server, empty(Kind::Reset, 501)));
    }
}

#[test]
fn to_register_again_and_to_deregister_the_relay_uses_the_token_of_the_registration() {
    // 8 bytes leave no room for the ordinal: the relay has a token of its own.
    let mut bench = Bench::new("fasor-token");
    let ask = |id, observe| {
        request(Kind::Confirmable, id, b"12345678", &Options::default().observe(observe).uri_path("t"))
    };
    let mut first = None;
    for (id, observe) in [(1, 0), (2, 0), (3, 1)] {
        let up = bench.passes(Face::Clients, &ask(id, observe));
        let asked = up.message().token;
        let base = Token::new(&asked[..4]).expect("4 bytes");
        assert_eq!(*first.get_or_insert(base), base);
        let mut options = Options::default();
        if observe == 0 {
            options = options.observe(u32::from(id));
        }
        let response = answer(Kind::Acknowledgement, Code::CONTENT, up.message().message_id, &up, &options);
        let down = bench.passes(Face::Server, &response);
        assert_eq!(*down.message().token, *b"12345678");
        assert_eq!(bench.relay.report().lines, u64::from(observe == 0));
    }
}

#[test]
fn the_last_notification_ends_the_observation() {
    for code in [Code::NOT_FOUND, Code::CONTENT] {
        let mut bench = Bench::new("cocoa");
        let up = observed(&mut bench);
        let last = answer(Kind::Confirmable, code, 500, &up, &Options::default());
        let sent = bench.from_server(&last);
        let down = sent.iter().find(|sent| sent.face == Face::Clients && sent.message().code == code);
        assert_eq!(down.expect("the last one").message().kind, Kind::Confirmable, "{code:?}: {sent:?}");
        assert_eq!(bench.relay.report().lines, 0);
    }
}

#[test]
fn blocks_pass_like_any_request() {
    let mut bench = Bench::new("cocoa");
    for number in 0..4u16 {
        let block = Options::default().uri_path("t").with_uint(23, u64::from(number) << 4 | 6);
        let up = bench.passes(Face::Clients, &request(Kind::Confirmable, number, b"b", &block));
        let options = Options::default().with_uint(23, u64::from(number) << 4 | 14);
        let response = answer(Kind::Acknowledgement, Code::CONTENT, up.message().message_id, &up, &options);
        let down = bench.passes(Face::Server, &response);
        assert_eq!(down.message().tail, options.tail(&[]).unwrap().as_bytes());
    }
}

#[test]
fn the_ordinals_of_a_mechanism_stay_at_the_face_of_the_server() {
    for cc in ["fasor-token", "fasor-option", "cocoa-i"] {
        let mut bench = Bench::new(cc);
        bench.from_client(&get(1, b"abcd"));
        let copies = bench.wait(4_000);
        let Some((_, copy)) = copies.first() else { panic!("{cc} sends a copy") };
        let count = copy.message().rexmit_cnt;
        let mut options = Options::default();
        if let Some(count) = count {
            options = options.with_uint(REXMIT_CNT, count.into());
        }
        let response =
            answer(Kind::Acknowledgement, Code::CONTENT, copy.message().message_id, copy, &options);
        let down = bench.passes(Face::Server, &response);
        let message = down.message();
        assert_eq!(
            (message.message_id, &*message.token, message.rexmit_cnt),
            (1, &b"abcd"[..], None),
            "{cc}"
        );
        assert!(message.tail.is_empty(), "{cc}");
    }
}

#[test]
fn two_requests_with_one_token_are_told_apart() {
    let mut bench = Bench::with("default", |config| config.nstart = Some(2));
    let first = bench.passes(Face::Clients, &get(1, b"a"));
    let second = bench.passes(Face::Clients, &get(2, b"a"));
    assert_ne!(first.message().token, second.message().token);
    assert_eq!(bench.passes(Face::Server, &content(&second)).message().message_id, 2);
    assert_eq!(bench.passes(Face::Server, &content(&first)).message().message_id, 1);
}

#[test]
fn message_ids_of_an_app_go_around() {
    let mut bench = Bench::new("default");
    for id in [65_534, 65_535, 0, 1] {
        let up = bench.passes(Face::Clients, &get(id, b"a"));
        let down = bench.passes(Face::Server, &content(&up));
        assert_eq!(down.message().message_id, id);
    }
    // 70,000 messages in more than EXCHANGE_LIFETIME: no copy is seen in a Message ID that comes back.
    for count in 2..70_000u32 {
        bench.wait(5);
        let id = count as u16;
        let sent = bench.from_client(&get(id, b"a"));
        let up = sent.iter().find(|sent| sent.face == Face::Server).expect("it is passed on");
        bench.from_server(&content(up));
    }
    assert_eq!(bench.relay.report().clients.duplicates, 0);
}

#[test]
fn a_request_of_the_server_passes_to_the_client_and_its_answer_back() {
    let mut bench = Bench::new("cocoa");
    let up = bench.passes(Face::Clients, &get(1, b"a"));
    bench.from_server(&content(&up));
    let down = bench.passes(Face::Server, &get(900, b"srv"));
    assert_eq!((down.face, down.to, down.message().token), (Face::Clients, client(1), token(b"srv")));
    let back = bench.passes(Face::Clients, &content(&down));
    assert_eq!((back.face, back.message().message_id), (Face::Server, 900));
}

#[test]
fn clients_that_share_a_path_share_port_estimate_and_nstart() {
    let mut bench = Bench::with("default", |config| config.shares = true);
    let up = bench.arrives(Face::Clients, client(1), &get(1, b"a"));
    assert_eq!(up[0].to, ([127, 0, 0, 1], 0).into());
    assert!(bench.arrives(Face::Clients, client(2), &get(1, b"a")).is_empty(), "NSTART is 1");
    let sent = bench.arrives(Face::Server, up[0].to, &content(&up[0]));
    let (down, up): (Vec<_>, Vec<_>) = sent.into_iter().partition(|sent| sent.face == Face::Clients);
    assert_eq!(down[0].to, client(1));
    let sent = bench.arrives(Face::Server, up[0].to, &content(&up[0]));
    assert_eq!(sent[0].to, client(2));
    let refused = bench.arrives(Face::Server, up[0].to, &get(900, b"srv"));
    assert_eq!((refused[0].face, &refused[0].bytes), (Face::Server, &empty(Kind::Reset, 900)));
}

#[test]
fn full_tables_are_told_and_the_idle_make_room() {
    let mut bench = Bench::with("default", |config| {
        config.max_sources = 2;
        config.max_exchanges_of_source = 3;
    });
    for id in 0..5 {
        bench.arrives(Face::Clients, client(1), &get(id, &[id as u8]));
    }
    assert_eq!(bench.relay.report().relay.refused, 2, "three of one source");
    bench.arrives(Face::Clients, client(2), &get(1, b"a"));
    let refused = bench.arrives(Face::Clients, client(3), &get(1, b"a"));
    assert_eq!(refused[0].kind(), (Kind::Acknowledgement, Code::SERVICE_UNAVAILABLE));
    assert_eq!((refused[0].to, refused[0].message().max_age()), (client(3), 5));
    bench.wait(400_000);
    assert_eq!(bench.arrives(Face::Clients, client(3), &get(2, b"a")).len(), 1);
    assert_eq!(bench.relay.poll_closed(), Some(client(1)), "idle for longest");
    assert_eq!(bench.relay.poll_closed(), None);
}

#[test]
fn datagrams_of_dtls_pass_as_they_are() {
    let mut bench = Bench::new("default");
    let hello = [22, 254, 253, 0, 0, 1, 2, 3];
    let up = bench.passes(Face::Clients, &hello);
    assert_eq!(up, Sent { face: Face::Server, to: client(1), bytes: hello.into() });
    let down = bench.passes(Face::Server, &hello);
    assert_eq!(down, Sent { face: Face::Clients, to: client(1), bytes: hello.into() });
    assert!(bench.arrives(Face::Server, client(2), &hello).is_empty(), "nobody asked for that");
}

#[test]
fn in_front_of_a_server_a_copy_may_get_no_answer() {
    let mut bench = Bench::with("default", |config| config.sluice = true);
    for id in 0..3 {
        let up = bench.passes(Face::Clients, &get(id, b"a"));
        bench.from_server(&content(&up));
        bench.wait(1_000);
    }
    assert!(bench.wait(0).is_empty());
    let up = bench.passes(Face::Clients, &get(3, b"a"));
    bench.from_server(&content(&up));
    bench.wait(900);
    assert!(bench.from_client(&get(3, b"a")).is_empty());
    assert_eq!(bench.relay.report().clients.withheld, 1);
}

#[test]
fn malformed_messages_are_rejected_and_pass_nowhere() {
    let mut bench = Bench::new("default");
    let told = bench.passes(Face::Clients, &[0x49, 1, 0, 5, 1]);
    assert_eq!(told.bytes, empty(Kind::Reset, 5));
    assert!(bench.from_client(&[0xff; 9]).is_empty() && bench.from_client(&[]).is_empty());
    assert_eq!(
        bench.passes(Face::Clients, &empty(Kind::Confirmable, 3)).bytes,
        empty(Kind::Reset, 3),
        "a ping"
    );
}

/// One step of a random life.
#[derive(Clone, Debug)]
enum Do {
    /// Bytes arrive from a client, or at its port from the server.
    Arrive(bool, u16, Vec<u8>),
    /// A valid request of a client.
    Ask(u16, Kind, u16, Option<u32>),
    /// The server answers something that it was sent.
    Answer(prop::sample::Index, Kind, u8, Option<u32>),
    /// A client answers something that it was sent.
    React(prop::sample::Index, Kind),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Do>> {
    let kind = || {
        prop_oneof![
            Just(Kind::Confirmable),
            Just(Kind::NonConfirmable),
            Just(Kind::Acknowledgement),
            Just(Kind::Reset)
        ]
    };
    let observe = || prop::option::of(0..4u32);
    let index = any::<prop::sample::Index>;
    let bytes = prop::collection::vec(any::<u8>(), 0..24);
    prop::collection::vec(
        prop_oneof![
            (any::<bool>(), 0..6u16, bytes).prop_map(|(up, who, bytes)| Do::Arrive(up, who, bytes)),
            (0..6u16, kind(), 0..8u16, observe())
                .prop_map(|(who, kind, id, obs)| Do::Ask(who, kind, id, obs)),
            (index(), kind(), prop::sample::select(vec![0u8, 69, 68, 132]), observe())
                .prop_map(|(which, kind, code, obs)| Do::Answer(which, kind, code, obs)),
            (index(), kind()).prop_map(|(which, kind)| Do::React(which, kind)),
            (0..100_000u64).prop_map(Do::Wait),
        ],
        0..120,
    )
}

proptest! {
    /// Whatever arrives, tables stay within their bounds, no message departs more often than RFC 7252 allows, and in the end
    /// nothing is left.
    #[test]
    fn random_datagrams_and_times_leave_nothing_behind(
        steps in steps(),
        cc in prop::sample::select(vec!["default", "cocoa", "fasor-token", "fasor-option", "cocoa-i", "rtt-coap"]),
        shares in any::<bool>(),
    ) {
        let mut bench = Bench::with(cc, |config| {
            (config.max_sources, config.max_exchanges, config.max_observers) = (4, 8, 3);
            (config.shares, config.sluice) = (shares, shares);
        });
        let mut log: Vec<Sent> = Vec::new();
        for step in steps {
            let sent = match step {
                Do::Arrive(up, who, bytes) => {
                    bench.arrives(if up { Face::Clients } else { Face::Server }, client(who), &bytes)
                }
                Do::Ask(who, kind, id, observe) => {
                    let mut options = Options::default().uri_path("t");
                    if let Some(number) = observe {
                        options = options.observe(number);
                    }
                    bench.arrives(Face::Clients, client(who), &request(kind, id, &[id as u8], &options))
                }
                Do::Answer(_, ..) | Do::React(..) if log.is_empty() => continue,
                Do::Answer(which, kind, code, observe) => {
                    let to = which.get(&log).clone();
                    let mut options = Options::default();
                    if let Some(number) = observe.filter(|_| code != 0) {
                        options = options.observe(number);
                    }
                    let Ok(message) = Message::parse(&to.bytes) else { continue };
                    let token = if code == 0 { Token::EMPTY } else { message.token };
                    let bytes = encoded(kind, Code(code), message.message_id, &token, &options);
                    bench.arrives(to.face, to.to, &bytes)
                }
                Do::React(which, kind) => {
                    let to = which.get(&log).clone();
                    let Ok(message) = Message::parse(&to.bytes) else { continue };
                    bench.arrives(to.face, to.to, &empty(kind, message.message_id))
                }
                Do::Wait(ms) => bench.wait(ms).into_iter().map(|(_, sent)| sent).collect(),
            };
            log.extend(sent);
            let report = bench.relay.report();
            prop_assert!(report.sources <= 4 && report.lines <= 8 + 8 + 3, "{report:?}");
            while bench.relay.poll_closed().is_some() {}
        }
        // Observations stay; all else ends.
        bench.wait(4_000_000);
        let report = bench.relay.report();
        prop_assert!(report.lines <= 3, "{report:?}");
        for face in Face::BOTH {
            prop_assert_eq!(bench.relay.half(face).endpoint.exchanges(), 0);
        }
        prop_assert_eq!(bench.relay.poll_timeout(), None);
    }
}
