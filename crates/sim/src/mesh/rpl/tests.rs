//! Nodes on an ideal link layer: who hears whom is a matrix, and a frame is lost by a draw.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proptest::prelude::*;

use super::*;
use crate::Luck;

const MS: u64 = 1_000_000;
/// A frame takes so long.
const HOP_NS: u64 = 5 * MS;
/// How often the MAC sends a frame that is not acknowledged.
const TRANSMISSIONS: u8 = 8;

/// A message under way: when it arrives, its number, from whom and to whom.
type Arrival = Reverse<(Time, u64, u32, u32)>;

/// Packets go no further.
const MAX_HOPS: usize = 255;

/// Why a packet went no further.
#[derive(Debug, PartialEq, Eq)]
enum Stop {
    /// A node did not know where to send it.
    Unroutable(usize, Unroutable),
    /// The next hop was out of reach.
    Lost,
    /// It took too many hops.
    TooFar,
}

struct Links {
    nodes: Vec<RplNode>,
    hears: Vec<Vec<bool>>,
    alive: Vec<bool>,
    loss: f64,
    stream: Stream,
    now: Time,
    sent: Vec<Message>,
    arrivals: BinaryHeap<Arrival>,
}

impl Links {
    /// Node 0 is the root.
    fn new(config: &RplConfig, count: usize, seed: u64, linked: impl Fn(usize, usize) -> bool) -> Self {
        let luck = Luck::new(seed);
        let start = |id: usize| Time::from_nanos(luck.stream("start").below(1_000 * MS, id as u64, 0, 0));
        let node = |id| RplNode::new(config, NodeId(id as u32), id == 0, luck.stream("rpl"), start(id));
        Self {
            nodes: (0..count).map(node).collect(),
            hears: (0..count).map(|a| (0..count).map(|b| a != b && linked(a, b)).collect()).collect(),
            alive: vec![true; count],
            loss: 0.0,
            stream: luck.stream("loss"),
            now: Time::ZERO,
            sent: Vec::new(),
            arrivals: BinaryHeap::new(),
        }
    }

    /// Nodes in a square grid; each hears those beside, above and below it.
    fn grid(config: &RplConfig, side: usize, seed: u64) -> Self {
        Self::new(config, side * side, seed, |a, b| {
            (a / side).abs_diff(b / side) + (a % side).abs_diff(b % side) == 1
        })
    }

    fn set_link(&mut self, a: usize, b: usize, linked: bool) {
        self.hears[a][b] = linked;
        self.hears[b][a] = linked;
    }

    fn arrives(&self, from: usize, to: usize, attempt: u8) -> bool {
        let (number, link) = (self.sent.len() as u64, (from * self.nodes.len() + to) as u64);
        let lost = self.stream.unit(number, link, u64::from(attempt)) < self.loss;
        self.hears[from][to] && self.alive[to] && !lost
    }

    /// The message that is sent now arrives after so many transmissions.
    fn deliver(&mut self, from: usize, to: usize, transmissions: u8) {
        let time = self.now + HOP_NS * u64::from(transmissions);
        self.arrivals.push(Reverse((time, self.sent.len() as u64, from as u32, to as u32)));
    }

    /// Fetches what node `from` has to send and puts it on the air.
    fn transmit(&mut self, from: usize) {
        while let Some((to, message)) = self.nodes[from].poll_transmit() {
            match to {
                Some(neighbour) => {
                    let to = neighbour.0 as usize;
                    let arrived = (0..TRANSMISSIONS).find(|&attempt| self.arrives(from, to, attempt));
                    let transmissions = arrived.map_or(TRANSMISSIONS, |attempt| attempt + 1);
                    if arrived.is_some() {
                        self.deliver(from, to, transmissions);
                    }
                    self.nodes[from].on_sent(self.now, neighbour, arrived.is_some(), transmissions);
                }
                None => {
                    for to in 0..self.nodes.len() {
                        if self.arrives(from, to, 0) {
                            self.deliver(from, to, 1);
                        }
                    }
                }
            }
            self.sent.push(message);
        }
    }

