//! Markings on the wire, and the samples that the mechanism gets by them.

mod rexmit_cnt;

use crate::common::{CONTENT, Client, GET, ms, reply_to, secs};
use coapace_control::{Duration, Instant};
use coapace_proto::{Code, Config, Event, Kind, Message, REXMIT_CNT, Request, SendError, Tail, Token};

const PEER: u32 = 9;

fn running(mechanism: &str) -> Client {
    Client::running(mechanism, Config::default())
}

/// Returns a GET of `x` with the token `t` and the Message ID of `sent`, with `token` and `option` added.
fn get_like(sent: &[u8], token: &[u8], option: &[u8]) -> Vec<u8> {
    [&[0x41 + token.len() as u8, GET.0, sent[2], sent[3], b't'], token, b"\xb1x", option].concat()
}

/// Lets the timer fire. Returns the moment, and the retransmission.
fn retransmitted(client: &mut Client) -> (Instant, Vec<u8>) {
    let at = client.endpoint.poll_timeout().unwrap();
    client.endpoint.handle_timeout(at);
    (at, client.sent(at).unwrap())
}

/// Sends a GET and lets its timer fire `times` times. Returns when each transmission departed, and its bytes.
fn transmissions(client: &mut Client, times: usize) -> Vec<(Instant, Vec<u8>)> {
    client.get(ms(0), "t");
    let mut sent = vec![(ms(0), client.sent(ms(0)).unwrap())];
    sent.extend((0..times).map(|_| retransmitted(client)));
    sent
}

/// Answers `request` on its acknowledgement with `tail`. Returns the token that the application gets.
fn answer(client: &mut Client, now: Instant, request: &[u8], tail: &[u8]) -> Token {
    let response = reply_to(request, Kind::Acknowledgement, CONTENT, tail);
    let Some(Event::Response { message, .. }) = client.receive(now, &response) else { panic!("no response") };
    message.token
}

fn token(bytes: &[u8]) -> Token {
    Token::new(bytes).unwrap()
}

fn rexmit_cnt(value: &[u8]) -> Vec<u8> {
    Tail::default().option(REXMIT_CNT, value).into_bytes()
}

/// Returns the Rexmit-Cnt option of a datagram.
fn count_of(datagram: &[u8]) -> Option<u8> {
    Message::parse(datagram).unwrap().rexmit_cnt
}

fn srtt(client: &Client) -> Option<Duration> {
    client.endpoint.gauges(PEER).unwrap().srtt
}

/// Lets the peer show that it answers each copy of a request with the marking of that copy. The mechanism
/// learns nothing of the path from that.
fn answers_each(client: &mut Client) {
    let sent = transmissions(client, 1);
    let now = sent[1].0 + Duration::from_millis(100);
    let tails = [0, 1].map(|ordinal| count_of(&sent[ordinal].1).map_or(vec![], |count| rexmit_cnt(&[count])));
    answer(client, now, &sent[0].1, &tails[0]);
    assert!(client.receive(now, &reply_to(&sent[1].1, Kind::Acknowledgement, CONTENT, &tails[1])).is_none());
    assert_eq!(srtt(client), None);
}

#[test]
fn a_marked_retransmission_differs_only_in_the_ordinal_after_its_token() {
    let sent = transmissions(&mut running("fasor-token"), 3);
    let first = &sent[0].1;
    assert_eq!(*first, get_like(first, b"", b""), "the first transmission is as the application wants it");
    for (ordinal, (_, bytes)) in sent.iter().enumerate().skip(1) {
        assert_eq!(*bytes, get_like(first, &[ordinal as u8], b""));
    }
}

#[test]
fn the_marking_of_libcoap_2019_also_has_an_ordinal_in_the_first_transmission() {
    let sent = transmissions(&mut running("fasor-token:preset=libcoap-2019"), 3);
    for (ordinal, (_, bytes)) in sent.iter().enumerate() {
        assert_eq!(*bytes, get_like(&sent[0].1, &[ordinal as u8], b""));
    }
}

