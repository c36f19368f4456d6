//! The server's half of congestion control: copies whose answer may still be under way get none.

use coapace_proto::{Config, Event};

use crate::common::{CONTENT, Client, secs};

/// Gives a server a confirmable GET with a Message ID and a token. Returns whether the server answers.
fn answers(server: &mut Client, at: u64, id: u8, token: &[u8]) -> bool {
    let mut request = vec![0x40 | token.len() as u8, 1, 0, id];
    request.extend_from_slice(token);
    if let Some(Event::Request { responder, .. }) = server.receive(secs(at), &request) {
        server.endpoint.respond(secs(at), responder, CONTENT, b"").unwrap();
    }
    let answer = server.sent(secs(at));
    assert_eq!(server.sent(secs(at)), None);
    if let Some(answer) = &answer {
        assert_eq!(answer[4..], *token, "the token of the copy");
    }
    answer.is_some()
}

/// Returns a server that has answered a client at 0 s, 10 s and 20 s, without think times.
fn acquainted(max_deduplicated: u32) -> Client {
    let mut server = Client::with(Config { max_sluiced: 4, max_deduplicated, ..Config::default() });
    assert!((0..3).all(|turn| answers(&mut server, 10 * u64::from(turn), turn, b"t")));
    server
}

#[test]
fn answers_to_at_most_two_copies_are_withheld_while_the_first_answer_travels() {
    for max_deduplicated in [0, 256] {
        let mut server = acquainted(max_deduplicated);
        let answered = [21, 23, 27, 28, 39].map(|at| answers(&mut server, at, 2, b"t"));
        assert_eq!(answered, [false, false, true, false, true], "{max_deduplicated}");
        assert_eq!(server.endpoint.counters().withheld, 3);
    }
}

#[test]
fn a_copy_with_a_marked_token_counts_as_a_copy() {
    for max_deduplicated in [0, 256] {
        let mut server = acquainted(max_deduplicated);
        assert!(!answers(&mut server, 21, 2, b"t\x01"));
        assert!(!answers(&mut server, 23, 2, b"t\x02"));
        assert!(answers(&mut server, 27, 2, b"t\x03"));
    }
}

#[test]
fn a_copy_that_arrives_after_the_round_trip_time_is_answered_at_once() {
    let mut server = acquainted(0);
    assert!(answers(&mut server, 30, 2, b"t"), "the answer was lost");
    assert_eq!(server.endpoint.counters().withheld, 0);
}

#[test]
fn copies_of_a_request_without_an_answer_yet_are_acknowledged() {
    let mut server = acquainted(256);
    let request = [0x40, 1, 0, 9];
    let Some(Event::Request { responder, .. }) = server.receive(secs(30), &request) else { panic!() };
    let responder = server.endpoint.acknowledge(secs(30), responder);
    assert_eq!(server.sent(secs(30)).unwrap(), [0x60, 0, 0, 9]);
    for at in 31..35 {
        assert!(server.receive(secs(at), &request).is_none());
        assert_eq!(server.sent(secs(at)).unwrap(), [0x60, 0, 0, 9], "the acknowledgement is not an answer");
    }
    assert!(server.endpoint.respond(secs(36), responder, CONTENT, b"").unwrap().is_some());
}

#[test]
fn by_default_every_copy_of_a_request_is_answered() {
    let mut server = Client::default();
    assert!((0..3).all(|turn| answers(&mut server, 10 * u64::from(turn), turn, b"t")));
    assert!((21..25).all(|at| answers(&mut server, at, 2, b"t")));
}
