//! The endpoint between an application and a peer that is spoken to in bytes.

use crate::common::{CONTENT, Client, GET, ms, reply_to, secs};
use coapace_control::{DefaultTimer, Instant};
use coapace_proto::{Code, Config, Event, Failure, Kind, Message, Request, SendError, Setup, Token};

#[test]
fn a_request_gets_a_piggybacked_response() {
    let mut client = Client::default();
    let exchange = client.get(ms(0), "");
    let request = client.sent(ms(0)).unwrap();
    assert_eq!(request, [0x40, 1, request[2], request[3], 0xb1, b'x'], "four header bytes and Uri-Path: x");
    assert_eq!(client.endpoint.poll_timeout(), Some(secs(2)), "draw 0 is ACK_TIMEOUT");

    let response = reply_to(&request, Kind::Acknowledgement, CONTENT, b"\xffhello");
    let Some(Event::Response { exchange: answered, message }) = client.receive(ms(300), &response) else {
        panic!("no response")
    };
    assert_eq!((answered, message.payload()), (exchange, &b"hello"[..]));
    assert_eq!(client.endpoint.poll_timeout(), None);
    assert_eq!((client.endpoint.exchanges(), client.endpoint.counters().completed), (0, 1));
}

#[test]
fn an_exchange_retransmits_equal_bytes_with_doubled_timeouts_and_is_then_given_up() {
    let mut client = Client::default();
    let exchange = client.get(ms(0), "t");
    let first = client.sent(ms(0)).unwrap();
    for at in [2, 6, 14, 30] {
        assert_eq!(client.endpoint.poll_timeout(), Some(secs(at)));
        client.endpoint.handle_timeout(secs(at));
        assert_eq!(client.sent(secs(at)).unwrap(), first);
    }
    assert_eq!(
        client.endpoint.poll_timeout(),
        Some(secs(62)),
        "one more timeout after the last (MAX_TRANSMIT_WAIT)"
    );
    client.endpoint.handle_timeout(secs(62));
    assert_eq!(client.sent(secs(62)), None);
    let Some(Event::Failed { exchange: failed, failure }) = client.endpoint.poll_event() else {
        panic!("no event")
    };
    assert_eq!((failed, failure), (exchange, Failure::GivenUp));
    assert!(client.endpoint.poll_event().is_none());
    assert_eq!((client.endpoint.exchanges(), client.endpoint.counters().given_up), (0, 1));
}

#[test]
fn a_second_request_waits_until_nstart_allows_it() {
    let mut client = Client::default();
    client.get(ms(0), "a");
    client.get(ms(0), "b");
    let first = client.sent(ms(0)).unwrap();
    assert_eq!(client.sent(ms(0)), None);
    client.receive(ms(50), &reply_to(&first, Kind::Acknowledgement, CONTENT, b"")).unwrap();
    let second = client.sent(ms(50)).unwrap();
    assert_eq!(second[4], b'b');
}

#[test]
fn an_empty_acknowledgement_lets_the_next_request_depart_before_the_separate_response() {
    let mut client = Client::default();
    let exchange = client.get(ms(0), "a");
    client.get(ms(0), "b");
    let first = client.sent(ms(0)).unwrap();
    let empty = [0x60, 0, first[2], first[3]];
    let ack = client.receive(ms(50), &empty);
    assert!(matches!(ack, Some(Event::Acknowledged { exchange: e }) if e == exchange));
    assert!(client.sent(ms(50)).is_some(), "RFC 7252 §4.7: an acknowledged message is not outstanding");

    let separate = [0x41, CONTENT.0, 0xab, 0xcd, b'a', 0xff, b'!'];
    let event = client.receive(secs(90), &separate);
    assert!(matches!(event, Some(Event::Response { exchange: e, .. }) if e == exchange));
    assert_eq!(client.sent(secs(90)).unwrap(), [0x60, 0, 0xab, 0xcd]);
    assert!(client.receive(secs(91), &separate).is_none());
    assert_eq!(client.sent(secs(91)).unwrap(), [0x60, 0, 0xab, 0xcd], "a duplicate is acknowledged again");
}

