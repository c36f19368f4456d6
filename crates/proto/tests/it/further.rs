//! Requests with several responses or none: observations (RFC 7641 §3), groups (RFC 7252 §8), No-Response
//! (RFC 7967).

use crate::end::{CONTENT, End, GET, NOT_FOUND, bytes, kind, ms, plain, secs, token};
use coapace_control::{Draw, Duration};
use coapace_proto::{
    Code, Config, Event, ExchangeId, Kind, Message, Options, Request, SendError, Token, group,
};

/// Returns a client that has sent a request to observe `x` to peer 9.
fn observing(config: Config) -> (End, ExchangeId, Vec<u8>) {
    let mut client = End::new(config);
    let get =
        Request { confirmable: true, code: GET, token: token("t"), tail: b"\x60\x51x", repeatable: false };
    let exchange = client.0.observe(ms(0), 9, get).unwrap();
    let request = client.sent(ms(0)).remove(0).1;
    (client, exchange, request)
}

fn notification(kind: Kind, id: u16, code: Code, tail: &[u8]) -> Vec<u8> {
    bytes(&Message { code, token: token("t"), tail, ..Message::empty(kind, id) })
}

/// Returns the first response, with these options and this payload.
fn first_response(request: &[u8], tail: &[u8]) -> Vec<u8> {
    let id = Message::parse(request).unwrap().message_id;
    notification(Kind::Acknowledgement, id, CONTENT, tail)
}

#[test]
fn a_client_gets_notifications_until_one_has_no_observe_option() {
    let (mut client, exchange, request) = observing(plain());
    let first = first_response(&request, b"\x61\x01");
    assert!(matches!(client.0.handle_datagram(ms(9), 9, &first), Some(Event::Response { .. })));
    for (id, kind, tail) in [
        (1, Kind::NonConfirmable, &b"\x61\x02"[..]),
        (2, Kind::Confirmable, b"\x61\x03"),
        (3, Kind::Confirmable, b""),
    ] {
        let bytes = notification(kind, id, CONTENT, tail);
        let Some(Event::Notification { exchange: of, message }) = client.0.handle_datagram(ms(9), 9, &bytes)
        else {
            panic!("no notification")
        };
        assert_eq!((of, message.observe().is_some()), (exchange, !tail.is_empty()));
        let acknowledged = client.sent(ms(9)).len();
        assert_eq!(acknowledged, usize::from(kind == Kind::Confirmable));
        assert!(client.0.handle_datagram(ms(9), 9, &bytes).is_none(), "a copy is none");
        assert_eq!(client.sent(ms(9)).len(), acknowledged, "but is acknowledged again");
    }
    let late = notification(Kind::NonConfirmable, 4, CONTENT, b"\x61\x04");
    assert!(client.0.handle_datagram(ms(9), 9, &late).is_none(), "the observation is over");
}

#[test]
fn notifications_of_a_cancelled_observation_are_rejected() {
    let (mut client, exchange, request) = observing(plain());
    client.0.handle_datagram(ms(9), 9, &first_response(&request, b"\x61\x01"));
    client.0.cancel(ms(9), exchange);
    for (id, kind_of) in [(1, Kind::NonConfirmable), (2, Kind::Confirmable)] {
        let bytes = notification(kind_of, id, CONTENT, b"\x61\x02");
        assert!(client.0.handle_datagram(ms(9), 9, &bytes).is_none());
        assert_eq!(kind(&client.sent(ms(9))[0].1), Kind::Reset);
    }
    let plain = notification(Kind::NonConfirmable, 3, CONTENT, b"");
    client.0.handle_datagram(ms(9), 9, &plain);
    assert!(client.sent(ms(9)).is_empty(), "a response that is not a notification is ignored");
}

#[test]
fn a_refused_or_failed_registration_is_forgotten() {
    let config = Config { max_listeners: 1, ..plain() };
    let get = Request { confirmable: true, code: GET, token: token("u"), tail: b"\x60", repeatable: false };
    let (mut client, _, request) = observing(config);
    assert_eq!(client.0.observe(ms(0), 9, get), Err(SendError::ListenersFull));
    client.0.handle_datagram(ms(9), 9, &first_response(&request, b""));
    assert!(client.0.observe(ms(9), 9, get).is_ok());
    client.play(ms(9), secs(1000));
    assert!(client.0.observe(secs(1000), 9, get).is_ok(), "the same token");
    while client.0.poll_event().is_some() {}
    let other = Request { token: token("v"), ..get };
    assert_eq!(client.0.observe(secs(1000), 9, other), Err(SendError::ListenersFull));
}

