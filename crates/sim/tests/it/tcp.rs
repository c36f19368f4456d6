//! CoAP over TCP: hosts on the bottleneck of Raitahila 2019, and hosts whose packets a test carries itself.

use std::collections::BTreeSet;

use crate::hosts::{FIELD, ROOM, bottleneck};
use coap_numbers::{code, option};
use coapace_proto::{Code, Token};
use coapace_sim::tcp::{TcpClient, TcpParameters, TcpPlan, TcpReport, TcpResponse, TcpServer};
use coapace_sim::{
    Accounting, Event, Loss, Luck, Mark, Markov, Node, NodeId, Outgoing, Record, Span, Tap, Time, World,
};

const MS: u64 = 1_000_000;
const SERVER: NodeId = NodeId(0);
const CLIENT: NodeId = NodeId(1);

/// A host of the testbed.
enum TcpHost {
    Server(Box<TcpServer>),
    Client(Box<TcpClient>),
}

impl Node for TcpHost {
    fn handle_datagram(&mut self, now: Time, from: NodeId, mark: Mark, bytes: &[u8]) {
        match self {
            Self::Server(server) => server.handle_datagram(now, from, mark, bytes),
            Self::Client(client) => client.handle_datagram(now, from, mark, bytes),
        }
    }
    fn handle_timeout(&mut self, now: Time) {
        match self {
            Self::Server(server) => server.handle_timeout(now),
            Self::Client(client) => client.handle_timeout(now),
        }
    }
    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<Outgoing> {
        match self {
            Self::Server(server) => server.poll_transmit(now, buffer),
            Self::Client(client) => client.poll_transmit(now, buffer),
        }
    }
    fn poll_timeout(&self) -> Option<Time> {
        match self {
            Self::Server(server) => server.poll_timeout(),
            Self::Client(client) => client.poll_timeout(),
        }
    }
}

/// The packets that the clients, and the server, have sent: their sizes, and how many had a FIN.
#[derive(Default)]
struct Packets {
    sizes: [BTreeSet<usize>; 2],
    fins: [u64; 2],
}

impl Tap for Packets {
    fn record(&mut self, record: &Record<'_>) {
        if record.event == Event::Sent {
            let from = usize::from(record.from == SERVER);
            self.sizes[from].insert(record.bytes.len());
            self.fins[from] += u64::from(flags(record.bytes) & FIN != 0);
        }
    }
}

/// A run of the testbed.
#[derive(Clone, Copy)]
struct Cell {
    /// True if clients keep one connection. Otherwise they connect again for every batch of requests.
    continuous: bool,
    clients: u32,
    buffer_bytes: u64,
    loss: Loss,
    server: TcpParameters,
}

/// A finished run.
struct Run {
    world: World<TcpHost, Packets>,
    hash: u64,
}

impl Cell {
    /// Returns a run of one client with an unlimited buffer and no loss.
    fn quiet() -> Self {
        let server = TcpParameters::default();
        Self { continuous: true, clients: 1, buffer_bytes: 1_410_000, loss: Loss::None, server }
    }

    fn run(self, seed: u64) -> Run {
        let luck = Luck::new(seed);
        let (seeds, draws) = (luck.stream("tcp"), luck.stream("batches"));
        let network = bottleneck(luck, Accounting::Ipv4, self.buffer_bytes, self.loss);
        let mut world = World::new(network, Packets::default());
        let server = TcpServer::new(SERVER, response(), 10_000, self.server, seeds.bits(0, 0, 0));
        world.add(ROOM, TcpHost::Server(Box::new(server)));
        for client in 1..=u64::from(self.clients) {
            let batches = if self.continuous { vec![50] } else { batches(|n| draws.below(10, client, n, 0)) };
            // Continuous clients have connected long before the clock starts.
            let connect_at =
                if self.continuous { Time::from_nanos(client * 100 * MS) } else { Time::from_secs(100) };
            let plan = plan(batches, connect_at);
            let node = NodeId(client as u32);
            let client = TcpClient::new(node, plan, TcpParameters::default(), seeds.bits(client, 0, 0));
            world.add(FIELD, TcpHost::Client(Box::new(client)));
        }
        world.wake_all();
        let end = Time::from_secs(50_000);
        let summary = world.run(end);
        assert!(summary.ended_at < end, "the run does not end");
        Run { world, hash: summary.hash }
    }
}