#[test]
fn an_answer_to_a_marked_transmission_is_a_sample_of_that_transmission() {
    for mechanism in ["fasor-token", "fasor-token:preset=libcoap-2019"] {
        for ordinal in 0..=2 {
            let mut client = running(mechanism);
            answers_each(&mut client);
            let sent = transmissions(&mut client, 2);
            let now = sent[2].0 + Duration::from_millis(100);
            let received = answer(&mut client, now, &sent[ordinal].1, b"");
            assert_eq!(received, token(b"t"), "the application gets its own token");
            assert_eq!(
                srtt(&client),
                Some(now.since(sent[ordinal].0)),
                "{mechanism}, transmission {ordinal}"
            );
        }
    }
}

#[test]
fn an_answer_that_may_repeat_the_first_answer_is_not_a_sample() {
    for (mechanism, option) in [("fasor-token", None), ("fasor-option", Some(255))] {
        // The first answer was lost. A server that remembers it repeats it for the second copy, with the same
        // ordinal.
        let mut client = running(mechanism);
        let sent = transmissions(&mut client, 2);
        let now = sent[2].0 + Duration::from_millis(1);
        let tail = option.map_or(vec![], |count| rexmit_cnt(&[count]));
        answer(&mut client, now, &sent[0].1, &tail);
        assert_eq!(srtt(&client), None, "{mechanism}: it took {:?}, or a millisecond", now.since(ms(0)));

        // The copy that was still on its way brings an equal answer. The server has not shown anything.
        let again = reply_to(&sent[0].1, Kind::Acknowledgement, CONTENT, &tail);
        assert!(client.receive(now, &again).is_none());
        let sent = transmissions(&mut client, 1);
        answer(&mut client, sent[1].0 + Duration::from_millis(1), &sent[0].1, &rexmit_cnt(&[0]));
        assert_eq!(srtt(&client), None, "{mechanism}");
    }
}

#[test]
fn an_answer_before_the_timeout_of_its_marked_transmission_is_a_sample() {
    let mut client = running("fasor-token");
    let sent = transmissions(&mut client, 1);
    let now = sent[1].0 + Duration::from_millis(100);
    answer(&mut client, now, &sent[1].1, b"");
    assert_eq!(srtt(&client), Some(Duration::from_millis(100)));
}

#[test]
fn without_a_marking_an_answer_after_a_retransmission_is_not_a_sample() {
    let mut client = running("fasor");
    let sent = transmissions(&mut client, 1);
    assert_eq!(sent[0].1, sent[1].1);
    answer(&mut client, sent[1].0 + Duration::from_millis(100), &sent[1].1, b"");
    assert_eq!(srtt(&client), None);
}

#[test]
fn an_answer_marked_with_a_transmission_not_yet_sent_is_ignored() {
    let mut client = running("fasor-token");
    let mut sent = transmissions(&mut client, 1);
    let (at, mut forged) = sent.remove(1);
    forged[5] = 2;
    let forged = reply_to(&forged, Kind::Acknowledgement, CONTENT, b"");
    assert!(client.receive(at + Duration::from_millis(100), &forged).is_none());
    assert_eq!((client.endpoint.exchanges(), client.endpoint.counters().late_replies), (1, 1));
}

#[test]
fn if_every_transmission_is_marked_an_answer_with_the_unmarked_token_is_ignored() {
    let mut client = running("fasor-token:preset=libcoap-2019");
    let sent = transmissions(&mut client, 0);
    let bare = get_like(&sent[0].1, b"", b"");
    assert!(client.receive(ms(100), &reply_to(&bare, Kind::Acknowledgement, CONTENT, b"")).is_none());
    assert_eq!((client.endpoint.exchanges(), client.endpoint.counters().late_replies), (1, 1));
}

#[test]
fn a_separate_response_may_carry_the_token_of_any_transmission() {
    for ordinal in 0..=1 {
        let mut client = running("fasor-token");
        let sent = transmissions(&mut client, 1);
        let now = sent[1].0 + Duration::from_millis(100);
        let separate = reply_to(&sent[ordinal].1, Kind::NonConfirmable, CONTENT, b"");
        let Some(Event::Response { message, .. }) = client.receive(now, &separate) else { panic!() };
        assert_eq!(message.token, token(b"t"));
        assert_eq!(srtt(&client), None, "the server's time is in it");
    }
}