#[test]
fn a_separate_response_ends_the_exchange_even_without_an_acknowledgement() {
    let mut client = Client::default();
    client.get(ms(0), "a");
    client.sent(ms(0)).unwrap();
    client.endpoint.handle_timeout(secs(2));
    let event = client.receive(secs(2), &[0x51, CONTENT.0, 1, 2, b'a']);
    assert!(matches!(event, Some(Event::Response { .. })));
    assert_eq!(client.sent(secs(2)), None, "the retransmission that was due stays at home");
    assert_eq!((client.endpoint.exchanges(), client.endpoint.poll_timeout()), (0, None));
    client.get(secs(3), "b");
    assert!(client.sent(secs(3)).is_some());
}

#[test]
fn a_late_copy_of_a_separate_response_does_not_answer_the_next_request_with_its_token() {
    for confirmable in [true, false] {
        let mut client = Client::default();
        let separate = [if confirmable { 0x40 } else { 0x50 }, CONTENT.0, 0xab, 0xcd, 0xff, b'!'];
        client.get(ms(0), "");
        client.sent(ms(0)).unwrap();
        assert!(matches!(client.receive(ms(50), &separate), Some(Event::Response { .. })));
        let acknowledgement = confirmable.then_some(vec![0x60, 0, 0xab, 0xcd]);
        assert_eq!(client.sent(ms(50)), acknowledgement);

        client.get(ms(60), "");
        client.sent(ms(60)).unwrap();
        assert!(client.receive(ms(70), &separate).is_none(), "RFC 7252 §4.5: a duplicate");
        assert_eq!(client.sent(ms(70)), acknowledgement);
        let another = [separate[0], CONTENT.0, 0xab, 0xce, 0xff, b'!'];
        assert!(matches!(client.receive(ms(80), &another), Some(Event::Response { .. })));
    }
}

#[test]
fn a_response_that_never_comes_is_reported_after_the_response_timeout() {
    let mut client = Client::default();
    client.get(ms(0), "a");
    let request = client.sent(ms(0)).unwrap();
    client.receive(ms(10), &[0x60, 0, request[2], request[3]]).unwrap();
    let at = client.endpoint.poll_timeout().unwrap();
    assert_eq!(at, Instant::from_millis(247_010));
    client.endpoint.handle_timeout(at);
    assert!(matches!(client.endpoint.poll_event(), Some(Event::Failed { failure: Failure::TimedOut, .. })));
    assert_eq!(client.endpoint.counters().timed_out, 1);
}

#[test]
fn a_reset_ends_the_exchange() {
    let mut client = Client::default();
    client.get(ms(0), "");
    let request = client.sent(ms(0)).unwrap();
    let reset = [0x70, 0, request[2], request[3]];
    let event = client.receive(ms(1), &reset);
    assert!(matches!(event, Some(Event::Failed { failure: Failure::Reset, .. })));
    assert_eq!((client.endpoint.exchanges(), client.endpoint.poll_timeout()), (0, None));
}

#[test]
fn a_reset_of_an_acknowledged_request_is_ignored() {
    for observes in [false, true] {
        let mut client = Client::default();
        let token = Token::new(b"a").unwrap();
        let request = Request { confirmable: true, code: GET, token, tail: b"\x60", repeatable: true };
        let exchange = if observes {
            client.endpoint.observe(ms(0), 9, request)
        } else {
            client.endpoint.request(ms(0), 9, request)
        };
        let request = client.sent(ms(0)).unwrap();
        client.receive(ms(1), &[0x60, 0, request[2], request[3]]).unwrap();
        assert!(client.receive(ms(2), &[0x70, 0, request[2], request[3]]).is_none(), "RFC 7252 §4.2");
        assert_eq!((client.endpoint.counters().late_replies, client.endpoint.counters().rejected), (1, 0));
        let event = client.receive(ms(3), &[0x41, CONTENT.0, 0xab, 0xcd, b'a']);
        let Some(Event::Response { exchange: answered, .. }) = event else { panic!("{event:?}") };
        assert_eq!(answered, exchange.unwrap());
    }
}