    fn run(&mut self, until: Time) {
        for node in 0..self.nodes.len() {
            self.transmit(node);
        }
        loop {
            let awake = (0..self.nodes.len()).filter(|&node| self.alive[node]);
            let timer = awake.filter_map(|node| Some((self.nodes[node].poll_timeout()?, node))).min();
            let arrival = self.arrivals.peek().map(|arrival| arrival.0.0);
            let next = timer.map_or(Time::MAX, |timer| timer.0).min(arrival.unwrap_or(Time::MAX));
            if next > until {
                break;
            }
            // What a node slept through is due when it wakes.
            let next = next.max(self.now);
            self.now = next;
            let node = if arrival.is_some_and(|arrival| arrival <= next) {
                let Some(Reverse((_, number, from, to))) = self.arrivals.pop() else { break };
                if !self.alive[to as usize] {
                    continue;
                }
                let message = self.sent[number as usize];
                self.nodes[to as usize].handle(next, NodeId(from), &message);
                to as usize
            } else if let Some((_, node)) = timer {
                self.nodes[node].handle_timeout(next);
                node
            } else {
                break;
            };
            self.transmit(node);
        }
        self.now = until;
    }

    /// Sends a packet; the nodes it passed, or why it did not get on.
    fn walk(&mut self, from: usize, to: usize) -> Result<Vec<usize>, Stop> {
        let (mut path, mut before, mut option) = (vec![from], None, None);
        let mut at = from;
        while at != to {
            let ahead = self.nodes[at].forward(self.now, before, NodeId(to as u32), option);
            let (next, ahead) = ahead.map_err(|why| Stop::Unroutable(at, why))?;
            let next_at = next.0 as usize;
            let reached = self.hears[at][next_at] && self.alive[next_at];
            self.nodes[at].on_sent(self.now, next, reached, if reached { 1 } else { TRANSMISSIONS });
            self.transmit(at);
            if !reached {
                return Err(Stop::Lost);
            }
            if path.len() > MAX_HOPS {
                return Err(Stop::TooFar);
            }
            (before, option, at) = (Some(NodeId(at as u32)), Some(ahead), next_at);
            path.push(at);
        }
        Ok(path)
    }

    /// Packets to the root and from it, of every other node alive.
    fn assert_all_reach(&mut self) {
        for node in (1..self.nodes.len()).filter(|&node| self.alive[node]).collect::<Vec<_>>() {
            let (up, down) = (self.walk(node, 0), self.walk(0, node));
            assert!(up.is_ok(), "{node} up: {up:?}");
            assert!(down.is_ok(), "{node} down: {down:?}");
        }
    }

    /// Hops to the root, by the links alone.
    fn hops(&self) -> Vec<Option<usize>> {
        let mut hops = vec![None; self.nodes.len()];
        hops[0] = Some(0);
        let mut queue = VecDeque::from([0]);
        while let Some(at) = queue.pop_front() {
            for to in 0..self.nodes.len() {
                if self.hears[at][to] && self.alive[to] && hops[to].is_none() {
                    hops[to] = hops[at].map(|hops: usize| hops + 1);
                    queue.push_back(to);
                }
            }
        }
        hops
    }
}

#[test]
fn a_grid_of_36_forms_a_dodag_within_a_minute_and_all_reach_the_root_and_back() {
    for seed in 0..10 {
        let mut links = Links::grid(&RplConfig::CONTIKI_3, 6, seed);
        links.run(Time::from_secs(60));
        let hops = links.hops();
        for (node, hops) in hops.into_iter().enumerate().skip(1) {
            let hops = hops.unwrap();
            let walked = links.walk(node, 0).unwrap().len() - 1;
            assert!(walked <= hops + 2, "seed {seed}: {node} is {hops} hops away and takes {walked}");
            // A hop costs one transmission if it is known, and two if it is not.
            let rank = usize::from(links.nodes[node].rank());
            assert!(
                (128 * (1 + hops)..=128 * (1 + 2 * (hops + 2))).contains(&rank),
                "seed {seed}: {node}: {rank}"
            );
        }
        links.assert_all_reach();
        assert_eq!(links.nodes[0].routes(links.now), 35);
        assert!(links.nodes.iter().all(|node| node.counters().loops == 0));
    }
}

#[test]
fn nodes_beside_each_other_talk_through_what_is_above_both_and_no_higher() {
    // 0 is above 1, 1 above 2 and 3.
    let mut links = Links::new(&RplConfig::CONTIKI_3, 4, 1, |a, b| a.min(b) == 1 || a + b == 1);
    links.run(Time::from_secs(60));
    assert_eq!(links.walk(2, 3).unwrap(), [2, 1, 3]);
}

