//! Tokens of more than 8 bytes (RFC 8974), which a server gives back.

use crate::end::{CONTENT, End, GET, kind, ms, plain, secs};
use coapace_proto::{Config, Event, Kind, Message, Responder, Token};

/// Returns a request with a token of `len` bytes that begins with `first`.
fn request(len: usize, first: u8, id: u16) -> Vec<u8> {
    let (tkl, extension) = match len {
        0..=12 => (len, vec![]),
        13..269 => (13, vec![(len - 13) as u8]),
        _ => (14, ((len - 269) as u16).to_be_bytes().to_vec()),
    };
    let [high, low] = id.to_be_bytes();
    [&[0x40 | tkl as u8, GET.0, high, low][..], &extension, &token(len, first), b"\x60"].concat()
}

fn token(len: usize, first: u8) -> Vec<u8> {
    (0..len).map(|at| first.wrapping_add(at as u8)).collect()
}

/// Returns the token in a message, whatever its length.
fn token_of(bytes: &[u8]) -> Vec<u8> {
    let message = Message::parse(bytes).unwrap();
    if message.token.is_extended() { message.extended_token.to_vec() } else { message.token.to_vec() }
}

fn server(max_token: u16) -> End {
    End::new(Config { max_token, ..plain() })
}

fn receive(server: &mut End, at: u64, from: u32, bytes: &[u8]) -> Option<Responder<u32>> {
    match server.0.handle_datagram(ms(at), from, bytes) {
        Some(Event::Request { responder, .. }) => Some(responder),
        None => None,
        event => panic!("{event:?}"),
    }
}

#[test]
fn a_message_with_a_token_of_any_length_is_written_back_unchanged() {
    for len in [0, 1, 8, 9, 12, 13, 14, 268, 269, 270, 524, 65_000] {
        let bytes = request(len, 7, 1);
        let message = Message::parse(&bytes).unwrap();
        assert_eq!((message.token.is_extended(), message.tail), (len > 8, &b"\x60"[..]));
        let mut written = Vec::new();
        message.write(&mut written);
        assert_eq!(written, bytes, "{len}");
        assert!(Message::parse(&bytes[..bytes.len() - 2]).is_err() || len == 0, "cut");
    }
    assert!(Message::parse(&[0x4f, 1, 0, 0, 0, 0, 0]).is_err(), "15 is reserved");
    assert!(Message::parse(&[0x4d, 1, 0, 0]).is_err() && Message::parse(&[0x4e, 1, 0, 0, 0]).is_err());
}

#[test]
fn the_header_and_token_of_a_truncated_message_can_be_read() {
    for len in [0, 1, 8, 9, 12, 13, 268, 269, 1_000] {
        let bytes = [&request(len, 7, 1)[..], &[0xb5]].concat();
        let head = Message::head(&bytes).unwrap();
        assert_eq!(head, &bytes[..bytes.len() - 2], "{len}");
        let message = Message::parse(head).unwrap();
        assert_eq!((token_of(head), message.code, message.tail), (token(len, 7), GET, &b""[..]));
        assert!(Message::head(&bytes[..bytes.len() - 3]).is_none(), "{len}: a part of the head");
    }
    assert!(Message::head(&[0x4f, 1, 0, 0, 0, 0]).is_none() && Message::head(&[0x40, 1, 0]).is_none());
}

#[test]
fn a_token_longer_than_the_accepted_length_is_rejected() {
    for (max_token, len, taken) in [(8, 8, true), (8, 9, false), (40, 40, true), (40, 41, false)] {
        let mut server = server(max_token);
        assert_eq!(receive(&mut server, 0, 1, &request(len, 7, 1)).is_some(), taken);
        let rejected = server.sent(ms(0));
        assert_eq!(rejected.len(), usize::from(!taken));
        assert!(rejected.iter().all(|(_, bytes)| kind(bytes) == Kind::Reset));
    }
}

#[test]
fn piggybacked_repeated_and_separate_responses_carry_the_extended_token() {
    let mut server = server(300);
    let get = request(300, 7, 1);
    let responder = receive(&mut server, 0, 1, &get).unwrap();
    server.0.respond(ms(0), responder, CONTENT, b"\xffx").unwrap();
    assert!(receive(&mut server, 0, 1, &get).is_none(), "a copy");
    let sent = server.sent(ms(0));
    assert_eq!((sent.len(), &sent[0]), (2, &sent[1]));
    assert_eq!(token_of(&sent[0].1), token(300, 7));

    let responder = receive(&mut server, 1, 1, &request(20, 9, 2)).unwrap();
    let responder = server.0.acknowledge(ms(1), responder);
    server.0.respond(ms(1), responder, CONTENT, b"\xffx").unwrap();
    let sent = server.sent(ms(1));
    assert_eq!((kind(&sent[1].1), token_of(&sent[1].1)), (Kind::Confirmable, token(20, 9)));
}

#[test]
fn an_observer_with_an_extended_token_is_kept_whatever_others_register() {
    let mut server = End::new(Config { max_token: 32, max_observers: 2, max_peers: 2, ..plain() });
    let responder = receive(&mut server, 0, 1, &request(32, 7, 1)).unwrap();
    server.0.register(ms(0), &responder, 5).unwrap();
    for number in 0..100 {
        let get = request(32, 100 + number, u16::from(number) + 2);
        let responder = receive(&mut server, 1, 2, &get).unwrap();
        server.0.respond(ms(1), responder, CONTENT, &[]).unwrap();
        assert_eq!(token_of(&server.sent(ms(1))[0].1), token(32, 100 + number));
    }
    server.notify(5, true, "v1");
    assert_eq!(token_of(&server.sent(ms(1))[0].1), token(32, 7));
    assert!(
        server.0.deregister(secs(1), 1, responder_token(&request(32, 7, 1))),
        "the digest is of the token"
    );
}

fn responder_token(bytes: &[u8]) -> Token {
    Message::parse(bytes).unwrap().token
}

#[test]
fn an_answer_is_not_sent_once_its_extended_token_was_dropped() {
    let mut server = End::new(Config { max_token: 32, max_observers: 0, max_peers: 2, ..plain() });
    let first = receive(&mut server, 0, 1, &request(32, 7, 1)).unwrap();
    for number in 0..2 {
        receive(&mut server, 0, 2, &request(32, 100 + number, u16::from(number) + 2)).unwrap();
    }
    assert!(server.0.respond(ms(0), first, CONTENT, &[]).is_err());
    assert!(server.sent(ms(0)).is_empty());
}

#[test]
fn a_response_with_an_extended_token_matches_no_request_of_ours() {
    let mut client = server(64);
    let get = coapace_proto::Request {
        confirmable: true,
        code: GET,
        token: Token::EMPTY,
        tail: &[],
        repeatable: false,
    };
    client.0.request(ms(0), 9, get).unwrap();
    let sent = client.sent(ms(0)).remove(0).1;
    let mut forged = request(20, 1, u16::from_be_bytes([sent[2], sent[3]]));
    (forged[0], forged[1]) = (0x60 | forged[0] & 15, CONTENT.0);
    assert!(client.0.handle_datagram(ms(1), 9, &forged).is_none());
    assert_eq!(client.0.exchanges(), 1);
}