#[test]
fn a_token_of_eight_bytes_is_refused_if_a_marking_needs_a_byte() {
    for mechanism in ["fasor-token", "fasor-token:preset=libcoap-2019"] {
        let mut client = running(mechanism);
        let request =
            Request { confirmable: true, code: GET, token: token(b"12345678"), tail: b"", repeatable: false };
        assert_eq!(client.endpoint.request(ms(0), PEER, request), Err(SendError::TokenTooLong));
        assert_eq!((client.endpoint.exchanges(), client.endpoint.peers()), (0, 0));
        assert_eq!((client.sent(ms(0)), client.endpoint.poll_timeout()), (None, None));

        let longest = Request { token: token(b"1234567"), ..request };
        assert!(client.endpoint.request(ms(0), PEER, longest).is_ok());
    }
}

#[test]
fn a_request_without_a_marking_may_have_a_token_of_eight_bytes() {
    let mut client = running("fasor-token:preset=libcoap-2019");
    let request =
        Request { confirmable: false, code: GET, token: token(b"12345678"), tail: b"", repeatable: false };
    client.endpoint.request(ms(0), PEER, request).unwrap();
    assert_eq!(
        client.sent(ms(0)).unwrap()[4..],
        *b"12345678",
        "a non-confirmable request is not retransmitted"
    );

    let mut server = running("fasor-token");
    let get = [b"\x48\x01\x12\x34".as_slice(), b"12345678"].concat();
    let Some(Event::Request { responder, .. }) = server.receive(ms(0), &get) else { panic!() };
    let responder = server.endpoint.acknowledge(ms(0), responder);
    server.sent(ms(0)).unwrap();
    assert!(server.endpoint.respond(secs(5), responder, CONTENT, b"").is_ok());
}

#[test]
fn retransmissions_of_a_separate_response_are_not_marked() {
    for mechanism in
        ["fasor-token", "fasor-token:preset=libcoap-2019", "fasor-option", "fasor:marking=fresh-message-id"]
    {
        let mut server = running(mechanism);
        let get = [&[0x41, GET.0, 0x12, 0x34, b't'][..], &rexmit_cnt(&[255])].concat();
        let Some(Event::Request { responder, .. }) = server.receive(ms(0), &get) else { panic!() };
        let responder = server.endpoint.acknowledge(ms(0), responder);
        assert_eq!(server.sent(ms(0)).unwrap(), [0x60, 0, 0x12, 0x34], "an empty message carries nothing");
        server.endpoint.respond(secs(5), responder, CONTENT, b"\xff1").unwrap();
        let first = server.sent(secs(5)).unwrap();
        assert_eq!(first, [0x41, CONTENT.0, first[2], first[3], b't', 0xff, b'1'], "{mechanism}");
        for _ in 0..3 {
            assert_eq!(retransmitted(&mut server).1, first, "{mechanism}");
        }
    }
}

#[test]
fn retransmissions_of_a_ping_are_not_marked() {
    for mechanism in
        ["fasor-token", "fasor-token:preset=libcoap-2019", "fasor-option", "fasor:marking=fresh-message-id"]
    {
        let mut client = running(mechanism);
        let exchange = client.endpoint.ping(ms(0), PEER).unwrap();
        let first = client.sent(ms(0)).unwrap();
        assert_eq!(first, [0x40, 0, first[2], first[3]], "{mechanism}: RFC 7252 §4.1");
        assert_eq!(retransmitted(&mut client).1, first, "{mechanism}");
        let reset = [0x70, 0, first[2], first[3]];
        let pong = client.receive(secs(5), &reset);
        assert!(matches!(pong, Some(Event::Pong { exchange: e }) if e == exchange));
    }
}

