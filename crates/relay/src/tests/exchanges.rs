//! Requests, their copies, and their answers.

use coapace_proto::block::Block;
use coapace_proto::{Code, Kind, Options};

use super::bench::*;
use crate::Face;

#[test]
fn the_relay_forwards_requests_and_answers_with_their_tokens_and_options() {
    let mut bench = Bench::new("cocoa");
    let options = Options::default().uri_path("t").with(9, b"protected").with(2_053, b"unknown");
    let asked = request(Kind::Confirmable, 77, b"tok", &options);
    let up = bench.passes(Face::Clients, &asked);
    assert_eq!((up.face, up.to), (Face::Server, client(1)));
    let hops = request(Kind::Confirmable, 0, b"tok", &options.with(16, &[16]));
    assert_eq!(up.bytes[4..], hops[4..], "all but the Message ID and the hops");
    let down = bench.passes(Face::Server, &content(&up));
    assert_eq!(
        down,
        SentDatagram {
            face: Face::Clients,
            to: client(1),
            bytes: content(&SentDatagram { bytes: asked, ..up })
        }
    );
    assert_eq!(bench.relay.report().lines, 0);
    assert_eq!(bench.relay.poll_timeout(), None);
}

#[test]
fn the_relay_forwards_the_answer_to_an_uploaded_block_unchanged() {
    let mut bench = Bench::new("cocoa");
    let block = Options::default().block1(Block::new(0, true, 6).expect("a block"));
    let up = bench.passes(Face::Clients, &encoded(Kind::Confirmable, Code::PUT, 1, b"a", &block));
    let (kind, id) = (Kind::Acknowledgement, up.message().message_id);
    let down = bench.passes(Face::Server, &answer(kind, Code::CHANGED, id, &up, &Options::default()));
    assert_eq!((down.kind().1, down.message().block1()), (Code::CHANGED, Ok(None)));
}

#[test]
fn the_relay_refuses_q_block_so_that_the_client_uses_block() {
    let mut bench = Bench::new("cocoa");
    let block = Block::new(0, true, 6).expect("a block");
    for (id, options) in
        [(1, Options::default().q_block1(block).size1(9_000)), (2, Options::default().q_block2(block))]
    {
        let back = bench.passes(Face::Clients, &encoded(Kind::Confirmable, Code::PUT, id, b"a", &options));
        assert_eq!((back.face, back.kind()), (Face::Clients, (Kind::Acknowledgement, Code::BAD_OPTION)));
    }
    assert_eq!(bench.relay.report().lines, 0);
}

#[test]
fn the_relay_acknowledges_a_copy_of_a_request_without_forwarding_it() {
    let mut bench = Bench::new("cocoa");
    let up = bench.passes(Face::Clients, &get(1, b"a"));
    assert_eq!(bench.client_sends(&get(1, b"a")), [SentDatagram { face: Face::Clients, ..ack(1) }]);
    assert_eq!(
        bench.client_sends(&get(1, b"a")),
        [ack(1)],
        "every copy, because the acknowledgement may be lost"
    );
    let down = bench.passes(Face::Server, &content(&up));
    assert_eq!(down.kind(), (Kind::Confirmable, Code::CONTENT), "the response is separate then");
    assert_eq!(*down.message().token, *b"a");
    assert_eq!(bench.relay.report().clients.duplicates, 2);
    assert!(bench.client_sends(&empty(Kind::Acknowledgement, down.message().message_id)).is_empty());
    assert!(bench.wait(300_000).is_empty());
}

#[test]
fn the_relay_repeats_a_separate_response_until_the_client_acknowledges_it() {
    let mut bench = Bench::new("default");
    let up = bench.passes(Face::Clients, &get(1, b"a"));
    bench.client_sends(&get(1, b"a"));
    let down = bench.passes(Face::Server, &content(&up));
    let again = bench.wait(2_000);
    assert_eq!(again, [(2_000, down.clone())]);
    bench.client_sends(&empty(Kind::Acknowledgement, down.message().message_id));
    assert!(bench.wait(300_000).is_empty());
}