#[test]
fn a_reset_that_answers_a_ping_is_reported_as_a_pong() {
    let mut client = Client::default();
    let exchange = client.endpoint.ping(ms(0), 9).unwrap();
    let ping = client.sent(ms(0)).unwrap();
    assert_eq!(ping[..2], [0x40, 0]);

    let mut other = Client::default();
    assert!(other.receive(ms(1), &ping).is_none());
    let reset = other.sent(ms(1)).unwrap();
    assert_eq!(reset, [0x70, 0, ping[2], ping[3]]);
    assert!(matches!(client.receive(ms(2), &reset), Some(Event::Pong { exchange: e }) if e == exchange));
}

#[test]
fn a_non_confirmable_request_is_sent_once_and_gets_a_non_confirmable_response() {
    let mut client = Client::default();
    let request = Request {
        confirmable: false,
        code: GET,
        token: Token::new(b"n").unwrap(),
        tail: b"",
        repeatable: false,
    };
    let exchange = client.endpoint.request(ms(0), 9, request).unwrap();
    let bytes = client.sent(ms(0)).unwrap();
    assert_eq!(bytes[0] >> 4 & 3, 1);

    let mut server = Client::default();
    let Some(Event::Request { responder, .. }) = server.receive(ms(5), &bytes) else { panic!() };
    server.endpoint.respond(ms(5), responder, CONTENT, b"\xff1").unwrap();
    let response = server.sent(ms(5)).unwrap();
    assert_eq!((response[0] >> 4 & 3, response[1]), (1, CONTENT.0));
    assert!(
        matches!(client.receive(ms(10), &response), Some(Event::Response { exchange: e, .. }) if e == exchange)
    );
}

#[test]
fn a_duplicate_request_gets_the_stored_answer_and_is_not_delivered_again() {
    let mut server = Client::default();
    let request = [0x41, 1, 0x12, 0x34, b't', 0xb1, b'x'];
    let Some(Event::Request { responder, message }) = server.receive(ms(0), &request) else { panic!() };
    assert_eq!(message.options().collect::<Vec<_>>(), [(11, &b"x"[..])]);
    server.endpoint.respond(ms(0), responder, CONTENT, b"\xffonce").unwrap();
    let answer = server.sent(ms(0)).unwrap();
    assert_eq!(answer, [b"\x61\x45\x12\x34t\xff".as_slice(), b"once"].concat());
    for at in [1, 246] {
        assert!(server.receive(secs(at), &request).is_none());
        assert_eq!(server.sent(secs(at)).unwrap(), answer);
    }
    assert!(server.receive(secs(247), &request).is_some(), "EXCHANGE_LIFETIME is over");
    assert_eq!(server.endpoint.counters().duplicates, 2);
}

#[test]
fn a_duplicate_of_a_pending_request_is_acknowledged_and_answered_separately() {
    let mut server = Client::default();
    let request = [0x41, 1, 0x12, 0x34, b't'];
    let Some(Event::Request { responder, .. }) = server.receive(ms(0), &request) else { panic!() };
    assert!(server.receive(secs(2), &request).is_none());
    assert_eq!(server.sent(secs(2)).unwrap(), [0x60, 0, 0x12, 0x34]);
    let exchange = server.endpoint.respond(secs(3), responder, CONTENT, b"\xff1").unwrap().unwrap();
    let response = server.sent(secs(3)).unwrap();
    assert_eq!((response[0], response[1], response[4]), (0x41, CONTENT.0, b't'));
    let empty = [0x60, 0, response[2], response[3]];
    let ack = server.receive(secs(4), &empty);
    assert!(matches!(ack, Some(Event::Acknowledged { exchange: e }) if e == exchange));
    assert_eq!(server.endpoint.exchanges(), 0);
}

#[test]
fn without_deduplication_every_copy_is_delivered_and_nothing_is_kept() {
    let mut server = Client::with(Config { max_deduplicated: 0, ..Config::default() });
    for at in 0..3 {
        let Some(Event::Request { responder, .. }) = server.receive(secs(at), &[0x40, 1, 0, 1]) else {
            panic!()
        };
        server.endpoint.respond(secs(at), responder, CONTENT, b"").unwrap();
        assert_eq!(server.sent(secs(at)).unwrap(), [0x60, CONTENT.0, 0, 1]);
    }
    assert_eq!(server.endpoint.peers(), 0);
}