#[test]
fn a_node_whose_parent_dies_finds_another_and_the_root_finds_it_again() {
    // Two ways from 3 to the root.
    let mut links =
        Links::new(&RplConfig::CONTIKI_3, 4, 1, |a, b| !matches!((a.min(b), a.max(b)), (0, 3) | (1, 2)));
    links.run(Time::from_secs(60));
    let parent = links.nodes[3].parent().unwrap().0 as usize;
    links.alive[parent] = false;
    for second in 60..120 {
        let _ = links.walk(3, 0);
        links.run(Time::from_secs(second));
    }
    assert_eq!(links.nodes[3].parent(), Some(NodeId(3 - parent as u32)));
    assert_eq!(links.nodes[3].counters().parent_changes, 1);
    links.assert_all_reach();
}

#[test]
fn a_node_that_loses_its_last_parent_says_so_and_takes_its_children_along() {
    let mut links = Links::new(&RplConfig::CONTIKI_3, 4, 1, |a, b| a.abs_diff(b) == 1);
    links.run(Time::from_secs(60));
    links.assert_all_reach();
    links.set_link(0, 1, false);
    for second in 60..120 {
        let _ = links.walk(1, 0);
        links.run(Time::from_secs(second));
    }
    for node in 1..4 {
        assert_eq!((links.nodes[node].parent(), links.nodes[node].rank()), (None, INFINITE_RANK), "{node}");
        assert_eq!(links.walk(node, 0), Err(Stop::Unroutable(node, Unroutable::NoParent)));
    }
    // They come back when the link does.
    links.set_link(0, 1, true);
    links.run(Time::from_secs(300));
    links.assert_all_reach();
}

#[test]
fn a_moving_node_is_reached_through_its_new_parent_and_its_old_one_forgets_it() {
    // 3 hears 1, then 2.
    let mut links =
        Links::new(&RplConfig::CONTIKI_3, 4, 1, |a, b| matches!((a.min(b), a.max(b)), (0, 1 | 2) | (1, 3)));
    links.run(Time::from_secs(60));
    assert_eq!(links.walk(0, 3).unwrap(), [0, 1, 3]);
    links.set_link(2, 3, true);
    links.run(Time::from_secs(61));
    let dio = links.nodes[2].dio();
    links.nodes[3].handle(links.now, NodeId(2), &dio);
    links.set_link(1, 3, false);
    for second in 61..75 {
        let _ = links.walk(3, 0);
        links.run(Time::from_secs(second));
    }
    assert_eq!(links.nodes[3].parent(), Some(NodeId(2)));
    assert_eq!(links.walk(0, 3).unwrap(), [0, 2, 3]);
}

#[test]
fn a_no_path_dao_ends_a_route_at_every_node_above() {
    let mut links = Links::new(&RplConfig::CONTIKI_3, 4, 1, |a, b| a.abs_diff(b) == 1);
    links.run(Time::from_secs(60));
    let no_path =
        Message::Dao { root: NodeId(0), target: NodeId(3), sequence: Sequence::START, no_path: true };
    links.nodes[2].handle(links.now, NodeId(3), &no_path);
    // For a while it is still used.
    links.run(Time::from_secs(60) + 100 * MS);
    assert_eq!(links.walk(0, 3).unwrap(), [0, 1, 2, 3]);
    let taken_back = |node: &RplNode| node.routes.next_hop(Time::from_secs(121), NodeId(3)).is_none();
    assert!(links.nodes[..3].iter().all(taken_back));
}

#[test]
fn a_packet_sent_down_to_where_the_route_ends_comes_back_and_takes_the_route_with_it() {
    let mut links = Links::new(&RplConfig::CONTIKI_3, 4, 1, |a, b| a.abs_diff(b) == 1);
    links.run(Time::from_secs(60));
    links.nodes[2].routes.clear();
    assert_eq!(links.walk(0, 3), Err(Stop::Unroutable(1, Unroutable::ForwardingError)));
    assert_eq!(links.nodes[1].routes.next_hop(links.now, NodeId(3)), None);
    assert_eq!(links.walk(0, 3), Err(Stop::Unroutable(0, Unroutable::ForwardingError)));
    assert_eq!(links.walk(0, 3), Err(Stop::Unroutable(0, Unroutable::NoRoute)));
    // The higher DTSN asks for the route anew.
    links.run(Time::from_secs(90));
    links.assert_all_reach();
}