/// Splits 50 requests into batches of up to ten. `draw` returns a number from 0 to 9 for batch n.
fn batches(draw: impl Fn(u64) -> u64) -> Vec<u32> {
    let (mut batches, mut left) = (Vec::new(), 50);
    while left > 0 {
        let batch = left.min(1 + draw(batches.len() as u64) as u32);
        batches.push(batch);
        left -= batch;
    }
    batches
}

impl Run {
    fn clients(&self) -> impl Iterator<Item = &TcpClient> {
        self.world.nodes().iter().filter_map(|host| match host {
            TcpHost::Client(client) => Some(client.as_ref()),
            TcpHost::Server(_) => None,
        })
    }

    fn report(&self) -> &TcpReport {
        self.clients().next().expect("a client").report()
    }

    fn server(&self) -> &TcpServer {
        let TcpHost::Server(server) = &self.world.nodes()[0] else { panic!("node 0 is the server") };
        server
    }

    fn sum(&self, of: fn(&TcpReport) -> u64) -> u64 {
        self.clients().map(|client| of(client.report())).sum()
    }

    /// Returns the median of the times from the first request to the last response of a client, in seconds.
    fn median_completion_s(&self) -> f64 {
        let mut times: Vec<_> = self.clients().map(|client| completion_s(client.report())).collect();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }
}

fn completion_s(report: &TcpReport) -> f64 {
    let (Some(first), Some(last)) = (report.first_request, report.finished) else {
        panic!("a client did not finish: {report:?}")
    };
    last.as_secs_f64() - first.as_secs_f64()
}

/// Returns a plan of requests of 48 bytes.
fn plan(batches: Vec<u32>, connect_at: Time) -> TcpPlan {
    TcpPlan {
        server: SERVER,
        batches,
        connect_at,
        request_at: Time::from_secs(100),
        pause: Span::ZERO,
        method: Code(code::GET),
        token: Token::EMPTY,
        tail: [&[(option::URI_PATH as u8) << 4 | 5][..], b"tests"].concat(),
    }
}

/// Returns a response of 104 bytes.
fn response() -> TcpResponse {
    TcpResponse { code: Code(code::CONTENT), tail: [&[0xff][..], &[b'x'; 60]].concat() }
}

/// Returns the high error rate of the thesis: 18 % of the packets, in bursts of four.
fn high_loss() -> Loss {
    Loss::Markov(Markov::with_mean(0.0, 0.8, 0.18, 4.0).expect("a chain"))
}

#[test]
fn one_coap_over_tcp_client_takes_the_published_time() {
    let run = Cell::quiet().run(1);
    let report = run.report();
    let time = completion_s(report);
    assert!((time - 33.208).abs() < 0.1, "{time}");
    assert_eq!(report.completions.len(), 50);
    assert_eq!(report.connections, 1);
    assert_eq!(report.retransmitted_segments + report.duplicate_segments, 0);
    assert_eq!(run.server().counters().requests, 50);
}

#[test]
fn coap_over_tcp_packets_have_the_published_sizes() {
    let run = Cell::quiet().run(1);
    // ACK and FIN, CSM, request, SYN; ACK and FIN, CSM, SYN, response.
    assert_eq!(run.world.tap().sizes, [[40, 45, 48, 52].into(), [40, 45, 52, 104].into()]);
}

#[test]
fn fifty_coap_over_tcp_clients_are_limited_by_the_rate_of_the_link() {
    let rate_bound = f64::from(50 * 50 * 104 * 8) / 30_000.0;
    let median = Cell { clients: 50, ..Cell::quiet() }.run(1).median_completion_s();
    assert!((rate_bound - 0.5..rate_bound * 1.02).contains(&median), "{median}");
}

#[test]
fn every_batch_of_exchanges_opens_and_closes_its_own_connection() {
    let run = Cell { continuous: false, clients: 10, ..Cell::quiet() }.run(1);
    let batches: usize = run.clients().map(|client| client.plan().batches.len()).sum();
    assert_eq!(run.sum(|report| u64::from(report.connections)), batches as u64);
    assert_eq!(run.server().counters().accepted, batches as u64);
    assert_eq!(run.sum(|report| report.completions.len() as u64), 500);
    assert_eq!(run.server().connections(), 0);
    assert!(run.clients().all(|client| client.poll_timeout().is_none()));
}