#[test]
fn a_request_with_no_response_ends_when_sent_or_acknowledged() {
    let mut client = End::new(plain());
    let tail = Options::default().no_response(26).tail(b"").unwrap();
    let post = Request {
        confirmable: false,
        code: Code(2),
        token: Token::EMPTY,
        tail: tail.as_bytes(),
        repeatable: false,
    };
    client.0.tell(ms(0), 9, post).unwrap();
    assert_eq!((client.sent(ms(0)).len(), client.0.exchanges(), client.0.poll_timeout()), (1, 0, None));
    let exchange = client.0.tell(secs(9), 9, Request { confirmable: true, ..post }).unwrap();
    let sent = client.sent(secs(9)).remove(0).1;
    let id = Message::parse(&sent).unwrap().message_id;
    let ack = bytes(&Message::empty(Kind::Acknowledgement, id));
    let event = client.0.handle_datagram(secs(9), 9, &ack);
    assert!(matches!(event, Some(Event::Acknowledged { exchange: of }) if of == exchange));
    assert_eq!(client.0.exchanges(), 0);
}

#[test]
fn a_request_to_a_group_is_never_confirmable_and_takes_responses_from_anywhere_until_it_is_cancelled() {
    let mut client = End::new(Config { confirmable_every: 1, ..plain() });
    let get = Request { confirmable: true, code: GET, token: token("t"), tail: b"", repeatable: false };
    let exchange = client.0.request_group(ms(0), 255, get).unwrap();
    let sent = client.sent(ms(0));
    assert_eq!((sent[0].0, kind(&sent[0].1), client.0.exchanges()), (255, Kind::NonConfirmable, 0));
    for member in [1, 2] {
        let response = notification(Kind::NonConfirmable, 7, CONTENT, b"\xffhere");
        let event = client.0.handle_datagram(ms(9), member, &response);
        assert!(matches!(event, Some(Event::Notification { exchange: of, .. }) if of == exchange));
        assert!(client.0.handle_datagram(ms(9), member, &response).is_none(), "a copy");
    }
    client.0.cancel(ms(10), exchange);
    let response = notification(Kind::NonConfirmable, 8, CONTENT, b"\xfflate");
    assert!(client.0.handle_datagram(ms(10), 3, &response).is_none());
}

#[test]
fn a_member_of_a_group_accepts_only_non_confirmable_requests_and_sends_no_reset() {
    let mut server = End::new(plain());
    let request = |kind, id| notification(kind, id, GET, b"");
    for deaf in [request(Kind::Confirmable, 1), request(Kind::Reset, 2), vec![0x49, 1, 0, 0], vec![]] {
        assert!(server.0.handle_group_datagram(ms(0), 1, &deaf).is_none());
        assert!(server.sent(ms(0)).is_empty());
    }
    let heard = request(Kind::NonConfirmable, 3);
    let Some(Event::Request { responder, .. }) = server.0.handle_group_datagram(ms(0), 1, &heard) else {
        panic!("no request")
    };
    assert!(responder.group);
    assert!(group::is_worth_sending(CONTENT, b"x"));
    assert!(!group::is_worth_sending(CONTENT, b"") && !group::is_worth_sending(NOT_FOUND, b"x"));
    let wait = group::leisure(group::DEFAULT_LEISURE, Draw::from_bits(1 << 31));
    assert_eq!(wait, Duration::from_millis(2500));
    server.0.respond(ms(0) + wait, responder, CONTENT, b"\xffx").unwrap();
    assert_eq!(kind(&server.sent(ms(2500))[0].1), Kind::NonConfirmable);
}

#[test]
fn each_group_has_its_own_rate_and_reports_requests_held_back() {
    let mut client = End::new(plain());
    let ask = |client: &mut End, group: u32, name: &str| {
        let get =
            Request { confirmable: true, code: GET, token: token(name), tail: b"\xb1x", repeatable: false };
        client.0.request_group(ms(0), group, get).unwrap()
    };
    let requests = [ask(&mut client, 254, "a"), ask(&mut client, 254, "b"), ask(&mut client, 255, "c")];
    let sent = client.sent(ms(0));
    assert_eq!(sent.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [254, 255]);
    assert!(sent.iter().all(|(_, bytes)| bytes[0] & 0x30 == 0x10), "no request to a group is confirmable");
    assert_eq!(requests.map(|request| client.0.is_kept_back(request)), [false, true, false]);
    let at = client.0.poll_timeout().expect("the rate allows the second in the end");
    client.0.handle_timeout(at);
    assert_eq!(client.sent(at).len(), 1);
    assert_eq!(requests.map(|request| client.0.is_kept_back(request)), [false; 3]);
}
