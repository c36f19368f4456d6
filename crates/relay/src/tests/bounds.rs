//! Sources, full tables, and datagrams that are not CoAP.

use coapace_proto::{Code, Kind};

use super::bench::*;
use crate::Face;

#[test]
fn clients_behind_one_path_share_the_port_rto_estimate_and_nstart_of_the_relay() {
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
fn the_relay_answers_an_oversized_request_4_13_and_an_oversized_response_5_02() {
    let mut bench = Bench::new("default");
    let long = |bytes: &[u8]| [bytes, &[0xff], &[7; 3_000]].concat();
    bench.relay.handle_too_long(bench.now, Face::Clients, client(1), &long(&get(1, b"a")));
    let refused = bench.sent();
    let [answer] = &refused[..] else { panic!("{refused:?}") };
    assert_eq!((answer.face, answer.to), (Face::Clients, client(1)));
    assert_eq!(answer.kind(), (Kind::Acknowledgement, Code::REQUEST_ENTITY_TOO_LARGE));
    assert_eq!((answer.message().size1(), &*answer.message().token), (Some(1_024), &b"a"[..]));

    let up = bench.passes(Face::Clients, &get(2, b"b"));
    bench.relay.handle_too_long(bench.now, Face::Server, up.to, &long(&content(&up)));
    let down = bench.sent();
    let [answer] = &down[..] else { panic!("{down:?}") };
    assert_eq!(answer.kind(), (Kind::Acknowledgement, Code::BAD_GATEWAY));
    assert_eq!((answer.message().message_id, &*answer.message().token), (2, &b"b"[..]));
    assert!(answer.message().payload().starts_with(b"the response is too long"));

    for stray in [&b""[..], b"\x40\x00\x00\x01", b"\x17\xfe\xfd\x00\x01", b"\x48\x01\x00\x01a"] {
        bench.relay.handle_too_long(bench.now, Face::Clients, client(1), stray);
        assert!(bench.sent().is_empty(), "{stray:?}");
    }
    let report = bench.relay.report();
    assert_eq!((report.relay.too_long, report.lines), (6, 0));
}

#[test]
fn full_tables_of_the_relay_are_reported_and_drop_idle_entries() {
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
fn sources_above_a_lowered_bound_leave_when_their_requests_end() {
    let mut bench = Bench::new("default");
    let mut ask = |number: u16| bench.arrives(Face::Clients, client(number), &get(1, b"a")).remove(0);
    let up = [ask(1), ask(2), ask(3)];
    bench.relay.set_max_sources(1);
    assert_eq!(bench.relay.poll_closed(), None, "all three wait for answers");
    for up in &up[..2] {
        bench.arrives(Face::Server, up.to, &content(up));
    }
    bench.wait(400_000);
    let closed = [bench.relay.poll_closed(), bench.relay.poll_closed(), bench.relay.poll_closed()];
    assert_eq!(closed.iter().flatten().count(), 2, "{closed:?}");
    assert_eq!(bench.relay.report().sources, 1);
}

#[test]
fn the_relay_forwards_dtls_datagrams_unchanged() {
    let mut bench = Bench::new("default");
    let hello = [22, 254, 253, 0, 0, 1, 2, 3];
    let up = bench.passes(Face::Clients, &hello);
    assert_eq!(up, SentDatagram { face: Face::Server, to: client(1), bytes: hello.into() });
    let down = bench.passes(Face::Server, &hello);
    assert_eq!(down, SentDatagram { face: Face::Clients, to: client(1), bytes: hello.into() });
    assert!(bench.arrives(Face::Server, client(2), &hello).is_empty(), "nobody asked for that");
}

#[test]
fn the_relay_in_front_of_a_server_may_withhold_answers_to_copies() {
    let mut bench = Bench::with("default", |config| config.sluice = true);
    for id in 0..3 {
        let up = bench.passes(Face::Clients, &get(id, b"a"));
        bench.server_sends(&content(&up));
        bench.wait(1_000);
    }
    assert!(bench.wait(0).is_empty());
    let up = bench.passes(Face::Clients, &get(3, b"a"));
    bench.server_sends(&content(&up));
    bench.wait(900);
    assert!(bench.client_sends(&get(3, b"a")).is_empty());
    assert_eq!(bench.relay.report().clients.withheld, 1);
}

#[test]
fn the_relay_rejects_malformed_messages_without_forwarding_them() {
    let mut bench = Bench::new("default");
    let answer = bench.passes(Face::Clients, &[0x49, 1, 0, 5, 1]);
    assert_eq!(answer.bytes, empty(Kind::Reset, 5));
    assert!(bench.client_sends(&[0xff; 9]).is_empty() && bench.client_sends(&[]).is_empty());
    assert_eq!(
        bench.passes(Face::Clients, &empty(Kind::Confirmable, 3)).bytes,
        empty(Kind::Reset, 3),
        "a ping"
    );
}