#[test]
fn a_marked_duplicate_is_answered_with_its_own_token() {
    let mut client = running("fasor-token");
    let mut server = Client::default();
    let sent = transmissions(&mut client, 1);
    let Some(Event::Request { responder, .. }) = server.receive(ms(10), &sent[0].1) else { panic!() };
    server.endpoint.respond(ms(10), responder, CONTENT, b"\xff!").unwrap();
    let lost = server.sent(ms(10)).unwrap();
    assert_eq!(lost[4..], *b"t\xff!");

    let (at, again) = &sent[1];
    let now = *at + Duration::from_millis(20);
    assert!(server.receive(now, again).is_none(), "delivered once");
    let replayed = server.sent(now).unwrap();
    assert_eq!(replayed[4..], *b"t\x01\xff!");

    let now = now + Duration::from_millis(20);
    let Some(Event::Response { message, .. }) = client.receive(now, &replayed) else { panic!() };
    assert_eq!((message.token, message.payload()), (token(b"t"), &b"!"[..]));
    assert_eq!(srtt(&client), Some(Duration::from_millis(40)));
}

#[test]
fn with_fresh_message_ids_an_acknowledgement_identifies_its_transmission() {
    for ordinal in 0..=2 {
        for empty in [false, true] {
            let mut client = running("fasor:marking=fresh-message-id");
            let sent = transmissions(&mut client, 2);
            for (n, (_, bytes)) in sent.iter().enumerate() {
                let id = |bytes: &[u8]| u16::from_be_bytes([bytes[2], bytes[3]]);
                assert_eq!(id(bytes), id(&sent[0].1).wrapping_add(n as u16));
                assert_eq!(*bytes, get_like(bytes, b"", b""), "only the Message ID differs");
            }
            let now = sent[2].0 + Duration::from_millis(100);
            let request = &sent[ordinal].1;
            if empty {
                let empty = [0x60, 0, request[2], request[3]];
                let ack = client.receive(now, &empty);
                assert!(matches!(ack, Some(Event::Acknowledged { .. })));
            } else {
                answer(&mut client, now, request, b"");
            }
            assert_eq!(srtt(&client), Some(now.since(sent[ordinal].0)), "transmission {ordinal}");
        }
    }
}

#[test]
fn a_non_idempotent_request_keeps_its_message_id_in_retransmissions() {
    // A POST, a PATCH, and a POST that the application declares repeatable.
    for (code, repeatable, fresh) in [(2, false, false), (6, false, false), (2, true, true), (3, false, true)]
    {
        let mut client = running("cocoa-i");
        let request =
            Request { confirmable: true, code: Code(code), token: token(b"t"), tail: b"", repeatable };
        client.endpoint.request(ms(0), 9, request).unwrap();
        let (first, (_, again)) = (client.sent(ms(0)).unwrap(), retransmitted(&mut client));
        assert_eq!(first[2..4] != again[2..4], fresh, "{code}");
    }
}

#[test]
fn an_idempotent_method_with_a_condition_keeps_its_message_id_in_retransmissions() {
    // Requests with If-Match, If-None-Match (RFC 7252 §5.10.8) or Block1 (RFC 7959 §2.5) are not repeatable.
    // One with Uri-Path is.
    for (option, value, fresh) in
        [(1, &b"e"[..], false), (5, b"", false), (27, b"\x08", false), (11, b"x", true)]
    {
        let mut client = running("cocoa-i");
        let tail = Tail::default().option(option, value).payload(b"21.5").into_bytes();
        let request =
            Request { confirmable: true, code: Code(3), token: token(b"t"), tail: &tail, repeatable: false };
        client.endpoint.request(ms(0), PEER, request).unwrap();
        let (first, (_, again)) = (client.sent(ms(0)).unwrap(), retransmitted(&mut client));
        assert_eq!(first[2..4] != again[2..4], fresh, "a PUT with option {option}");
    }
}

#[test]
fn a_reset_of_any_fresh_message_id_ends_the_exchange() {
    for ordinal in 0..=1 {
        let mut client = running("fasor:marking=fresh-message-id");
        let sent = transmissions(&mut client, 1);
        let request = &sent[ordinal].1;
        let reset = [0x70, 0, request[2], request[3]];
        let event = client.receive(secs(9), &reset);
        assert!(matches!(event, Some(Event::Failed { .. })));
        assert_eq!(client.endpoint.exchanges(), 0);
    }
}
