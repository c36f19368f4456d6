//! Responses that are rejected, or ignored, because RFC 7252 says so.

use coapace_control::{Draw, Instant};
use coapace_proto::{Config, Event, Kind, Message, Options, Request, Token};

use crate::common::{CONTENT, Client, GET, ms, reply_to};

/// A critical option that nobody knows.
const UNKNOWN: u16 = 65_001;

/// The peer of [`Client`].
const PEER: u32 = 9;

fn response(kind: Kind, message_id: u16, token: &[u8], options: &Options) -> Vec<u8> {
    let (token, tail) = (Token::new(token).unwrap(), options.tail(b"!").unwrap());
    let mut bytes = Vec::new();
    Message { code: CONTENT, token, tail: tail.as_bytes(), ..Message::empty(kind, message_id) }
        .write(&mut bytes);
    bytes
}

fn unknown() -> Options {
    Options::default().with(UNKNOWN, b"?")
}

/// Begins to observe with the token `a`.
fn observe(client: &mut Client, now: Instant) {
    let token = Token::new(b"a").unwrap();
    let request = Request { confirmable: true, code: GET, token, tail: b"\x60", repeatable: true };
    client.endpoint.observe(now, PEER, request).unwrap();
    let request = client.sent(now).unwrap();
    let answer = reply_to(&request, Kind::Acknowledgement, CONTENT, b"\x61\x01");
    assert!(matches!(client.receive(now, &answer), Some(Event::Response { .. })));
}

#[test]
fn a_response_with_an_unknown_critical_option_is_rejected_and_ends_its_request_at_once() {
    for (kind, reply) in [
        (Kind::Confirmable, Some(vec![0x70, 0, 0xab, 0xcd])),
        (Kind::NonConfirmable, None),
        (Kind::Acknowledgement, None),
    ] {
        let mut client = Client::default();
        let exchange = client.get(ms(0), "a");
        let request = client.sent(ms(0)).unwrap();
        let id = if kind == Kind::Acknowledgement { [request[2], request[3]] } else { [0xab, 0xcd] };
        let bytes = response(kind, u16::from_be_bytes(id), b"a", &unknown());
        let event = client.receive(ms(50), &bytes);
        let Some(Event::Rejected { exchange: rejected, option }) = event else {
            panic!("{kind:?} {event:?}")
        };
        assert_eq!((rejected, option), (exchange, UNKNOWN));
        assert_eq!(client.sent(ms(50)), reply, "{kind:?}");
        assert_eq!((client.endpoint.exchanges(), client.endpoint.poll_timeout()), (0, None));
        // RFC 7252 §4.5: a copy gets the same reply.
        assert!(client.receive(ms(60), &bytes).is_none());
        assert_eq!(client.sent(ms(60)), reply, "{kind:?}");
    }
}

#[test]
fn elective_options_and_options_known_to_the_application_are_not_rejected() {
    let own: &[u16] = &[UNKNOWN];
    for (recognised, options) in [
        (Config::default().recognised, Options::default().with(UNKNOWN - 1, b"?")),
        (Config::default().recognised, Options::default().with_uint(coap_numbers::option::BLOCK2, 8)),
        (Some(own), unknown()),
        (None, unknown()),
    ] {
        let mut client = Client::with(Config { recognised, ..Config::default() });
        client.get(ms(0), "a");
        client.sent(ms(0)).unwrap();
        let bytes = response(Kind::Confirmable, 7, b"a", &options);
        let event = client.receive(ms(50), &bytes);
        assert!(matches!(event, Some(Event::Response { .. })), "{event:?}");
        assert_eq!(client.sent(ms(50)), Some(vec![0x60, 0, 0, 7]));
    }
}

#[test]
fn a_notification_with_an_unknown_critical_option_is_reset_and_ends_the_observation() {
    for kind in [Kind::Confirmable, Kind::NonConfirmable] {
        let mut client = Client::default();
        observe(&mut client, ms(0));
        let bytes = response(kind, 7, b"a", &unknown().observe(2));
        let event = client.receive(ms(10), &bytes);
        assert!(matches!(event, Some(Event::Rejected { option: UNKNOWN, .. })), "{event:?}");
        assert_eq!(client.sent(ms(10)), Some(vec![0x70, 0, 0, 7]), "RFC 7641 §3.6");
        assert!(client.receive(ms(20), &response(kind, 8, b"a", &Options::default().observe(3))).is_none());
        assert_eq!(client.sent(ms(20)), Some(vec![0x70, 0, 0, 8]), "nobody listens any more");
    }
}

