//! A mesh from end to end: hosts that know nothing of radios, and the packets that arrive.

use std::fmt::Write;

use coapace_sim::mesh::{
    Delivery, LowpanConfig, MacConfig, Mesh, MeshConfig, MeshError, NodeCounters, RadioConfig, RoutingConfig,
    RplConfig,
};
use coapace_sim::{
    Layout, Luck, Mark, Node, NodeId, Outgoing, PacketCounters, Position, Site, Span, Time, Transport,
    Waypoint, World,
};

/// A host that sends a packet every `every`, and keeps a list of the packets that arrive.
struct Host {
    to: Option<NodeId>,
    next: Time,
    every: Span,
    bytes: usize,
    sent: u32,
    is_due: bool,
    heard: Vec<(Time, NodeId, u32)>,
}

impl Node for Host {
    fn handle_datagram(&mut self, now: Time, from: NodeId, mark: Mark, bytes: &[u8]) {
        assert!(bytes.iter().all(|&byte| byte == mark.exchange as u8));
        self.heard.push((now, from, mark.exchange));
    }
    fn handle_timeout(&mut self, now: Time) {
        self.is_due = true;
        self.next = now + self.every;
    }
    fn poll_transmit(&mut self, _: Time, buffer: &mut Vec<u8>) -> Option<Outgoing> {
        let to = self.to.filter(|_| self.is_due)?;
        self.is_due = false;
        buffer.resize(self.bytes, self.sent as u8);
        let mark = Mark { exchange: self.sent, transmission: 0 };
        self.sent += 1;
        Some(Outgoing { to, mark, transport: Transport::Udp })
    }
    fn poll_timeout(&self) -> Option<Time> {
        self.to.map(|_| self.next)
    }
}

fn config() -> MeshConfig {
    MeshConfig {
        radio: RadioConfig::UNIT_DISK,
        mac: MacConfig::STANDARD,
        lowpan: LowpanConfig::CONTIKI_3,
        routing: RoutingConfig::Shortest,
    }
}

fn chain(nodes: u32) -> Layout {
    let places = (0..nodes).map(|n| Position { x: 10.0 * f64::from(n), y: 0.0 }).collect();
    Layout { places, root: 0, sinks: vec![0] }
}

fn grid(side: u32) -> Layout {
    let place = |n: u32| Position { x: 10.0 * f64::from(n % side), y: 10.0 * f64::from(n / side) };
    Layout { places: (0..side * side).map(place).collect(), root: 0, sinks: vec![0] }
}

/// Returns a world in which every node but the sink sends it packets of so many bytes, every so many milliseconds, each from
/// another moment on.
fn world(
    seed: u64,
    layout: &Layout,
    waypoints: Vec<Waypoint>,
    config: MeshConfig,
    (interval_ms, bytes): (u64, usize),
) -> World<Host, PacketCounters, Mesh> {
    let luck = Luck::new(seed);
    let mesh = Mesh::new(luck, layout, waypoints, config).unwrap();
    let mut world = World::new(mesh, PacketCounters::new());
    let every = Span::from_millis(interval_ms);
    for node in 0..layout.places.len() as u64 {
        let next = Time::from_secs(2) + luck.stream("first").within(every, node, 0, 0);
        let to = (node != 0).then_some(NodeId(0));
        world.add(Site(0), Host { to, next, every, bytes, sent: 0, is_due: false, heard: Vec::new() });
    }
    world.wake_all();
    world
}

fn total(world: &World<Host, PacketCounters, Mesh>, of: fn(NodeCounters) -> u64) -> u64 {
    (0..world.nodes().len() as u32).map(|node| of(world.medium().counters(NodeId(node)))).sum()
}

#[test]
fn at_low_load_messages_cross_a_mesh_in_the_airtime_of_their_frames() {
    let mut world = world(1, &chain(6), Vec::new(), config(), (10_000, 40));
    world.run(Time::from_secs(62));
    let sink = &world.nodes()[0];
    assert_eq!(sink.heard.len(), 5 * 6);
    assert_eq!(world.tap().delivered, 30);
    assert_eq!(world.medium().in_flight(), 0);
    // Hop by hop: 1 + 2 + 3 + 4 + 5, six times; each frame is acknowledged.
    assert_eq!(total(&world, |node| node.frames), 90);
    assert_eq!(total(&world, |node| node.acks), 90);
}

