//! Clients whose addresses nobody has verified: the answers that they are sent, and the room that they have.

use coapace_net::Verify;
use coapace_proto::{Code, Kind, Options};

use super::bench::*;
use crate::{Face, Relay};

fn strict() -> Bench {
    Bench::with("default", |config| config.verify = Verify::Everybody)
}

fn ask(code: Code, id: u16, options: &Options) -> Vec<u8> {
    encoded(Kind::Confirmable, code, id, b"a", &options.clone().uri_path("t"))
}

/// Returns an answer of 1 kB to a request that the relay has sent.
fn large(to: &SentDatagram) -> Vec<u8> {
    let mut bytes = content(to);
    bytes.push(0xff);
    bytes.resize(1_000, b'x');
    bytes
}

#[test]
fn the_relay_sends_a_large_answer_only_after_an_echo_challenge() {
    let mut bench = strict();
    let asked = ask(Code::GET, 1, &Options::default());
    let up = bench.passes(Face::Clients, &asked);
    let down = bench.passes(Face::Server, &large(&up));
    assert_eq!((down.kind(), down.face), ((Kind::Acknowledgement, Code::UNAUTHORIZED), Face::Clients));
    assert!(down.bytes.len() + 28 <= 3 * (asked.len() + 28));
    let echo = Options::default().echo(down.message().echo().expect("an Echo value"));
    let up = bench.passes(Face::Clients, &ask(Code::GET, 2, &echo));
    let down = bench.passes(Face::Server, &large(&up));
    assert_eq!((down.kind().1, down.bytes.len()), (Code::CONTENT, 1_000));
    let up = bench.passes(Face::Clients, &ask(Code::GET, 3, &Options::default()));
    assert_eq!(bench.passes(Face::Server, &large(&up)).bytes.len(), 1_000, "it stays verified");
    assert_eq!(bench.relay.report().relay.challenged, 1);
}

#[test]
fn the_relay_forwards_small_answers_and_those_for_loopback_without_a_challenge() {
    let mut bench = strict();
    let up = bench.passes(Face::Clients, &get(1, b"a"));
    assert_eq!(bench.passes(Face::Server, &content(&up)).kind().1, Code::CONTENT);
    let mut bench = Bench::new("default");
    let up = bench.passes(Face::Clients, &get(1, b"a"));
    assert_eq!(bench.passes(Face::Server, &large(&up)).bytes.len(), 1_000);
}

#[test]
fn a_post_through_the_relay_is_executed_once_even_if_its_answer_is_too_large() {
    let mut bench = strict();
    let asked = ask(Code::POST, 1, &Options::default());
    let up = bench.passes(Face::Clients, &asked);
    let down = bench.passes(Face::Server, &large(&up));
    assert_eq!(down.kind(), (Kind::Acknowledgement, Code::BAD_GATEWAY));
    assert!(down.message().echo().is_some() && down.bytes.len() + 28 <= 3 * (asked.len() + 28));
    assert_eq!(bench.passes(Face::Clients, &asked), down, "a copy");
}

#[test]
fn an_unverified_observer_at_the_relay_is_sent_at_most_three_times_its_registration() {
    for answers in [false, true] {
        let mut bench = strict();
        let register = ask(Code::GET, 1, &Options::default().observe(0));
        let up = bench.passes(Face::Clients, &register);
        let notified =
            |kind, id, number| answer(kind, Code::CONTENT, id, &up, &Options::default().observe(number));
        let first = bench.passes(Face::Server, &notified(Kind::Acknowledgement, up.message().message_id, 10));
        let mut sent = 28 + first.bytes.len();
        for number in 0..20u16 {
            let news = notified(Kind::NonConfirmable, 500 + number, 11 + u32::from(number));
            let departed = bench.server_sends(&news).into_iter().map(|sent| (0, sent));
            let departed: Vec<_> = departed.chain(bench.wait(10_000)).collect();
            for (_, down) in departed.iter().filter(|(_, sent)| sent.face == Face::Clients) {
                sent += 28 + down.bytes.len();
                if answers && down.message().kind == Kind::Confirmable {
                    bench.client_sends(&empty(Kind::Acknowledgement, down.message().message_id));
                }
            }
        }
        assert_eq!(answers, sent > 3 * (28 + register.len()), "{sent}");
        assert_eq!(bench.relay.report().lines, u64::from(answers));
    }
}

#[test]
fn flooding_sources_leave_room_for_others_at_the_relay() {
    let mut bench = Bench::new("default");
    for id in 0..300u16 {
        for source in 0..32 {
            bench.arrives(Face::Clients, client(source), &get(id, &id.to_be_bytes()));
        }
    }
    for source in 100..400 {
        let sent = bench.arrives(Face::Clients, client(source), &get(1, b"a"));
        assert_eq!(sent[0].face, Face::Server, "client {source}");
    }
    assert!(bench.relay.report().relay.refused > 0);
}

