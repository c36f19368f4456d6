//! Observations (RFC 7641).

use coapace_proto::{Code, Kind, Options, Token};

use super::bench::*;
use crate::Face;

/// Observes a resource. Returns the request that the relay has sent.
fn observed(bench: &mut Bench) -> SentDatagram {
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

fn notification(kind: Kind, message_id: u16, number: u32, up: &SentDatagram) -> Vec<u8> {
    answer(kind, Code::CONTENT, message_id, up, &Options::default().observe(number))
}

#[test]
fn the_relay_forwards_notifications_in_sequence_with_their_numbers_and_types() {
    let mut bench = Bench::new("cocoa");
    let up = observed(&mut bench);
    let sent = bench.server_sends(&notification(Kind::Confirmable, 500, 11, &up));
    assert_eq!(sent[0].bytes, notification(Kind::Confirmable, sent[0].message().message_id, 11, &up));
    assert_eq!(
        sent[1],
        SentDatagram { face: Face::Server, to: client(1), bytes: empty(Kind::Acknowledgement, 500) }
    );
    assert!(bench.client_sends(&empty(Kind::Acknowledgement, sent[0].message().message_id)).is_empty());
    bench.wait(5_000);
    let down = bench.passes(Face::Server, &notification(Kind::NonConfirmable, 501, 12, &up));
    assert_eq!((down.message().kind, down.message().observe()), (Kind::NonConfirmable, Some(12)));
    bench.wait(5_000);
    assert!(bench.server_sends(&notification(Kind::NonConfirmable, 502, 9, &up)).is_empty());
    assert_eq!(bench.relay.report().relay.stale, 1);
}

#[test]
fn a_client_that_rejects_a_notification_ends_the_observation_through_the_relay() {
    for kind in [Kind::Confirmable, Kind::NonConfirmable] {
        let mut bench = Bench::new("cocoa");
        let up = observed(&mut bench);
        let sent = bench.server_sends(&notification(kind, 500, 11, &up));
        let reset = empty(Kind::Reset, sent[0].message().message_id);
        assert!(bench.client_sends(&reset).is_empty());
        assert_eq!(bench.relay.report().lines, 0);
        let sent = bench.passes(Face::Server, &notification(kind, 501, 12, &up));
        assert_eq!((sent.face, sent.bytes), (Face::Server, empty(Kind::Reset, 501)));
    }
}

#[test]
fn the_relay_registers_again_and_deregisters_with_the_token_of_the_registration() {
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
fn the_last_notification_ends_the_observation_at_the_relay() {
    for code in [Code::NOT_FOUND, Code::CONTENT] {
        let mut bench = Bench::new("cocoa");
        let up = observed(&mut bench);
        let last = answer(Kind::Confirmable, code, 500, &up, &Options::default());
        let sent = bench.server_sends(&last);
        let down = sent.iter().find(|sent| sent.face == Face::Clients && sent.message().code == code);
        assert_eq!(down.expect("the last one").message().kind, Kind::Confirmable, "{code:?}: {sent:?}");
        assert_eq!(bench.relay.report().lines, 0);
    }
}

#[test]
fn a_registration_that_the_server_never_answers_frees_its_place() {
    let mut bench = Bench::with("cocoa", |config| config.max_observers = 1);
    for (id, token_bytes) in [(1, b"a"), (2, b"b")] {
        let register = Options::default().observe(0).uri_path("t");
        let up = bench.passes(Face::Clients, &request(Kind::NonConfirmable, id, token_bytes, &register));
        assert_eq!(up.message().observe(), Some(0));
        bench.wait(600_000);
        assert_eq!(bench.relay.report().lines, 0);
    }
    assert_eq!(bench.relay.report().relay.unanswered, 2);
}