#[test]
fn hidden_nodes_collide_unless_backoffs_between_retries_are_long() {
    // 0 – 1 – 2: 0 and 2 do not hear each other, and both send to 1.
    let layout = Layout { root: 1, sinks: vec![1], ..chain(3) };
    let run = |mac| {
        let luck = Luck::new(3);
        let mesh = Mesh::new(luck, &layout, Vec::new(), MeshConfig { mac, ..config() }).unwrap();
        let mut world = World::new(mesh, PacketCounters::new());
        for node in 0..3 {
            let (next, to) = (Time::from_secs(2), (node != 1).then_some(NodeId(1)));
            let every = Span::from_micros(100_000 + 1_300 * node);
            world.add(Site(0), Host { to, next, every, bytes: 60, sent: 0, is_due: false, heard: vec![] });
        }
        world.wake_all();
        world.run(Time::from_secs(60));
        let sent: u32 = world.nodes().iter().map(|node| node.sent).sum();
        (world.nodes()[1].heard.len() as f64 / f64::from(sent), total(&world, |node| node.collided))
    };
    let (share, collided) = run(MacConfig { max_frame_retries: 0, ..MacConfig::STANDARD });
    assert!(collided > 50 && share < 0.95, "{share} {collided}");
    let (share, _) = run(MacConfig::CONTIKI_NG);
    assert!(share > 0.99, "{share}");
    // A frame takes longer than the longest first backoff, so of two hidden nodes that have collided both will again.
    let (share, _) = run(MacConfig { max_frame_retries: 7, ..MacConfig::STANDARD });
    assert!(share < 0.99, "{share}");
    let (share, _) = run(MacConfig::NONE);
    assert!(share < 0.95, "{share}");
}

/// Returns the mesh of a Cooja mote, whose frames have neither preamble nor checksum on the air.
fn cooja() -> MeshConfig {
    let radio = RadioConfig { phy_header_bytes: 0, checksum_bytes: 0, ..RadioConfig::UNIT_DISK };
    MeshConfig { radio, mac: MacConfig::CONTIKI_3, ..config() }
}

#[test]
fn the_time_of_a_hop_of_a_cooja_mote_is_turnaround_frame_and_acknowledgement() {
    // As in Contiki 3.x in Cooja: 2 ms for the turn, 32 µs a byte, 1.096 ms until the acknowledgement is sent.
    for (bytes, us) in
        [(10, 2_000 + 32 * 40 + 1_096), (96, 2_000 + 32 * 114 + 2_096 + 2_000 + 32 * 42 + 1_096)]
    {
        let mut world = world(1, &chain(2), Vec::new(), cooja(), (10_000, bytes));
        world.run(Time::from_secs(10));
        let sent = Luck::new(1).stream("first").within(Span::from_millis(10_000), 1, 0, 0);
        let (at, ..) = world.nodes()[0].heard[0];
        assert_eq!((at - (Time::from_secs(2) + sent)).as_micros(), us, "{bytes} bytes");
    }
}

#[test]
fn two_hidden_cooja_motes_that_collide_once_collide_at_every_retry() {
    let layout = Layout { root: 1, sinks: vec![1], ..chain(3) };
    let run = |mac| {
        let mesh = Mesh::new(Luck::new(3), &layout, Vec::new(), MeshConfig { mac, ..cooja() }).unwrap();
        let mut world = World::new(mesh, PacketCounters::new());
        for node in 0..3 {
            let (next, to) = (Time::from_secs(2), (node != 1).then_some(NodeId(1)));
            let every = Span::from_secs(100);
            world.add(Site(0), Host { to, next, every, bytes: 60, sent: 0, is_due: false, heard: vec![] });
        }
        world.wake_all();
        world.run(Time::from_secs(60));
        (total(&world, |node| node.frames), total(&world, |node| node.not_acknowledged))
    };
    // Both repeat at once and then a tick later, in turn: nothing is random after a missing acknowledgement.
    assert_eq!(run(MacConfig::CONTIKI_3), (16, 2));
    let (frames, given_up) = run(MacConfig { min_be: 3, ..MacConfig::CONTIKI_3 });
    assert!(frames < 16 && given_up == 0, "backoffs part them: {frames} {given_up}");
}