#[test]
fn the_first_request_waits_for_the_servers_csm_and_the_delayed_ack_of_our_csm() {
    let run = Cell { continuous: false, ..Cell::quiet() }.run(1);
    let report = run.report();
    let since_start = |time: Option<Time>| time.unwrap().as_secs_f64() - 100.0;
    let handshake = since_start(report.connected);
    assert!((0.64..0.67).contains(&handshake), "{handshake}");
    let first_request = since_start(report.first_request);
    assert!((1.28..1.33).contains(&first_request), "{first_request}");
    // Nagle's algorithm holds the request back until the delayed ACK of our CSM comes.
    let first_response = since_start(report.completions.first().copied());
    assert!((2.14..2.20).contains(&first_response), "{first_response}");
}

#[test]
fn lost_tcp_segments_are_retransmitted_until_all_arrive() {
    let run = Cell { clients: 10, loss: high_loss(), ..Cell::quiet() }.run(1);
    assert_eq!(run.sum(|report| report.completions.len() as u64), 500);
    assert!(run.sum(|report| report.retransmitted_segments) > 50);
    let server = run.server().counters();
    assert_eq!(server.requests, 500, "TCP hands every request over once");
    assert!(server.retransmitted_segments > 50);
    assert!(server.duplicate_segments > 10);
    assert_eq!(run.server().connections(), 0);
}

#[test]
fn equal_seeds_give_equal_tcp_segments() {
    let loss = Loss::Random(0.02);
    let cell = Cell { continuous: false, clients: 20, buffer_bytes: 2_500, loss, ..Cell::quiet() };
    let hash = |seed| cell.run(seed).hash;
    assert_eq!(hash(7), hash(7));
    assert_ne!(hash(7), hash(8));
}

/// Returns the packets that `node` sends without an answer before `until`, with their times.
fn alone(node: &mut impl Node, until: Time) -> Vec<(Time, Vec<u8>)> {
    let mut sent = Vec::new();
    while let Some(now) = node.poll_timeout().filter(|&now| now < until) {
        node.handle_timeout(now);
        loop {
            let mut packet = Vec::new();
            if node.poll_transmit(now, &mut packet).is_none() {
                break;
            }
            sent.push((now, packet));
        }
    }
    sent
}

fn client() -> TcpClient {
    TcpClient::new(CLIENT, plan(vec![1], Time::ZERO), TcpParameters::default(), 1)
}

fn answers(node: &mut impl Node, now: Time, packet: &[u8]) -> Vec<Vec<u8>> {
    node.handle_datagram(now, NodeId(0), Mark::default(), packet);
    let mut answers = Vec::new();
    let mut buffer = Vec::new();
    while node.poll_transmit(now, &mut buffer).is_some() {
        answers.push(std::mem::take(&mut buffer));
    }
    answers
}

fn flags(packet: &[u8]) -> u8 {
    packet[33]
}

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

#[test]
fn a_syn_is_repeated_after_two_four_and_up_to_120_seconds() {
    let mut client = client();
    let sent = alone(&mut client, Time::from_secs(1_000));
    let gaps: Vec<u64> =
        sent.windows(2).map(|pair| (pair[1].0.as_nanos() - pair[0].0.as_nanos()) / MS).collect();
    assert_eq!(gaps[..8], [2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 120_000, 120_000]);
    assert!(sent.iter().all(|(_, packet)| flags(packet) == SYN));
    assert_eq!(client.report().retransmitted_segments, gaps.len() as u64);
}

#[test]
fn a_syn_ack_is_repeated_after_the_same_times_as_a_syn() {
    let mut client = client();
    let syn = alone(&mut client, Time::from_secs(1)).remove(0).1;
    let mut server = TcpServer::new(SERVER, response(), 10, TcpParameters::default(), 2);
    let first = answers(&mut server, Time::ZERO, &syn).remove(0);
    let repeated = alone(&mut server, Time::from_secs(20));
    assert_eq!(
        repeated.iter().map(|(time, _)| time.as_nanos() / MS).collect::<Vec<_>>(),
        [2_000, 6_000, 14_000]
    );
    assert!(repeated.iter().all(|(_, packet)| *packet == first));
}

