//! Queue management at work, beside drop-tail.

use coapace_sim::{
    Accounting, CodelConfig, Ecn, Event, FqCodelConfig, Hop, Luck, Mark, Network, Node, NodeId, Outgoing,
    PacketCounters, Pcapng, PieConfig, Queue, Rate, Record, RedConfig, Site, Span, Tap, Time, World,
};

use crate::hosts::Host;

const ONE: Site = Site(0);
const OTHER: Site = Site(1);
const MS: u64 = 1_000_000;

/// A link of 1 Mbit/s: 1,000 bytes take 8 ms.
const RATE: Rate = Rate { bits_per_second: 1_000_000, capacity_bytes: 50_000 };

/// The packets that arrived: moment, sender, exchange and ECN field of each.
#[derive(Default)]
struct Arrivals(Vec<(u64, u32, u32, Ecn)>);

impl Tap for Arrivals {
    fn record(&mut self, record: &Record<'_>) {
        if record.event == Event::Delivered {
            let exchange = record.mark.exchange;
            self.0.push((record.time.as_nanos(), record.from.0, exchange, record.ecn));
        }
    }
}

/// Runs senders, each with packets of 972 bytes (1,000 with headers) at moments in ms, over one hop.
fn run<T: Tap>(queue: Queue, ecn: (bool, bool), senders: &[Vec<u64>], tap: T) -> T {
    let (marks, is_ecn_capable) = ecn;
    let mut network = Network::new(Luck::new(1), Accounting::Ipv4).ecn_capable(is_ecn_capable);
    let hop = Hop { rate: Some(RATE), queue, marks, delay: Span::from_millis(10), ..Hop::default() };
    let hop = network.add_hop("hop", hop).unwrap();
    network.connect(ONE, OTHER, &[hop]).unwrap();
    let mut world = World::new(network, tap);
    world.add(OTHER, Host::sink());
    for sender in senders {
        world.add(ONE, Host::sender(NodeId(0), sender.iter().map(|ms| (ms * MS, 972))));
    }
    world.wake_all();
    world.run(Time::MAX);
    world.into_parts().1
}

/// Returns moments at which a packet is sent each `gap` ms.
fn steady(gap: u64, until: u64) -> Vec<u64> {
    (0..until / gap).map(|n| n * gap).collect()
}

#[test]
fn queue_management_that_never_drops_equals_drop_tail_to_the_nanosecond() {
    let never = Span::from_secs(1_000_000);
    let senders = [steady(5, 2_000), steady(7, 2_000)];
    let expected =
        run(Queue::DropTail, (false, false), &senders, (Arrivals::default(), PacketCounters::new()));
    for queue in [
        Queue::Codel(CodelConfig { target: never, ..CodelConfig::RFC_8289 }),
        Queue::Pie(PieConfig { max_burst: never, ..PieConfig::RFC_8033 }),
        Queue::Red(RedConfig { min_packets: 1_000_000, max_packets: 2_000_000, ..RedConfig::GENTLE }),
    ] {
        let (arrivals, counters) =
            run(queue, (false, false), &senders, (Arrivals::default(), PacketCounters::new()));
        assert_eq!(arrivals.0, expected.0.0);
        let hop = |counters: &PacketCounters| {
            let hop = counters.hop(coapace_sim::HopId(0));
            (
                hop.packets,
                hop.dropped,
                hop.max_queue_bytes,
                hop.mean_queue_bytes(Time::from_secs(1)).to_bits(),
            )
        };
        assert!(counters.dropped > 0 && hop(&counters).2 == 50_000);
        assert_eq!(hop(&counters), hop(&expected.1));
    }
}