#[test]
fn equal_seeds_give_equal_mesh_runs() {
    let run = |seed| {
        let lossy =
            RadioConfig { delivery: Delivery::new(vec![0.75, 1.0]).unwrap(), ..RadioConfig::UNIT_DISK };
        let config = MeshConfig { radio: lossy, mac: MacConfig::CONTIKI_3, ..config() };
        let mut world = world(seed, &grid(4), Vec::new(), config, (1_000, 60));
        world.run(Time::from_secs(60)).hash
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

/// Returns a run as a table: a row for each node with its parent, the packets of it that arrived at the sink, the nanosecond
/// at which the last of them arrived, the time that its radio was sending and receiving, and its counters.
fn table(world: &World<Host, PacketCounters, Mesh>, events: u64, end: Time) -> String {
    let mut table = format!("# {events} events\nnode parent arrived last_ns transmit_ns receive_ns");
    for (name, _) in NodeCounters::default().named() {
        write!(table, " {name}").unwrap();
    }
    let mesh = world.medium();
    for node in (0..world.nodes().len() as u32).map(NodeId) {
        let parent = mesh.parent(node).map_or("-".to_owned(), |parent| parent.0.to_string());
        let arrived = world.nodes()[0].heard.iter().filter(|(_, from, _)| *from == node);
        let last = arrived.clone().next_back().map_or(0, |(at, ..)| at.as_nanos());
        let radio = mesh.radio_times(node, end);
        let (transmit, receive) = (radio.transmit.as_nanos(), radio.receive.as_nanos());
        write!(table, "\n{} {parent} {} {last} {transmit} {receive}", node.0, arrived.count()).unwrap();
        for (_, count) in mesh.counters(node).named() {
            write!(table, " {count}").unwrap();
        }
    }
    table + "\n"
}

#[test]
fn mesh_runs_equal_their_recorded_snapshots() {
    let rpl = RoutingConfig::Rpl(RplConfig::CONTIKI_3);
    for (name, mac, routing) in [
        ("mesh-standard-shortest.txt", MacConfig::STANDARD, RoutingConfig::Shortest),
        ("mesh-contiki-2-rpl.txt", MacConfig::CONTIKI_2, rpl.clone()),
        ("mesh-contiki-3-rpl.txt", MacConfig::CONTIKI_3, rpl.clone()),
        ("mesh-contiki-ng-rpl.txt", MacConfig::CONTIKI_NG, rpl),
    ] {
        let config = MeshConfig { mac, routing, ..config() };
        let (mut world, end) = (world(1, &grid(6), Vec::new(), config, (700, 90)), Time::from_secs(60));
        let events = world.run(end).events;
        crate::snapshot::check(name, &table(&world, events, end));
    }
}

#[test]
fn every_datagram_of_a_mesh_is_delivered_dropped_or_still_in_a_node() {
    for (mac, every_ms) in [
        (MacConfig::STANDARD, 300),
        (MacConfig::CONTIKI_2, 300),
        (MacConfig::CONTIKI_3, 100),
        (MacConfig::CONTIKI_NG, 100),
    ] {
        let mut world = world(1, &grid(5), Vec::new(), MeshConfig { mac, ..config() }, (every_ms, 60));
        world.run(Time::from_secs(30));
        let counters = world.tap();
        assert!(counters.dropped > 0, "the load is too high: {counters:?}");
        // A packet may arrive and be given up where its acknowledgement was lost.
        let accounted = counters.delivered + counters.dropped + world.medium().in_flight() as u64;
        assert!(accounted >= counters.sent, "{counters:?}");
        // When nothing more is sent, nothing stays behind.
        for node in 0..25 {
            world.node_mut(NodeId(node)).unwrap().to = None;
        }
        world.run(Time::from_secs(120));
        assert_eq!(world.medium().in_flight(), 0);
        assert!((0..25).all(|node| world.medium().queued(NodeId(node)) == 0));
    }
}

#[test]
fn a_node_that_moves_out_of_range_is_not_received_until_it_returns() {
    let step = |time, x| Waypoint { time: Time::from_secs(time), node: 1, position: Position { x, y: 0.0 } };
    let waypoints = vec![step(40, 10.0), step(20, 100.0)];
    let mut world = world(1, &chain(2), waypoints, config(), (1_000, 40));
    world.run(Time::from_secs(60));
    let heard = &world.nodes()[0].heard;
    let between = |from, to| {
        heard.iter().filter(|(at, ..)| (Time::from_secs(from)..Time::from_secs(to)).contains(at)).count()
    };
    assert_eq!((between(3, 20), between(20, 40), between(40, 60)), (17, 0, 20));
    assert_eq!(world.medium().counters(NodeId(1)).no_route, 20);
}

#[test]
fn with_rpl_all_messages_arrive_in_a_grid() {
    for mac in [MacConfig::STANDARD, MacConfig::CONTIKI_2, MacConfig::CONTIKI_NG] {
        let config = MeshConfig { mac, routing: RoutingConfig::Rpl(RplConfig::CONTIKI_3), ..config() };
        let mut heard = 0;
        for seed in 1..=3 {
            let mut world = world(seed, &grid(6), Vec::new(), config.clone(), (20_000, 40));
            world.run(Time::from_secs(120));
            let before = world.nodes()[0].heard.len();
            world.run(Time::from_secs(320));
            heard += world.nodes()[0].heard.len() - before;
            assert_eq!(world.medium().parent(NodeId(0)), None);
            for node in 1..36 {
                // Up the tree to the border router, over more hops than the shortest path at most by a few.
                let (mut at, mut hops) = (NodeId(node), 0);
                while at != NodeId(0) {
                    at = world.medium().parent(at).unwrap();
                    hops += 1;
                    assert!(hops <= node % 6 + node / 6 + 4, "from {node}");
                }
            }
            let control = total(&world, |node| node.control_frames);
            let frames = total(&world, |node| node.frames);
            assert!(control > 100 && control < frames / 2, "{mac:?}: {control} of {frames}");
        }
        assert!((3 * 340..=3 * 350).contains(&heard), "{mac:?}: {heard} of {}", 3 * 350);
    }
}

#[test]
fn with_rpl_a_node_that_moves_to_the_other_end_is_reached_again() {
    let to = |time, x| Waypoint { time: Time::from_secs(time), node: 5, position: Position { x, y: 5.0 } };
    let config = MeshConfig { routing: RoutingConfig::Rpl(RplConfig::CONTIKI_3), ..config() };
    let mut world = world(1, &chain(6), vec![to(200, 5.0)], config, (5_000, 40));
    world.run(Time::from_secs(199));
    assert_eq!(world.medium().parent(NodeId(5)), Some(NodeId(4)));
    world.run(Time::from_secs(500));
    assert!(world.medium().parent(NodeId(5)).is_some_and(|parent| parent.0 < 2), "between both");
    let of_it = |&&(at, from, _): &&(Time, NodeId, u32)| from == NodeId(5) && at > Time::from_secs(400);
    assert!(world.nodes()[0].heard.iter().filter(of_it).count() >= 19);
}

#[test]
fn the_times_in_radio_states_add_up_to_the_whole_run() {
    let mut world = world(1, &grid(3), Vec::new(), config(), (200, 60));
    world.run(Time::from_secs(30));
    for node in 0..9 {
        let times = world.medium().radio_times(NodeId(node), Time::from_secs(30));
        let all = times.transmit + times.receive + times.listen + times.sleep;
        assert_eq!(all, Span::from_secs(30));
        assert!(
            times.transmit > Span::ZERO && times.receive > Span::ZERO && times.sleep < Span::from_secs(1)
        );
    }
}

#[test]
fn errors_about_a_mesh_are_one_line() {
    let new = |layout: &Layout, node| {
        let waypoint = Waypoint { time: Time::ZERO, node, position: Position::default() };
        Mesh::new(Luck::new(1), layout, vec![waypoint], config()).map(|_| ()).unwrap_err()
    };
    assert_eq!(new(&Layout::default(), 0), MeshError::Nodes(0));
    assert_eq!(new(&Layout { sinks: vec![7], ..chain(3) }, 0), MeshError::Unknown(7));
    assert_eq!(new(&chain(3), 3), MeshError::Waypoint(3));
}
