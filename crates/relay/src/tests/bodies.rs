//! Bodies that are read ahead of a client that asks for one block after the other.

use std::collections::VecDeque;

use coapace_proto::block::Block;
use coapace_proto::{Code, Kind, Options};

use super::bench::*;
use crate::Face;

/// The blocks of the body, of 16 bytes each.
const BLOCKS: u32 = 400;

fn block(num: u32, more: bool) -> Block {
    Block::new(num, more, 0).expect("a block")
}

/// Returns the bytes of a block.
fn bytes(num: u32) -> [u8; 16] {
    [num as u8; 16]
}

/// Returns a client's request for a block.
fn ask(num: u32) -> Vec<u8> {
    let options = Options::default().uri_path("t");
    let options = if num > 0 { options.block2(block(num, false)) } else { options };
    request(Kind::Confirmable, 100 + num as u16, &[num as u8, 7], &options)
}

/// Returns the number of the block that a request to the server asks for.
fn asked(sent: &SentDatagram) -> u32 {
    assert_eq!((sent.face, sent.kind()), (Face::Server, (Kind::Confirmable, Code::GET)));
    sent.message().block2().expect("a size").map_or(0, Block::num)
}

/// Answers a request that the server was sent with its block of the version `etag`.
fn answered(sent: &SentDatagram, etag: &[u8]) -> Vec<u8> {
    let num = asked(sent);
    let options = Options::default().etag(etag).block2(block(num, num + 1 < BLOCKS));
    content_of(sent, &options, &bytes(num))
}

/// Checks that the client is sent this block, and nothing else.
fn gets(sent: &[SentDatagram], num: u32) {
    let to_client: Vec<_> = sent.iter().filter(|sent| sent.face == Face::Clients).collect();
    let [sent] = to_client[..] else { panic!("{sent:?}") };
    let message = sent.message();
    assert_eq!((message.code, message.payload()), (Code::CONTENT, &bytes(num)[..]));
    assert_eq!(
        (message.block2(), &*message.token),
        (Ok(Some(block(num, num + 1 < BLOCKS))), &[num as u8, 7][..])
    );
    assert_eq!(message.etag(), Some(&b"v1"[..]));
}

/// Returns a relay that has passed the first block, and its requests for others.
fn begun(etag: &[u8]) -> (Bench, Vec<SentDatagram>) {
    let mut bench = Bench::new("default");
    let first = bench.passes(Face::Clients, &ask(0));
    let sent = bench.server_sends(&answered(&first, etag));
    let (back, ahead): (Vec<_>, Vec<_>) = sent.into_iter().partition(|sent| sent.face == Face::Clients);
    assert_eq!(back.len(), 1);
    (bench, ahead)
}

#[test]
fn the_relay_requests_several_blocks_ahead_and_answers_the_client_from_them() {
    let (mut bench, ahead) = begun(b"v1");
    assert_eq!(ahead.iter().map(asked).collect::<Vec<_>>(), (1..=10).collect::<Vec<_>>());
    let mut under_way = VecDeque::from(ahead);
    let (mut num, mut requests) = (1, 1);
    let mut sent = bench.client_sends(&ask(num));
    while num < BLOCKS {
        let (back, ahead): (Vec<_>, Vec<_>) = sent.into_iter().partition(|sent| sent.face == Face::Clients);
        under_way.extend(ahead);
        sent = if back.is_empty() {
            match under_way.pop_front() {
                Some(request) => {
                    requests += 1;
                    bench.server_sends(&answered(&request, b"v1"))
                }
                None => bench.wait(20).into_iter().map(|(_, sent)| sent).collect(),
            }
        } else {
            gets(&back, num);
            num += 1;
            bench.client_sends(&ask(num))
        };
    }
    let report = bench.relay.report();
    assert_eq!((requests, report.relay.read_ahead), (BLOCKS, u64::from(BLOCKS) - 1));
    // The last block ends it, and the test has asked for one more.
    assert_eq!((report.bodies, report.lines), (0, 1));
}

#[test]
fn a_request_for_a_block_that_the_relay_already_requested_waits_for_it() {
    let (mut bench, under_way) = begun(b"v1");
    assert!(bench.client_sends(&ask(1)).is_empty(), "it is asked for already");
    assert_eq!(bench.client_sends(&ask(1)), [ack(101)], "a copy is acknowledged");
    let sent = bench.server_sends(&answered(&under_way[0], b"v1"));
    gets(&sent, 1);
    assert_eq!(bench.relay.report().relay.read_ahead, 1);
}