#[test]
fn a_loop_made_by_force_is_found_by_rank_and_broken() {
    // 1 can go either way; 1, 2 and 3 hear each other.
    let mut links = Links::new(&RplConfig::CONTIKI_3, 4, 1, |a, b| a.min(b) > 0 || a + b == 1);
    links.run(Time::from_secs(60));
    links.assert_all_reach();
    // All that belongs to 1 is below 1: that it takes 2 for its parent makes a circle, unless 2 leaves.
    links.nodes[1].neighbours.forget_ranks();
    links.nodes[1].routes.clear();
    links.nodes[1].neighbours.get_mut(NodeId(2)).expect("a neighbour").rank = 128;
    let now = links.now;
    links.nodes[1].select_parent(now);
    assert_eq!(links.nodes[1].parent(), Some(NodeId(2)));
    assert_eq!(links.nodes[2].parent(), Some(NodeId(1)));
    assert!(matches!(links.walk(3, 0), Err(Stop::Unroutable(1 | 2, Unroutable::Loop))));
    links.run(Time::from_secs(180));
    assert!(links.nodes.iter().map(|node| node.counters().loops).sum::<u32>() > 1);
    links.assert_all_reach();
}

#[test]
fn one_rank_that_does_not_agree_is_tolerated_and_a_second_is_not() {
    let config = RplConfig::CONTIKI_3;
    let stream = Luck::new(1).stream("rpl");
    let mut node = RplNode::new(&config, NodeId(5), false, stream, Time::ZERO);
    let now = Time::from_secs(1);
    node.handle(now, NodeId(1), &Message::Dio { root: NodeId(0), rank: 384, dtsn: Sequence::START });
    assert_eq!(node.rank(), 640);
    let from_above = RplOption { sender_rank: 384, ..RplOption::default() };
    let (next, marked) = node.forward(now, Some(NodeId(2)), NodeId(0), Some(from_above)).unwrap();
    assert_eq!((next, marked.rank_error, marked.sender_rank), (NodeId(1), true, 640));
    let again = RplOption { sender_rank: 384, ..marked };
    assert_eq!(node.forward(now, Some(NodeId(2)), NodeId(0), Some(again)), Err(Unroutable::Loop));
    let from_below = RplOption { sender_rank: 641, ..marked };
    assert!(node.forward(now, Some(NodeId(2)), NodeId(0), Some(from_below)).is_ok());
    assert_eq!((node.counters().rank_errors, node.counters().loops), (1, 1));
}

#[test]
fn a_node_without_room_for_routes_refuses_them_and_counts() {
    let config = RplConfig { max_routes: 2, ..RplConfig::CONTIKI_3 };
    let mut links = Links::new(&config, 5, 1, |a, b| a.abs_diff(b) == 1);
    links.run(Time::from_secs(120));
    assert_eq!(links.nodes[0].routes(links.now), 2);
    assert!(links.nodes[1].counters().routes_full > 0);
    assert!(links.walk(0, 1).is_ok() || links.walk(0, 2).is_ok());
}

#[test]
fn a_node_without_room_for_neighbours_keeps_its_parent_and_counts() {
    let config = RplConfig { max_neighbours: 3, ..RplConfig::CONTIKI_3 };
    let mut links = Links::new(&config, 8, 1, |_, _| true);
    links.run(Time::from_secs(60));
    assert!(links.nodes[1..].iter().all(|node| node.parent() == Some(NodeId(0))));
    assert!(links.nodes[1..].iter().all(|node| node.counters().neighbours_full > 0));
}

#[test]
fn a_dis_is_answered_soon_by_those_who_have_a_parent() {
    let mut links = Links::new(&RplConfig::CONTIKI_3, 3, 1, |a, b| a.abs_diff(b) == 1);
    links.run(Time::from_secs(600));
    let before = [1, 2].map(|node| links.nodes[node].counters().dios);
    let now = links.now;
    links.nodes[1].handle(now, NodeId(2), &Message::Dis);
    let soon = links.nodes[1].poll_timeout().unwrap();
    assert!(soon <= now + 4_096 * MS);
    links.run(now + 4_096 * MS);
    assert_eq!(links.nodes[1].counters().dios, before[0] + 1);
    let mut alone = RplNode::new(&RplConfig::CONTIKI_3, NodeId(9), false, links.stream, Time::ZERO);
    alone.handle(now, NodeId(2), &Message::Dis);
    assert_eq!(alone.poll_timeout(), Some(Time::from_secs(5)), "only its own DIS");
}

#[test]
fn trickle_suppresses_most_dios_where_many_hear_each_other() {
    let dios = |dio_redundancy| {
        let config = RplConfig { dio_redundancy, probing_interval_ns: 0, ..RplConfig::CONTIKI_3 };
        let mut links = Links::new(&config, 20, 1, |_, _| true);
        let sum = |links: &Links| links.nodes.iter().map(|node| node.counters().dios).sum::<u32>();
        // Until then ranks change, as links become known.
        links.run(Time::from_secs(60));
        let before = sum(&links);
        links.run(Time::from_secs(3_600));
        let suppressed = links.nodes.iter().map(|node| node.counters().dios_suppressed).sum::<u32>();
        assert_eq!(suppressed > 0, dio_redundancy > 0);
        sum(&links) - before
    };
    let (all, few) = (dios(0), dios(2));
    assert!(3 * few < all, "{few} of {all}");
}