#[test]
fn the_relay_answers_a_late_copy_with_the_stored_answer() {
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
fn the_relay_uses_the_timeouts_of_its_mechanism_towards_the_server() {
    let mut bench = Bench::new("default:ack_timeout=700ms");
    bench.client_sends(&get(1, b"a"));
    let departures: Vec<u64> = bench.wait(20_000).into_iter().map(|(at, _)| at).collect();
    assert_eq!(departures, [700, 2_100, 4_900, 10_500]);
}

#[test]
fn a_dead_server_gets_five_datagrams_and_the_client_gets_5_04() {
    for cc in ["default", "cocoa", "fasor", "fasor-token", "rtt-coap", "ebb", "linux-rto"] {
        let mut bench = Bench::new(cc);
        let first = bench.client_sends(&get(1, b"a"));
        let sent = bench.wait(400_000);
        let (up, down): (Vec<_>, Vec<_>) = sent.into_iter().partition(|(_, sent)| sent.face == Face::Server);
        assert_eq!(first.len() + up.len(), 5, "{cc}");
        let [(_, answer)] = &down[..] else { panic!("{cc}: {down:?}") };
        assert_eq!(answer.kind(), (Kind::Acknowledgement, Code::GATEWAY_TIMEOUT), "{cc}");
        assert_eq!(bench.relay.report().lines, 0);
    }
}

#[test]
fn the_relay_forwards_a_reset_and_repeats_it_for_a_copy() {
    let mut bench = Bench::new("cocoa");
    let up = bench.passes(Face::Clients, &get(9, b"a"));
    let down = bench.passes(Face::Server, &empty(Kind::Reset, up.message().message_id));
    assert_eq!(down.bytes, empty(Kind::Reset, 9));
    assert_eq!(bench.passes(Face::Clients, &get(9, b"a")), down);
}

#[test]
fn a_reset_of_an_acknowledged_request_becomes_5_02_at_the_relay() {
    let mut bench = Bench::new("cocoa");
    let up = bench.passes(Face::Clients, &get(9, b"a"));
    bench.client_sends(&get(9, b"a"));
    let down = bench.passes(Face::Server, &empty(Kind::Reset, up.message().message_id));
    assert_eq!(down.kind(), (Kind::Confirmable, Code::BAD_GATEWAY));
}

#[test]
fn the_relay_forwards_an_empty_acknowledgement_and_the_separate_response() {
    let mut bench = Bench::new("cocoa");
    let up = bench.passes(Face::Clients, &get(5, b"a"));
    let acknowledged = bench.passes(Face::Server, &empty(Kind::Acknowledgement, up.message().message_id));
    assert_eq!(acknowledged, ack(5));
    bench.wait(10_000);
    // The relay rejects nothing: whether the app understands these options is its own affair.
    let options = Options::default().with(9, b"protected").with(65_001, b"unknown");
    let separate = answer(Kind::Confirmable, Code::CONTENT, 300, &up, &options);
    let sent = bench.server_sends(&separate);
    let (up, down): (Vec<_>, Vec<_>) = sent.into_iter().partition(|sent| sent.face == Face::Server);
    assert_eq!(up[0].bytes, empty(Kind::Acknowledgement, 300));
    assert_eq!(down[0].kind(), (Kind::Confirmable, Code::CONTENT));
    assert_eq!(down[0].message().tail, options.tail(&[]).unwrap().as_bytes());
    let copies = bench.server_sends(&separate);
    assert_eq!(copies, up, "a copy is acknowledged and not passed on");
}

#[test]
fn the_relay_forwards_a_non_confirmable_request_as_such_at_the_rate_of_its_endpoint() {
    let mut bench = Bench::new("default");
    let options = Options::default().uri_path("t");
    let ask = |id| request(Kind::NonConfirmable, id, &[id as u8], &options);
    let up = bench.passes(Face::Clients, &ask(1));
    assert_eq!(up.kind(), (Kind::NonConfirmable, Code::GET));
    let down =
        bench.passes(Face::Server, &answer(Kind::NonConfirmable, Code::CONTENT, 8, &up, &Options::default()));
    assert_eq!((down.kind(), down.message().token), ((Kind::NonConfirmable, Code::CONTENT), token(&[1])));
    // Nothing answers the second. It gives its place up after three times the RTO.
    assert_eq!(bench.client_sends(&ask(2)).len(), 1);
    assert!(bench.client_sends(&ask(3)).is_empty(), "NSTART is 1");
    let departures: Vec<u64> = bench.wait(10_000).into_iter().map(|(at, _)| at).collect();
    assert_eq!(departures, [6_000]);
    assert_eq!(bench.relay.report().relay.unanswered, 1);
}

#[test]
fn a_request_with_no_response_leaves_no_state_in_the_relay() {
    let mut bench = Bench::new("default");
    let options = Options::default().uri_path("t").no_response(26);
    bench.passes(Face::Clients, &encoded(Kind::NonConfirmable, Code::PUT, 1, b"a", &options));
    bench.wait(10_000);
    let report = bench.relay.report();
    assert_eq!((report.lines, report.relay.unanswered), (0, 0));
    let up = bench.passes(Face::Clients, &encoded(Kind::Confirmable, Code::PUT, 2, b"b", &options));
    let down = bench.passes(Face::Server, &empty(Kind::Acknowledgement, up.message().message_id));
    assert_eq!((down, bench.relay.report().lines), (ack(2), 0));
}