#[test]
fn packets_are_marked_if_both_hop_and_packet_support_ecn() {
    let managed = [
        Queue::Codel(CodelConfig::RFC_8289),
        Queue::FqCodel(FqCodelConfig::RFC_8290),
        Queue::Pie(PieConfig::RFC_8033),
        Queue::Red(RedConfig { weight: 0.05, ..RedConfig::GENTLE }),
    ];
    // A quarter more than the link carries, for a second.
    let senders = [steady(6, 1_000)];
    for queue in managed {
        for ecn in [(false, false), (true, false), (false, true), (true, true)] {
            let (arrivals, counters) =
                run(queue, ecn, &senders, (Arrivals::default(), PacketCounters::new()));
            let marked = arrivals.0.iter().filter(|arrival| arrival.3 == Ecn::Congested).count() as u64;
            assert_eq!(marked, counters.marked);
            assert_eq!(marked > 0, ecn == (true, true), "{queue:?} {ecn:?}");
            let hop = counters.hop(coapace_sim::HopId(0));
            assert!(ecn == (true, true) || hop.discarded > 0, "{queue:?}");
        }
    }
    let drop_tail = run(Queue::DropTail, (true, true), &senders, PacketCounters::new());
    assert_eq!(drop_tail.marked, 0);
}

/// A host that counts the packets which are said to be marked before they come.
struct Ear(Host, u64);

impl Node for Ear {
    fn handle_datagram(&mut self, now: Time, from: NodeId, mark: Mark, bytes: &[u8]) {
        self.0.handle_datagram(now, from, mark, bytes);
    }
    fn congestion_experienced(&mut self, from: NodeId, _: Mark) {
        assert_eq!(from, NodeId(1));
        self.1 += 1;
    }
    fn handle_timeout(&mut self, now: Time) {
        self.0.handle_timeout(now);
    }
    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<Outgoing> {
        self.0.poll_transmit(now, buffer)
    }
    fn poll_timeout(&self) -> Option<Time> {
        self.0.poll_timeout()
    }
}

#[test]
fn a_node_is_notified_of_every_ecn_marked_packet_that_it_receives() {
    let mut network = Network::new(Luck::new(1), Accounting::Ipv4).ecn_capable(true);
    let queue = Queue::Codel(CodelConfig::RFC_8289);
    let hop = network.add_hop("hop", Hop { rate: Some(RATE), queue, marks: true, ..Hop::default() }).unwrap();
    network.connect(ONE, OTHER, &[hop]).unwrap();
    let mut world = World::new(network, PacketCounters::new());
    world.add(OTHER, Ear(Host::sink(), 0));
    world.add(ONE, Ear(Host::sender(NodeId(0), steady(6, 1_000).into_iter().map(|ms| (ms * MS, 972))), 0));
    world.wake_all();
    world.run(Time::MAX);
    assert!(world.tap().marked > 0);
    assert_eq!(world.nodes()[0].1, world.tap().marked);
}

#[test]
fn captures_contain_the_ecn_field_of_arriving_packets() {
    let pcapng = Pcapng::new(Vec::new(), Accounting::Ipv4, 0..1, &["hop".to_owned()]);
    let codel = Queue::Codel(CodelConfig::RFC_8289);
    let (pcapng, counters) = run(codel, (true, true), &[steady(6, 1_000)], (pcapng, PacketCounters::new()));
    let bytes = pcapng.finish().unwrap();
    // IPv4 headers without options begin with 45, and these packets have 1,000 = 0x3e8 bytes.
    let with = |ecn: u8| bytes.windows(4).filter(|start| **start == [0x45, ecn, 0x03, 0xe8]).count() as u64;
    assert_eq!((with(3), with(0)), (counters.marked, 0));
    assert_eq!(with(2), counters.sent + counters.delivered - counters.marked);
}

#[test]
fn fq_codel_protects_a_sparse_flow_from_a_greedy_one() {
    let longest = |queue| {
        let senders = [steady(4, 4_000), (0..20).map(|n| 1_000 + n * 101).collect()];
        let sparse: Vec<_> = senders[1].clone();
        let arrivals = run(queue, (false, false), &senders, Arrivals::default());
        let of_sparse = arrivals.0.iter().filter(|arrival| arrival.1 == 2);
        of_sparse.map(|arrival| arrival.0 / MS - sparse[arrival.2 as usize]).max().unwrap()
    };
    // 10 ms of delay, 8 ms of its own transmission, and up to 8 ms of the packet before it.
    assert!(longest(Queue::FqCodel(FqCodelConfig::RFC_8290)) <= 26);
    assert!(longest(Queue::DropTail) > 400);
}