#[test]
fn a_client_that_restarts_a_download_gets_the_first_block_from_the_server() {
    for early in [false, true] {
        let (mut bench, _) = begun(b"v1");
        let options = Options::default().uri_path("t");
        let options = if early { options.block2(block(0, false)) } else { options };
        let passed = bench.passes(Face::Clients, &request(Kind::Confirmable, 9, b"again", &options));
        assert_eq!((passed.face, asked(&passed)), (Face::Server, 0));
        assert_eq!(bench.relay.report().bodies, 0);
    }
}

#[test]
fn a_client_that_pauses_gets_a_new_version_from_the_server() {
    let (mut bench, under_way) = begun(b"v1");
    assert!(bench.client_sends(&ask(1)).is_empty());
    let passed = bench.server_sends(&answered(&under_way[3], b"v2"));
    let [passed] = &passed[..] else { panic!("{passed:?}") };
    assert_eq!((asked(passed), &*passed.message().token), (1, &[1, 7][..]), "the client's request as it is");
    let report = bench.relay.report();
    assert_eq!((report.bodies, report.lines), (0, 1));
}

#[test]
fn the_relay_reads_only_a_few_blocks_ahead_and_stops_for_a_silent_client() {
    let mut bench = Bench::new("default");
    let long = Options::default().etag(b"v1").size2(1 << 20).block2(Block::new(0, true, 6).expect("a block"));
    let first = bench.passes(Face::Clients, &ask(0));
    let reply = |sent: &SentDatagram| {
        let num = asked(sent);
        let options = long.clone().without(23).block2(Block::new(num, true, 6).expect("a block"));
        content_of(sent, &options, &[1; 1_024])
    };
    let mut under_way = VecDeque::from([first]);
    let mut blocks = 0;
    while let Some(sent) = under_way.pop_front() {
        blocks += 1;
        let sent = bench.server_sends(&reply(&sent));
        under_way.extend(sent.into_iter().filter(|sent| sent.face == Face::Server));
        under_way.extend(bench.wait(20).into_iter().map(|(_, sent)| sent));
    }
    assert_eq!(blocks, 1 + 128, "128 KiB beyond the first block");
    assert_eq!(bench.relay.report().bodies, 1);
    assert!(bench.wait(100_000).is_empty());
    assert_eq!((bench.relay.report().bodies, bench.relay.poll_timeout()), (0, None));
}

#[test]
fn the_relay_reads_at_most_four_bodies_ahead_for_a_client_and_a_total_for_all() {
    let mut bench = Bench::with("default", |config| config.max_body_bytes = 6 * (64 << 10));
    let begin = |bench: &mut Bench, from: u16, name: &str| {
        let options = Options::default().uri_path(name);
        let asked = request(Kind::Confirmable, from, name.as_bytes(), &options);
        let up = bench.arrives(Face::Clients, client(from), &asked).remove(0);
        let options = Options::default().etag(b"v").size2(30_000).block2(block(0, true));
        bench.arrives(Face::Server, client(from), &content_of(&up, &options, &bytes(0)));
        bench.wait(10);
        bench.relay.report().bodies
    };
    let counts = ["a", "b", "c", "d", "e"].map(|name| begin(&mut bench, 1, name));
    assert_eq!(counts, [1, 2, 3, 4, 4], "the oldest makes room");
    let counts = [2, 3, 4].map(|from| begin(&mut bench, from, "a"));
    assert_eq!(counts, [5, 6, 6]);
}

#[test]
fn the_relay_does_not_read_ahead_without_an_etag_or_for_observations() {
    let mut bench = Bench::new("default");
    let first = bench.passes(Face::Clients, &ask(0));
    let untagged = Options::default().block2(block(0, true));
    let message_id = first.message().message_id;
    let sent =
        bench.server_sends(&answer(Kind::Acknowledgement, Code::CONTENT, message_id, &first, &untagged));
    assert_eq!(sent.len(), 1, "{sent:?}");
    let observes = Options::default().uri_path("t").with_uint(6, 0);
    let first = bench.passes(Face::Clients, &request(Kind::Confirmable, 9, b"o", &observes));
    assert_eq!(bench.server_sends(&answered(&first, b"v1")).len(), 1);
    assert_eq!(bench.relay.report().bodies, 0);
}
