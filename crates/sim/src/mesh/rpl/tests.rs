//! Tests of whole networks: they form, come to rest, and never break for good. The parts of a node have tests of their own.

mod links;
mod lone;

use proptest::prelude::*;

pub(crate) use self::links::{Stop, TestLinks};
pub(crate) use self::lone::{between, dao, dio, fetched};
use super::{RplMessage, RplNode};
use crate::mesh::RplConfig;
use crate::{Luck, Span, Time};

#[test]
fn a_grid_of_36_forms_a_dodag_with_routes_both_ways_within_a_minute() {
    for seed in 0..10 {
        let mut links = TestLinks::grid(&RplConfig::CONTIKI_3, 6, seed);
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
fn an_rpl_root_sends_nothing_before_its_start() {
    let config = RplConfig { root_start: Span::from_secs(30), ..RplConfig::CONTIKI_3 };
    let mut links = TestLinks::grid(&config, 3, 1);
    links.run(Time::from_secs(30));
    assert!(links.sent.contains(&RplMessage::Dis) && links.sent.iter().all(|&it| it == RplMessage::Dis));
    links.run(Time::from_secs(90));
    links.assert_all_reach();
}

#[test]
fn packets_between_siblings_pass_their_nearest_common_ancestor() {
    // 0 is above 1, 1 above 2 and 3.
    let mut links = TestLinks::new(&RplConfig::CONTIKI_3, 4, 1, |a, b| a.min(b) == 1 || a + b == 1);
    links.run(Time::from_secs(60));
    assert_eq!(links.walk(2, 3).unwrap(), [2, 1, 3]);
}

#[test]
fn rpl_sends_few_control_messages_in_a_stable_grid() {
    let mut links = TestLinks::grid(&RplConfig::CONTIKI_3, 6, 3);
    links.run(Time::from_secs(60));
    let joining = links.sent.len();
    links.run(Time::from_secs(600));
    let quiet = links.sent.len() - joining;
    // Some ten Trickle intervals of 36 nodes, and a DAO of every node at every node above it for each DIO of the parent.
    assert!(joining < 1_500, "{joining} while it forms");
    assert!(quiet < 4_000, "{quiet} in nine minutes after");
    assert_eq!(links.nodes.iter().map(|node| node.counters().outbox_full).sum::<u32>(), 0);
    let dis = links.sent.iter().filter(|&&message| message == RplMessage::Dis).count();
    assert!(dis <= 36, "{dis}");
}

#[test]
fn equal_random_streams_give_equal_rpl_histories_and_different_ones_do_not() {
    let history = |seed| {
        let mut links = TestLinks::grid(&RplConfig::CONTIKI_NG, 4, seed);
        links.loss = 0.2;
        links.run(Time::from_secs(300));
        (links.sent, links.nodes.iter().map(RplNode::counters).collect::<Vec<_>>())
    };
    assert!(history(7) == history(7));
    assert!(history(7) != history(8));
}

#[test]
fn rpl_with_the_defaults_of_the_rfc_forms_a_dodag() {
    let mut links = TestLinks::grid(&RplConfig::STANDARD, 5, 1);
    links.run(Time::from_secs(60));
    links.assert_all_reach();
}

#[test]
fn the_rpl_state_of_a_node_is_small() {
    assert!(size_of::<RplMessage>() <= 16);
    assert!(size_of::<RplNode>() <= 512, "{}", size_of::<RplNode>());
}

/// Returns the links of a random graph: each node but the first hears one before it, and others by chance.
fn linked(seed: u64, density: f64) -> impl Fn(usize, usize) -> bool {
    let stream = Luck::new(seed).stream("links");
    move |a, b| {
        let (low, high) = (a.min(b) as u64, a.max(b) as u64);
        low == stream.below(high, high, 0, 0) || stream.unit(high, low, 1) < density
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rpl_converges_on_every_connected_graph(count in 2usize..25, seed in any::<u64>(), density in 0.0..0.5) {
        let mut links = TestLinks::new(&RplConfig::CONTIKI_3, count, seed, linked(seed, density));
        links.run(Time::from_secs(300));
        links.assert_all_reach();
    }

    #[test]
    fn losses_and_changes_cause_neither_endless_loops_nor_storms_in_rpl(
        count in 2usize..20, seed in any::<u64>(), density in 0.0..0.5, loss in 0.0..0.6, tables in 1u16..20,
    ) {
        let config =
            RplConfig { max_neighbours: tables, max_routes: 2 * tables, ..RplConfig::CONTIKI_3 };
        let mut links = TestLinks::new(&config, count, seed, linked(seed, density));
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
            links.run(now + Span::from_secs(10));
        }
        prop_assert!(links.sent.len() < 400 * count, "{} messages", links.sent.len());
        for node in &links.nodes {
            prop_assert!(node.routes(links.now) <= usize::from(config.max_routes));
        }
    }
}