#[test]
fn unverified_clients_leave_sources_and_exchanges_of_the_relay_to_verified_ones() {
    let mut bench = Bench::with("default", |config| {
        config.verify = Verify::Everybody;
        config.max_sources = 100;
    });
    let sent: Vec<SentDatagram> =
        (0..80).map(|n| bench.arrives(Face::Clients, client(n), &get(1, b"a")).remove(0)).collect();
    let passed = sent.iter().filter(|sent| sent.face == Face::Server).count();
    assert_eq!(passed, 75);
    let Some(answer) = sent.last() else { panic!() };
    assert_eq!(answer.kind(), (Kind::Acknowledgement, Code::UNAUTHORIZED));
    let echo = Options::default().echo(answer.message().echo().expect("an Echo value"));
    let up = bench.arrives(Face::Clients, client(79), &ask(Code::GET, 2, &echo));
    assert_eq!(up[0].face, Face::Server);
}

#[test]
fn the_relay_does_not_forward_a_post_that_it_cannot_remember() {
    let mut bench = Bench::with("default", |config| {
        config.verify = Verify::Everybody;
        config.max_exchanges = 16;
    });
    // 16 times 32 messages, of which strangers have a quarter, and one network eight ninths of that.
    let (mut passed, mut asked) = (0, 0);
    for n in 0..200u16 {
        let sent =
            bench.arrives(Face::Clients, client(n % 50), &ask(Code::POST, n, &Options::default())).remove(0);
        if sent.face == Face::Server {
            passed += 1;
            bench.arrives(Face::Server, sent.to, &content(&sent));
        } else {
            asked += usize::from(sent.kind() == (Kind::Acknowledgement, Code::UNAUTHORIZED));
        }
    }
    assert_eq!((passed, passed + asked), (114, 200));
}

#[test]
fn the_relay_decrements_hop_limit_and_refuses_requests_with_none_left() {
    let mut bench = Bench::new("default");
    let with = |hops: &[u8]| Options::default().with(16, hops);
    for (id, asked, left) in
        [(1, Options::default(), 16), (2, with(&[9]), 8), (3, with(&[2]), 1), (4, with(&[255]), 254)]
    {
        let up = bench.passes(Face::Clients, &ask(Code::GET, id, &asked));
        assert_eq!(up.message().hop_limit().unwrap().map(u8::from), Some(left));
        assert_eq!(up.message().uri_path().next(), Some(&b"t"[..]));
        bench.server_sends(&content(&up));
    }
    for (id, hops, code) in [
        (11, &[1][..], Code::HOP_LIMIT_REACHED),
        (12, &[0], Code::BAD_REQUEST),
        (13, &[], Code::BAD_REQUEST),
        (14, &[1, 0], Code::BAD_REQUEST),
    ] {
        let mut asked = ask(Code::GET, id, &Options::default());
        // Five more than Uri-Path.
        asked.push(0x50 | hops.len() as u8);
        asked.extend_from_slice(hops);
        let answer = bench.passes(Face::Clients, &asked);
        assert_eq!((answer.face, answer.kind()), (Face::Clients, (Kind::Acknowledgement, code)), "{hops:?}");
    }
}

/// Hands a datagram to the first of two relays that point at each other, and lets them talk for a while.
fn pointed_at_each_other(first: &[u8]) -> [Relay; 2] {
    let mut relays = [Bench::new("default"), Bench::new("default")];
    let mut ports: Vec<(usize, std::net::SocketAddr)> = Vec::new();
    let mut under_way = vec![(0, Face::Clients, client(1), first.to_vec())];
    for _ in 0..10_000 {
        let Some((at, face, source, bytes)) = under_way.pop() else { break };
        for sent in relays[at].arrives(face, source, &bytes) {
            let known = ports.iter().position(|&port| port == (at, sent.to));
            match sent.face {
                // The port of a source is a client of the other relay.
                Face::Server => {
                    let port = known.unwrap_or_else(|| {
                        ports.push((at, sent.to));
                        ports.len() - 1
                    });
                    under_way.push((1 - at, Face::Clients, client(1_000 + port as u16), sent.bytes));
                }
                Face::Clients => {
                    let port =
                        sent.to.port().checked_sub(41_000).and_then(|port| ports.get(usize::from(port)));
                    let Some(&(other, source)) = port else { continue };
                    under_way.push((other, Face::Server, source, sent.bytes));
                }
            }
        }
    }
    assert!(under_way.is_empty(), "they end");
    relays.map(|bench| bench.relay)
}

#[test]
fn two_relays_in_a_loop_use_few_ports_for_one_datagram() {
    for first in [get(1, b"a"), [22, 254, 253, 0, 0, 1, 2, 3].to_vec()] {
        let reports = pointed_at_each_other(&first).map(|relay| relay.report());
        assert!(reports.iter().map(|report| report.sources).sum::<u64>() <= 16, "{reports:?}");
        assert_eq!(reports.iter().map(|report| report.relay.loops).sum::<u64>(), 1);
    }
}
