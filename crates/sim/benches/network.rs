//! The cost of an event: closed-loop echo clients through the bottleneck of Raitahila 2019, without CoAP.
//!
//! Measures 400 clients with the smallest and with the largest buffer, and 100,000 clients: once over links of 30 kbit/s, which
//! drop most of their requests, and once over links a thousand times as fast. Each client keeps a retransmission timer.
#![allow(missing_docs)]

use std::collections::VecDeque;

use coapace_sim::{
    Accounting, Hop, Jitter, Luck, Mark, Network, Node, NodeId, Outgoing, Rate, Site, Span, Stream, Time,
    Transport, World,
};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const SERVER: NodeId = NodeId(0);

enum Host {
    Client { id: u64, mark: Mark, due: bool, deadline: Time, luck: Stream },
    Server(VecDeque<(NodeId, Mark)>),
}

impl Node for Host {
    fn handle_datagram(&mut self, now: Time, from: NodeId, mark: Mark, _: &[u8]) {
        match self {
            Self::Client { id, mark: own, due, deadline, luck } => {
                if mark.exchange == own.exchange {
                    *own = Mark { exchange: own.exchange + 1, transmission: 0 };
                    *due = true;
                    *deadline = now + timeout(*luck, *id, *own);
                }
            }
            Self::Server(answers) => answers.push_back((from, mark)),
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        if let Self::Client { id, mark, due, deadline, luck } = self {
            mark.transmission = mark.transmission.saturating_add(1);
            *due = true;
            let backoff = 1 << mark.transmission.min(4);
            *deadline = now + timeout(*luck, *id, *mark) * backoff;
        }
    }

    fn poll_transmit(&mut self, _: Time, buffer: &mut Vec<u8>) -> Option<Outgoing> {
        match self {
            Self::Client { mark, due, .. } => {
                if !std::mem::take(due) {
                    return None;
                }
                buffer.extend_from_slice(&[1; 10]);
                Some(Outgoing { to: SERVER, mark: *mark, transport: Transport::Udp })
            }
            Self::Server(answers) => {
                let (to, mark) = answers.pop_front()?;
                buffer.extend_from_slice(&[2; 65]);
                Some(Outgoing { to, mark, transport: Transport::Udp })
            }
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        match self {
            Self::Client { deadline, .. } => Some(*deadline),
            Self::Server(_) => None,
        }
    }
}

/// Returns the timeout of a transmission: 2 to 3 s.
fn timeout(luck: Stream, client: u64, mark: Mark) -> Span {
    let (exchange, step) = (u64::from(mark.exchange), u64::from(mark.transmission));
    Span::from_secs(2) + luck.within(Span::from_secs(1), client, exchange, step)
}

fn bottleneck(clients: u32, capacity_bytes: u64, speed: u64) -> World<Host> {
    let luck = Luck::new(1);
    let mut network = Network::new(luck, Accounting::Ipv4);
    let mut link = |name, bits_per_second: u64, ms: u64| {
        let rate = Some(Rate { bits_per_second: bits_per_second * speed, capacity_bytes });
        network.add_hop(name, Hop { rate, delay: Span::from_millis(ms), ..Hop::default() }).unwrap()
    };
    let (up, down) = (link("up", 60_000, 200), link("down", 30_000, 400));
    let jitter = Some(Jitter { min: Span::from_millis(10), max: Span::from_millis(20) });
    let mut jitter = |name| network.add_hop(name, Hop { jitter, ..Hop::default() }).unwrap();
    let (to, from) = (jitter("to the server"), jitter("from the server"));
    let (field, room) = (Site(0), Site(1));
    network.connect(field, room, &[up, to]).unwrap();
    network.connect(room, field, &[from, down]).unwrap();
    let mut world = World::new(network, ());
    world.add(room, Host::Server(VecDeque::new()));
    for id in 1..=u64::from(clients) {
        let deadline = Time::from_nanos(2_000_000_000 + luck.stream("rto").below(1_000_000_000, id, 0, 0));
        let luck = luck.stream("rto");
        world.add(field, Host::Client { id, mark: Mark::default(), due: true, deadline, luck });
    }
    world.wake_all();
    world
}

fn cases(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("bottleneck");
    group.sample_size(20);
    for (name, clients, capacity_bytes, speed, warm, seconds) in [
        ("400 clients, 2500 B", 400, 2_500, 1, 100, 5_000),
        ("400 clients, 1410000 B", 400, 1_410_000, 1, 100, 5_000),
        ("100000 clients, 2500 B", 100_000, 2_500, 1, 100, 100),
        ("100000 clients, 1410000 B, 1000 times as fast", 100_000, 1_410_000, 1_000, 20, 20),
    ] {
        // The number of events is a property of the case, so they are counted once.
        let mut world = bottleneck(clients, capacity_bytes, speed);
        let before = world.run(Time::from_secs(warm)).events;
        let events = world.run(Time::from_secs(warm + seconds)).events - before;
        group.throughput(Throughput::Elements(events));
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter_batched(
                || {
                    let mut world = bottleneck(clients, capacity_bytes, speed);
                    world.run(Time::from_secs(warm));
                    world
                },
                |mut world| {
                    world.run(Time::from_secs(warm + seconds));
                    world
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, cases);
criterion_main!(benches);