#[test]
fn a_quiet_grid_sends_little() {
    let mut links = Links::grid(&RplConfig::CONTIKI_3, 6, 3);
    links.run(Time::from_secs(60));
    let joining = links.sent.len();
    links.run(Time::from_secs(600));
    let quiet = links.sent.len() - joining;
    // Some ten Trickle intervals of 36 nodes, and a DAO of every node at every node above it for each DIO of the parent.
    assert!(joining < 1_500, "{joining} while it forms");
    assert!(quiet < 4_000, "{quiet} in nine minutes after");
    assert_eq!(links.nodes.iter().map(|node| node.counters().outbox_full).sum::<u32>(), 0);
    let dis = links.sent.iter().filter(|&&message| message == Message::Dis).count();
    assert!(dis <= 36, "{dis}");
}

#[test]
fn the_same_stream_is_the_same_history_and_another_is_another() {
    let history = |seed| {
        let mut links = Links::grid(&RplConfig::CONTIKI_NG, 4, seed);
        links.loss = 0.2;
        links.run(Time::from_secs(300));
        (links.sent, links.nodes.iter().map(RplNode::counters).collect::<Vec<_>>())
    };
    assert!(history(7) == history(7));
    assert!(history(7) != history(8));
}

#[test]
fn the_defaults_of_the_rfc_form_a_dodag_too() {
    let mut links = Links::grid(&RplConfig::STANDARD, 5, 1);
    links.run(Time::from_secs(60));
    links.assert_all_reach();
}

#[test]
fn a_node_is_small() {
    assert!(size_of::<Message>() <= 16);
    assert!(size_of::<RplNode>() <= 512, "{}", size_of::<RplNode>());
}

/// Links of a random graph of `count` nodes: each node but the first hears one before it, and pairs hear each other by
/// chance.
fn linked(count: usize, seed: u64, density: f64) -> Vec<Vec<bool>> {
    let stream = Luck::new(seed).stream("links");
    let mut links = vec![vec![false; count]; count];
    for a in 1..count {
        let tree = stream.below(a as u64, a as u64, 0, 0) as usize;
        for b in 0..a {
            let linked = b == tree || stream.unit(a as u64, b as u64, 1) < density;
            (links[a][b], links[b][a]) = (linked, linked);
        }
    }
    links
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn connected_graphs_converge(count in 2usize..25, seed in any::<u64>(), density in 0.0..0.5) {
        let graph = linked(count, seed, density);
        let mut links = Links::new(&RplConfig::CONTIKI_3, count, seed, |a, b| graph[a][b]);
        links.run(Time::from_secs(300));
        links.assert_all_reach();
    }

    #[test]
    fn loss_and_change_never_make_packets_go_round_for_ever_nor_storms(
        count in 2usize..20, seed in any::<u64>(), density in 0.0..0.5, loss in 0.0..0.6, tables in 1u16..20,
    ) {
        let graph = linked(count, seed, density);
        let config =
            RplConfig { max_neighbours: tables, max_routes: 2 * tables, ..RplConfig::CONTIKI_3 };
        let mut links = Links::new(&config, count, seed, |a, b| graph[a][b]);
        links.loss = loss;
        let change = Luck::new(seed).stream("change");
        for round in 0..40u64 {
            let pick = |bound: usize, part| change.below(bound as u64, round, part, 0) as usize;
            let (a, b, c) = (pick(count, 0), pick(count, 1), pick(count, 2));
            if a != b {
                let linked = !links.hears[a][b];
                links.set_link(a, b, linked);
            }
            links.alive[1.max(c)  % count] = pick(4, 3) > 0;
            for node in (0..count).filter(|&node| links.alive[node]).collect::<Vec<_>>() {
                for to in [0, pick(count, 4)] {
                    prop_assert!(links.walk(node, to) != Err(Stop::TooFar));
                }
            }
            let now = links.now;
            links.run(now + 10_000 * MS);
        }
        prop_assert!(links.sent.len() < 400 * 20 * count, "{} messages", links.sent.len());
        for node in &links.nodes {
            prop_assert!(node.routes(links.now) <= usize::from(config.max_routes));
        }
    }
}
