//! The cost of a mesh: echo over a grid at a fixed load, and its growth with the number of nodes.
//!
//! `grid36` is 600 simulated seconds of 6×6 nodes that offer 5 and 6 kbit/s of messages of 96 bytes together, without and with
//! RPL. `growth` has grids of more nodes with the same load in each neighbourhood, so that the radio transmissions grow with
//! the nodes. Its throughput is in radio transmissions.
#![allow(missing_docs)]

use coapace_sim::mesh::{LowpanConfig, MacConfig, Mesh, MeshConfig, RadioConfig, RoutingConfig, RplConfig};
use coapace_sim::{Layout, Luck, Mark, Node, NodeId, Outgoing, Position, Site, Span, Time, Transport, World};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const MESSAGE_BYTES: usize = 96;

/// A host that sends requests to `to` at given times, and answers requests with a short message.
struct Host {
    to: Option<NodeId>,
    next: Time,
    every: Span,
    asked: u32,
    is_due: bool,
    answers: Vec<(NodeId, Mark)>,
}

impl Node for Host {
    fn handle_datagram(&mut self, _: Time, from: NodeId, mark: Mark, bytes: &[u8]) {
        if bytes.len() == MESSAGE_BYTES {
            self.answers.push((from, mark));
        }
    }
    fn handle_timeout(&mut self, now: Time) {
        (self.is_due, self.next) = (true, now + self.every);
    }
    fn poll_transmit(&mut self, _: Time, buffer: &mut Vec<u8>) -> Option<Outgoing> {
        if let Some((to, mark)) = self.answers.pop() {
            buffer.resize(4, 0);
            return Some(Outgoing { to, mark, transport: Transport::Udp });
        }
        let to = self.to.filter(|_| self.is_due)?;
        self.is_due = false;
        buffer.resize(MESSAGE_BYTES, 0);
        self.asked += 1;
        Some(Outgoing { to, mark: Mark { exchange: self.asked, transmission: 0 }, transport: Transport::Udp })
    }
    fn poll_timeout(&self) -> Option<Time> {
        self.to.map(|_| self.next)
    }
}

/// Returns a grid in which every node sends requests to a node at most `hops` rows and columns towards the corner, so often
/// that each 36 nodes offer `bits_per_second`.
fn world(side: u32, hops: u32, bits_per_second: u64, routing: &RoutingConfig) -> World<Host, (), Mesh> {
    let place = |n: u32| Position { x: 10.0 * f64::from(n % side), y: 10.0 * f64::from(n / side) };
    let layout = Layout { places: (0..side * side).map(place).collect(), root: 0, sinks: vec![0] };
    let config = MeshConfig {
        radio: RadioConfig::UNIT_DISK,
        mac: MacConfig::CONTIKI_2,
        lowpan: LowpanConfig::CONTIKI_3,
        routing: routing.clone(),
    };
    let luck = Luck::new(1);
    let mesh = Mesh::new(luck, &layout, Vec::new(), config).expect("the layout is right");
    let mut world = World::new(mesh, ());
    let every = Span::from_secs(36 * MESSAGE_BYTES as u64 * 8) / bits_per_second;
    for n in 0..side * side {
        let next = Time::from_secs(2) + luck.stream("first").within(every, u64::from(n), 0, 0);
        let nearer = |at: u32| at - (at % hops.min(side)).min(at);
        let to = nearer(n / side) * side + nearer(n % side);
        let to = (to != n).then_some(NodeId(to));
        world.add(Site(0), Host { to, next, every, asked: 0, is_due: false, answers: Vec::new() });
    }
    world.wake_all();
    world
}

/// Returns the number of frames and acknowledgements sent.
fn transmissions(world: &World<Host, (), Mesh>) -> u64 {
    let nodes = world.nodes().len() as u32;
    let counters = (0..nodes).map(|node| world.medium().counters(NodeId(node)));
    counters.map(|counters| counters.frames + counters.acks).sum()
}

fn grid36(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("grid36");
    group.sample_size(10);
    for (name, routing) in
        [("shortest", RoutingConfig::Shortest), ("rpl", RoutingConfig::Rpl(RplConfig::CONTIKI_3))]
    {
        for load in [5_000, 6_000] {
            let run = || {
                let mut world = world(6, 6, load, &routing);
                world.run(Time::from_secs(600));
                transmissions(&world)
            };
            println!("{name}, {load} bit/s: {} radio transmissions in 600 s", run());
            group.throughput(Throughput::Elements(600));
            group.bench_function(BenchmarkId::new(name, load), |bencher| bencher.iter(run));
        }
    }
    group.finish();
}

fn growth(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("growth");
    group.sample_size(10);
    for side in [6, 32, 64, 100] {
        let run = || {
            let mut world = world(side, 3, 3_000, &RoutingConfig::Shortest);
            world.run(Time::from_secs(60));
            transmissions(&world)
        };
        group.throughput(Throughput::Elements(run()));
        group.bench_function(BenchmarkId::from_parameter(side * side), |bencher| bencher.iter(run));
    }
    group.finish();
}

criterion_group!(benches, grid36, growth);
criterion_main!(benches);