#[test]
fn the_first_tcp_timeout_of_data_is_three_round_trips_of_the_handshake() {
    let mut client = client();
    let syn = alone(&mut client, Time::from_secs(1)).remove(0).1;
    let mut server = TcpServer::new(SERVER, response(), 10, TcpParameters::default(), 2);
    let syn_ack = answers(&mut server, Time::from_nanos(400 * MS), &syn).remove(0);
    // SRTT 0.8 s, RTTVAR 0.4 s; the CSM leaves at 0.8 s and is lost.
    let greeting = answers(&mut client, Time::from_nanos(800 * MS), &syn_ack);
    assert_eq!(greeting.len(), 2, "the ACK and the CSM");
    let repeated = alone(&mut client, Time::from_secs(4)).remove(0);
    assert_eq!(repeated.0, Time::from_nanos((800 + 2_400) * MS));
    assert_eq!(repeated.1.len(), greeting[1].len());
}

/// A client whose handshake took from 0.16 to 0.816 s, which makes an RTO of 1.968 s, and its CSM, which is lost.
fn greeting(timer_hz: u16) -> (TcpClient, TcpServer, Vec<u8>) {
    let parameters = TcpParameters { timer_hz, ..TcpParameters::default() };
    let start = Time::from_nanos(160 * MS);
    let plan = TcpPlan { request_at: start, ..plan(vec![1], start) };
    let mut client = TcpClient::new(CLIENT, plan, parameters, 1);
    let syn = alone(&mut client, Time::from_secs(1)).remove(0).1;
    let mut server = TcpServer::new(SERVER, response(), 10, parameters, 2);
    let syn_ack = answers(&mut server, start, &syn).remove(0);
    let csm = answers(&mut client, Time::from_nanos(816 * MS), &syn_ack).remove(1);
    (client, server, csm)
}

#[test]
fn a_lost_tcp_segment_is_repeated_at_a_slot_of_the_timer_wheel() {
    let waits = |timer_hz| -> Vec<u64> {
        let (mut client, _, csm) = greeting(timer_hz);
        let repeated = alone(&mut client, Time::from_secs(200));
        assert!(repeated.iter().all(|(_, packet)| packet.len() == csm.len()));
        let times = repeated.iter().map(|(time, _)| time.as_nanos() / MS);
        let before = std::iter::once(816).chain(times.clone());
        times.zip(before).map(|(time, before)| time - before).take(6).collect()
    };
    // Linux 6.18 at 250 Hz waited 4.09, 7.94, 15.87, 32.77 and 63.48 s before the second to the sixth. smoltcp ends at 60 s.
    assert_eq!(waits(250), [2_000, 4_096, 7_936, 15_872, 32_768, 61_440]);
    assert_eq!(waits(0), [1_968, 3_936, 7_872, 15_744, 31_488, 60_000]);
}

#[test]
fn the_tcp_handshake_also_uses_the_timer_wheel() {
    let parameters = TcpParameters { timer_hz: 250, ..TcpParameters::default() };
    let start = Time::from_nanos(1_001 * MS);
    let mut client = TcpClient::new(CLIENT, plan(vec![1], start), parameters, 1);
    let sent = alone(&mut client, Time::from_secs(40));
    let times: Vec<u64> = sent.iter().map(|(time, _)| time.as_nanos() / MS).collect();
    assert_eq!(times, [1_001, 3_008, 7_168, 15_360, 31_488]);
    let mut server = TcpServer::new(SERVER, response(), 10, parameters, 2);
    answers(&mut server, start, &sent[0].1);
    let repeated = alone(&mut server, Time::from_secs(40));
    assert_eq!(repeated.iter().map(|(time, _)| time.as_nanos() / MS).collect::<Vec<_>>(), times[1..]);
}

#[test]
fn a_segment_that_arrives_after_the_rto_but_before_the_timer_fires_is_handled_in_time() {
    let (mut client, mut server, csm) = greeting(250);
    // The RTO is over at 2.784 s, the timer fires at 2.816 s.
    let server_csm = answers(&mut server, Time::from_nanos(1_200 * MS), &csm).remove(0);
    let request = answers(&mut client, Time::from_nanos(2_800 * MS), &server_csm);
    assert_eq!(
        request.iter().map(Vec::len).collect::<Vec<_>>(),
        [48],
        "the CSM is acknowledged and not repeated"
    );
    // The RTT of the CSM was 1.984 s: SRTT 0.822 s, RTTVAR 0.578 s, RTO 3.134 s, with which 5.934 s become 6.144 s.
    let repeated = alone(&mut client, Time::from_secs(7));
    assert_eq!(repeated.iter().map(|(time, _)| time.as_nanos() / MS).collect::<Vec<_>>(), [6_144]);
}

