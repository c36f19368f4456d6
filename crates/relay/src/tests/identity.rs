//! The parts that distinguish messages: blocks, markings, tokens, Message IDs, directions.

use coapace_proto::{Code, Kind, Options, REXMIT_CNT};

use super::bench::*;
use crate::Face;

#[test]
fn the_relay_forwards_blocks_like_any_request() {
    let mut bench = Bench::new("cocoa");
    for number in 0..4u16 {
        let block = Options::default().uri_path("t").with_uint(23, u64::from(number) << 4 | 0x6);
        let up = bench.passes(Face::Clients, &request(Kind::Confirmable, number, b"b", &block));
        let options = Options::default().with_uint(23, u64::from(number) << 4 | 0xe);
        let response = answer(Kind::Acknowledgement, Code::CONTENT, up.message().message_id, &up, &options);
        let down = bench.passes(Face::Server, &response);
        assert_eq!(down.message().tail, options.tail(&[]).unwrap().as_bytes());
    }
}

#[test]
fn markings_of_the_relay_are_seen_by_the_server_only() {
    for cc in ["fasor-token", "fasor-option", "cocoa-i"] {
        let mut bench = Bench::new(cc);
        bench.client_sends(&get(1, b"abcd"));
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
fn the_relay_distinguishes_two_requests_with_one_token() {
    let mut bench = Bench::with("default", |config| config.nstart = Some(2));
    let first = bench.passes(Face::Clients, &get(1, b"a"));
    let second = bench.passes(Face::Clients, &get(2, b"a"));
    assert_ne!(first.message().token, second.message().token);
    assert_eq!(bench.passes(Face::Server, &content(&second)).message().message_id, 2);
    assert_eq!(bench.passes(Face::Server, &content(&first)).message().message_id, 1);
}

#[test]
fn message_ids_of_a_client_may_wrap_around_at_the_relay() {
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
        let sent = bench.client_sends(&get(id, b"a"));
        let up = sent.iter().find(|sent| sent.face == Face::Server).expect("it is passed on");
        bench.server_sends(&content(up));
    }
    assert_eq!(bench.relay.report().clients.duplicates, 0);
}

#[test]
fn the_relay_forwards_a_request_of_the_server_to_the_client() {
    let mut bench = Bench::new("cocoa");
    let up = bench.passes(Face::Clients, &get(1, b"a"));
    bench.server_sends(&content(&up));
    let down = bench.passes(Face::Server, &get(900, b"srv"));
    assert_eq!((down.face, down.to, down.message().token), (Face::Clients, client(1), token(b"srv")));
    let back = bench.passes(Face::Clients, &content(&down));
    assert_eq!((back.face, back.message().message_id), (Face::Server, 900));
}