#[test]
fn malformed_messages_are_counted_and_rejected_or_ignored_as_in_rfc_7252() {
    let reset = Some(vec![0x70, 0, 0x12, 0x34]);
    for (bytes, answer) in [
        (&b""[..], None),
        (b"\x40\x01\x12", None),
        (b"\x80\x01\x12\x34", None),
        (b"\x49\x01\x12\x34123456789", reset.clone()),
        (b"\x42\x01\x12\x34t", reset.clone()),
        (b"\x40\x01\x12\x34\xff", reset.clone()),
        (b"\x40\x01\x12\x34\xf0", reset.clone()),
        (b"\x40\x00\x12\x34\x00", reset.clone()),
        (b"\x40\x20\x12\x34", reset.clone()),
        (b"\x40\xe0\x12\x34", reset),
        (b"\x50\x01\x12\x34\xff", None),
        (b"\x60\x45\x12\x34\xff", None),
        (b"\x60\x01\x12\x34", None),
        (b"\x70\x45\x12\x34", None),
        (b"\x50\x00\x12\x34", None),
    ] {
        let mut endpoint = Client::default();
        assert!(endpoint.receive(ms(0), bytes).is_none(), "{bytes:02x?}");
        assert_eq!(endpoint.sent(ms(0)), answer, "{bytes:02x?}");
        assert_eq!(endpoint.endpoint.counters().malformed, 1, "{bytes:02x?}");
    }
}

#[test]
fn an_answer_without_an_exchange_is_counted_as_late_and_rejected_if_confirmable() {
    let mut client = Client::default();
    assert!(client.receive(ms(0), b"\x60\x45\x12\x34").is_none());
    assert_eq!(client.sent(ms(0)), None);
    assert!(client.receive(ms(0), b"\x41\x45\x12\x34t").is_none());
    assert_eq!(client.sent(ms(0)).unwrap(), [0x70, 0, 0x12, 0x34]);
    assert_eq!(client.endpoint.counters().late_replies, 2);
}

#[test]
fn a_piggybacked_response_with_another_token_is_ignored() {
    let mut client = Client::default();
    client.get(ms(0), "a");
    let mut request = client.sent(ms(0)).unwrap();
    request[4] = b'z';
    assert!(client.receive(ms(9), &reply_to(&request, Kind::Acknowledgement, CONTENT, b"")).is_none());
    assert_eq!(client.endpoint.exchanges(), 1);
}

#[test]
fn a_request_beyond_the_table_of_exchanges_is_an_error_and_changes_nothing() {
    let mut client =
        Client::with(Config { max_exchanges: 2, max_peers: 1, max_replies: 1, ..Config::default() });
    let request = Request { confirmable: true, code: GET, token: Token::EMPTY, tail: b"", repeatable: false };
    client.endpoint.request(ms(0), 1, request).unwrap();
    assert_eq!(client.endpoint.request(ms(0), 2, request), Err(SendError::PeersFull));
    client.endpoint.request(ms(0), 1, request).unwrap();
    assert_eq!(client.endpoint.request(ms(0), 1, request), Err(SendError::ExchangesFull));
    assert_eq!((client.endpoint.exchanges(), client.endpoint.peers()), (2, 1));

    for message_id in [1, 2] {
        let Some(Event::Request { responder, .. }) = client.receive(ms(0), &[0x40, 1, 0, message_id]) else {
            panic!()
        };
        let result = client.endpoint.respond(ms(0), responder, CONTENT, b"");
        assert_eq!(result.is_err(), message_id == 2);
    }
    assert_eq!(client.endpoint.counters().replies_dropped, 1);
}

#[test]
fn a_cancelled_exchange_lets_the_next_one_depart() {
    let mut client = Client::default();
    let ids: Vec<_> = ["a", "b", "c"].map(|token| client.get(ms(0), token)).into();
    client.endpoint.cancel(ms(0), ids[0]);
    client.endpoint.cancel(ms(0), ids[1]);
    client.endpoint.cancel(ms(0), ids[1]);
    let left = client.sent(ms(0)).unwrap();
    assert_eq!(left[4], b'c');
    assert_eq!(client.sent(ms(0)), None);
    client.endpoint.cancel(ms(5), ids[2]);
    assert_eq!((client.endpoint.exchanges(), client.endpoint.poll_timeout()), (0, None));
}