#[test]
fn a_repeated_syn_is_answered_at_once_and_restarts_the_timer() {
    let mut client = client();
    let syn = alone(&mut client, Time::from_secs(1)).remove(0).1;
    let mut server = TcpServer::new(SERVER, response(), 10, TcpParameters::default(), 2);
    let first = answers(&mut server, Time::ZERO, &syn);
    assert_eq!(first.len(), 1);
    assert_eq!(flags(&first[0]), SYN | ACK);
    assert_eq!(answers(&mut server, Time::from_secs(1), &syn), first);
    assert_eq!(server.connections(), 1);
    let repeated = alone(&mut server, Time::from_secs(10));
    assert_eq!(repeated.iter().map(|(time, _)| time.as_nanos() / MS).collect::<Vec<_>>(), [3_000, 7_000]);
}

#[test]
fn a_tcp_segment_without_a_connection_is_answered_with_a_reset() {
    let mut client = client();
    let syn = alone(&mut client, Time::from_secs(1)).remove(0).1;
    let mut server = TcpServer::new(SERVER, response(), 10, TcpParameters::default(), 2);
    let syn_ack = answers(&mut server, Time::ZERO, &syn).remove(0);
    let greeting = answers(&mut client, Time::from_secs(1), &syn_ack);
    assert_eq!(greeting.len(), 2, "the ACK leaves before the CSM");
    let mut another = TcpServer::new(SERVER, response(), 10, TcpParameters::default(), 3);
    let reset = answers(&mut another, Time::from_secs(1), &greeting[1]).remove(0);
    assert_eq!(flags(&reset), RST);
    assert_eq!(another.connections(), 0);
    // The client tries again over a new connection.
    let again = answers(&mut client, Time::from_secs(2), &reset);
    assert_eq!(again.iter().map(|packet| flags(packet)).collect::<Vec<_>>(), [SYN]);
    assert_eq!(client.report().failed_connections, 1);
}

#[test]
fn a_full_tcp_server_does_not_answer_a_syn() {
    let mut client = client();
    let syn = alone(&mut client, Time::from_secs(1)).remove(0).1;
    let mut server = TcpServer::new(SERVER, response(), 0, TcpParameters::default(), 2);
    assert!(answers(&mut server, Time::ZERO, &syn).is_empty());
    assert_eq!(server.counters().refused, 1);
}

#[test]
fn an_oversized_message_aborts_the_connection_and_finally_the_transfer() {
    let server = TcpParameters { max_message_bytes: 7, ..TcpParameters::default() };
    let run = Cell { server, ..Cell::quiet() }.run(1);
    let report = run.report();
    assert!(report.abandoned.is_some());
    assert_eq!(report.completions.len(), 0);
    assert_eq!(u64::from(report.failed_connections), run.server().counters().broken);
    assert_eq!(run.server().connections(), 0);
}

#[test]
fn bytes_that_are_not_ip_packets_are_counted_and_dropped() {
    let damage = Luck::new(1).stream("damage");
    let mut server = TcpServer::new(SERVER, response(), 10, TcpParameters::default(), 2);
    let mut client = client();
    let syn = alone(&mut client, Time::from_secs(1)).remove(0).1;
    for step in 0..20_000 {
        let mut packet = syn.clone();
        for n in 0..=damage.below(4, step, 0, 0) {
            let at = damage.below(packet.len() as u64, step, 1, n) as usize;
            packet[at] = damage.bits(step, 2, n) as u8;
        }
        packet.truncate(1 + damage.below(60, step, 3, 0) as usize);
        let now = Time::from_nanos(step * MS);
        answers(&mut server, now, &packet);
        answers(&mut client, now, &packet);
    }
    assert!(server.counters().malformed > 1_000);
    assert!(server.connections() <= 10);
}

#[test]
fn a_tcp_connection_ends_with_a_fin_from_either_side() {
    assert_eq!(Cell::quiet().run(1).world.tap().fins, [1, 1]);
}