#[test]
fn a_registration_whose_response_is_rejected_starts_no_observation() {
    for kind in [Kind::Acknowledgement, Kind::Confirmable] {
        let mut client = Client::default();
        let token = Token::new(b"a").unwrap();
        let request = Request { confirmable: true, code: GET, token, tail: b"\x60", repeatable: true };
        client.endpoint.observe(ms(0), PEER, request).unwrap();
        let request = client.sent(ms(0)).unwrap();
        let id = u16::from_be_bytes([request[2], request[3]]);
        let registered = response(kind, id, b"a", &unknown().observe(1));
        let event = client.receive(ms(10), &registered);
        assert!(matches!(event, Some(Event::Rejected { option: UNKNOWN, .. })), "{event:?}");
        assert_eq!(client.sent(ms(10)).is_some(), kind == Kind::Confirmable);
        let notification = response(Kind::NonConfirmable, !id, b"a", &Options::default().observe(2));
        assert!(client.receive(ms(20), &notification).is_none());
        assert_eq!(client.sent(ms(20)).unwrap()[0], 0x70, "nobody listens");
    }
}

#[test]
fn rejected_responses_do_not_displace_requests_from_deduplication() {
    let mut server = Client::with(Config { max_deduplicated: 2, ..Config::default() });
    let post = [0x40, 2, 0, 1];
    assert!(matches!(server.receive(ms(0), &post), Some(Event::Request { .. })));
    for from in 100..200 {
        let unasked = response(Kind::NonConfirmable, 7, b"a", &Options::default());
        assert!(server.endpoint.handle_datagram(ms(10), from, &unasked).is_none());
    }
    assert!(server.receive(ms(20), &post).is_none(), "a copy");
}

#[test]
fn the_answer_of_one_member_does_not_end_a_request_to_a_group() {
    let mut client = Client::default();
    let token = Token::new(b"g").unwrap();
    let request = Request { confirmable: false, code: GET, token, tail: b"", repeatable: false };
    client.endpoint.request_group(ms(0), 99, request).unwrap();
    client.endpoint.poll_transmit(ms(0), |_| Draw::ZERO, &mut Vec::new()).unwrap();
    assert!(client.receive(ms(10), &response(Kind::NonConfirmable, 7, b"g", &unknown())).is_none());
    assert!(client.sent(ms(10)).is_none());
    let other = response(Kind::NonConfirmable, 8, b"g", &Options::default());
    let event = client.endpoint.handle_datagram(ms(20), 8, &other);
    assert!(matches!(event, Some(Event::Notification { .. })), "{event:?}");
}

#[test]
fn an_acknowledgement_is_not_taken_as_the_answer_to_a_non_confirmable_request() {
    let mut client = Client::default();
    client.ask(ms(0), "a", false);
    let request = client.sent(ms(0)).unwrap();
    let id = u16::from_be_bytes([request[2], request[3]]);
    assert!(client.receive(ms(10), &[0x60, 0, request[2], request[3]]).is_none());
    let piggybacked = response(Kind::Acknowledgement, id, b"a", &Options::default());
    assert!(client.receive(ms(20), &piggybacked).is_none());
    assert_eq!(client.endpoint.counters().late_replies, 2);
    let own = response(Kind::NonConfirmable, 7, b"a", &Options::default());
    assert!(matches!(client.receive(ms(30), &own), Some(Event::Response { .. })));
    client.ask(ms(40), "b", false);
    let request = client.sent(ms(40)).unwrap();
    let reset = [0x70, 0, request[2], request[3]];
    assert!(matches!(client.receive(ms(50), &reset), Some(Event::Failed { .. })), "a Reset may answer it");
}

#[test]
fn a_copy_of_a_rejected_response_is_rejected_even_if_its_token_is_reused() {
    for (kind, reply) in [(Kind::Confirmable, Some(vec![0x70, 0, 0, 7])), (Kind::NonConfirmable, None)] {
        let mut client = Client::default();
        let unasked = response(kind, 7, b"", &Options::default());
        assert!(client.receive(ms(0), &unasked).is_none());
        assert_eq!(client.sent(ms(0)), reply);
        client.get(ms(10), "");
        client.sent(ms(10)).unwrap();
        assert!(client.receive(ms(20), &unasked).is_none(), "RFC 7252 §4.5: a duplicate");
        assert_eq!(client.sent(ms(20)), reply);
        assert_eq!((client.endpoint.counters().duplicates, client.endpoint.counters().late_replies), (1, 2));
        let another = response(kind, 8, b"", &Options::default());
        assert!(matches!(client.receive(ms(30), &another), Some(Event::Response { .. })));
    }
}

#[test]
fn a_message_of_class_3_is_rejected_if_confirmable_and_matches_no_request() {
    let mut client = Client::default();
    client.get(ms(0), "a");
    let request = client.sent(ms(0)).unwrap();
    assert!(client.receive(ms(10), &[0x41, 0x61, 0, 7, b'a']).is_none());
    assert_eq!(client.sent(ms(10)), Some(vec![0x70, 0, 0, 7]));
    for first in [0x51, 0x61, 0x71] {
        assert!(client.receive(ms(20), &[first, 0x61, request[2], request[3], b'a']).is_none());
        assert_eq!(client.sent(ms(20)), None);
    }
    assert_eq!((client.endpoint.counters().malformed, client.endpoint.exchanges()), (4, 1));
}