#[test]
fn a_peer_dropped_for_another_is_counted() {
    let mut client = Client::with(Config { max_peers: 1, ..Config::default() });
    for (peer, evicted) in [(1, 0), (1, 0), (2, 1), (1, 2)] {
        let ping = client.endpoint.ping(ms(0), peer).unwrap();
        client.endpoint.cancel(ms(0), ping);
        assert_eq!(client.endpoint.counters().peers_evicted, evicted);
    }
}

#[test]
fn a_message_id_is_not_reused_to_a_peer_within_exchange_lifetime() {
    let mut client = Client::default();
    let mut used = vec![None; 1 << 16];
    let mut now = secs(1);
    for count in 0..140_000 {
        client.get(now, "t");
        let request = loop {
            match client.sent(now) {
                Some(request) => break request,
                None => now = client.endpoint.poll_timeout().expect("what waits for an ID shows"),
            }
            client.endpoint.handle_timeout(now);
        };
        let id = usize::from(Message::parse(&request).unwrap().message_id);
        let lifetime = client.endpoint.setup().exchange_lifetime();
        let before = used[id].replace(now);
        assert!(before.is_none_or(|at: Instant| now.since(at) >= lifetime), "request {count}: {id} again");
        now = now + coapace_control::Duration::from_millis(1);
        client.receive(now, &reply_to(&request, Kind::Acknowledgement, CONTENT, b"")).unwrap();
    }
    assert!(now > secs(247), "a thousand a second had to wait");
}

#[test]
fn exchange_lifetime_follows_the_configured_parameters() {
    let lifetime = |max_retransmit, ack_timeout: &str| {
        let mut controller = DefaultTimer::DEFAULT;
        controller.ack_timeout = coapace_control::Duration::from_secs(ack_timeout.parse().unwrap());
        let setup = Setup { controller, config: Config { max_retransmit, ..Config::default() }, bulk: None };
        setup.exchange_lifetime().as_micros() / 1_000_000
    };
    assert_eq!(lifetime(4, "2"), 247, "RFC 7252 §4.8.2");
    assert_eq!(lifetime(4, "4"), 90 + 202);
    assert_eq!(lifetime(0, "2"), 202);
}

#[test]
fn a_written_message_parses_back_unchanged() {
    let token = Token::new(b"12345678").unwrap();
    let message =
        Message { code: Code(0x45), token, tail: b"\xb1x\xffpay", ..Message::empty(Kind::NonConfirmable, 7) };
    let mut bytes = Vec::new();
    message.write(&mut bytes);
    let read = Message::parse(&bytes).unwrap();
    assert_eq!((read.kind, read.code, read.message_id, read.token), (message.kind, message.code, 7, token));
    assert_eq!(read.payload(), b"pay");
    assert_eq!(Token::new(b"123456789"), None);
}

#[test]
fn a_server_rejects_a_request_and_its_copies_unless_it_has_acknowledged_it() {
    let mut server = Client::default();
    let mut client = Client::default();
    client.get(ms(0), "t");
    let request = client.sent(ms(0)).unwrap();
    let Some(Event::Request { responder, .. }) = server.receive(ms(0), &request) else { panic!("a request") };
    assert!(server.endpoint.reject(ms(0), &responder));
    let reset = server.sent(ms(0)).unwrap();
    assert_eq!(reset, [0x70, 0, request[2], request[3]]);
    assert!(server.receive(ms(5), &request).is_none());
    assert_eq!(server.sent(ms(5)), Some(reset));

    let mut server = Client::default();
    let Some(Event::Request { responder, .. }) = server.receive(ms(0), &request) else { panic!("a request") };
    let responder = server.endpoint.acknowledge(ms(0), responder);
    assert!(server.sent(ms(0)).is_some());
    assert!(!server.endpoint.reject(ms(0), &responder));
    assert_eq!(server.sent(ms(0)), None);
}
