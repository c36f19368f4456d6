//! The choice of the preferred parent, its consequences, and the probing of links on which the choice depends (RFC 6550
//! §8.2).

use super::{INFINITE_RANK, Neighbour, RplNode};
use crate::{NodeId, Span, Time};

/// The time within which a node probes a neighbour that it may soon need as its parent (Contiki, rpl-timers.c).
const URGENT: Span = Span::from_secs(10);
/// A node announces its rank soon if the rank has risen by at least this since the node's last announcement, in units
/// of MinHopRankIncrease (Contiki-NG's rpl-lite, rpl-conf.h).
const SIGNIFICANT_HOPS: u16 = 4;

impl RplNode {
    /// Updates the ETX of a neighbour after a frame that took this number of `transmissions`. Do not call it for a
    /// frame that was given up because the channel was busy: such a frame says nothing about the link.
    pub fn on_sent(&mut self, now: Time, neighbour: NodeId, acknowledged: bool, transmissions: u8) {
        let Some(known) = self.neighbours.sent(now, neighbour, (acknowledged, transmissions), &self.config)
        else {
            return;
        };
        // Enough frames have shown that the link is bad. Its routes would only lose packets.
        if !known.is_reachable(&self.config) && known.is_fresh(now) {
            self.routes.remove_through(neighbour);
        }
        self.select_parent_later(now);
    }

    /// Schedules the choice of a parent for the end of the present
    /// [`RplConfig::selection_interval`](crate::mesh::RplConfig).
    pub(super) fn select_parent_later(&mut self, now: Time) {
        let interval = self.config.selection_interval.as_nanos();
        if interval == 0 {
            self.select_parent(now);
        } else if self.selection == Time::MAX {
            // The interval began when the node was switched on.
            let over = (now - self.started).as_nanos() % interval;
            self.selection = now + Span::from_nanos(interval - over);
        }
    }

    /// Chooses the best parent and sets the rank. Leaves the present parent if no neighbour is acceptable or the rank
    /// would rise too far.
    pub(super) fn select_parent(&mut self, now: Time) {
        if self.is_root() {
            return;
        }
        // A node without a parent may take any rank (Contiki, `rpl_select_dag`).
        let highest = match self.config.max_rank_increase {
            increase @ 1.. if self.parent.is_some() => self.lowest_rank.saturating_add(increase),
            _ => INFINITE_RANK,
        };
        let best = self.best_neighbour(now);
        match (self.parent, best.map(|best| (best.id, best.rank_through(&self.config)))) {
            (before, Some((parent, rank))) if rank <= highest => {
                self.rank = rank;
                if before.is_none() {
                    self.lowest_rank = rank;
                }
                // DAGMaxRankIncrease counts from the lowest rank since the node joined (RFC 6550 §8.2.2.4).
                self.lowest_rank = self.lowest_rank.min(rank);
                if before != Some(parent) {
                    self.move_to(now, parent);
                }
                let significant = self.config.min_hop_rank_increase.saturating_mul(SIGNIFICANT_HOPS);
                // The children learn soon that this way has become much longer.
                if rank >= self.announced_rank.saturating_add(significant) {
                    self.reset_trickle(now);
                }
            }
            (Some(parent), _) => self.detach(now, parent),
            (None, _) => {
                // No neighbour is acceptable, but a probe may find that a link has become better.
                if self.config.probing_interval > Span::ZERO && self.neighbours.any_joined() {
                    let soon = now + self.draws.within(URGENT);
                    if self.probe > now + URGENT {
                        self.probe = soon;
                    }
                }
            }
        }
    }

    /// Returns the best neighbour. Like in Contiki (`rpl_select_parent`), it is a neighbour with fresh statistics, if there is
    /// one. A better neighbour without fresh statistics is probed soon.
    fn best_neighbour(&mut self, now: Time) -> Option<Neighbour> {
        let (routes, excludes) = (&self.routes, self.config.excludes_children);
        let may_be = |neighbour: &Neighbour| !(excludes && routes.is_child(now, neighbour.id));
        let best = *self.neighbours.best(self.parent, &self.config, may_be)?;
        if self.config.probing_interval == Span::ZERO || best.is_fresh(now) {
            return Some(best);
        }
        self.urgent = Some(best.id);
        self.probe = now + self.draws.within(URGENT);
        let is_fresh = |neighbour: &Neighbour| may_be(neighbour) && neighbour.is_fresh(now);
        let fresh = self.neighbours.best(self.parent, &self.config, is_fresh);
        Some(fresh.copied().unwrap_or(best))
    }

    fn move_to(&mut self, now: Time, parent: NodeId) {
        if let Some(before) = self.parent.replace(parent) {
            self.counters.parent_changes += 1;
            // The former parent must not keep a route to this node.
            self.send_dao(Some(before), self.id, self.path, true);
        }
        // A node with a parent hears DIOs without asking.
        self.dis = Time::MAX;
        if self.probe == Time::MAX && self.config.probing_interval > Span::ZERO {
            self.probe = self.draws.around(now, self.config.probing_interval);
        }
        // The nodes above have no route to this node yet, nor to the nodes below it, which the new DTSN asks for DAOs.
        self.schedule_dao(now);
        self.refresh_routes(now);
    }

    /// Begins a local repair (RFC 6550 §8.2.2.5): the node leaves its parent and announces an infinite rank. It keeps
    /// its routes and, if links are probed, its table of neighbours. It may choose a parent again (Contiki,
    /// `rpl_local_repair`).
    fn detach(&mut self, now: Time, parent: NodeId) {
        self.counters.detachments += 1;
        self.send_dao(Some(parent), self.id, self.path, true);
        self.parent = None;
        self.rank = INFINITE_RANK;
        (self.dao, self.renewal) = (Time::MAX, Time::MAX);
        self.dtsn = self.dtsn.next();
        if self.config.probing_interval == Span::ZERO {
            // Without probes, only frames would show that a link has become better, and no frame takes a bad link.
            self.neighbours.clear();
        }
        // DIOs with an infinite rank soon show the children that this way is gone (RFC 6550 §8.2.2.5).
        self.reset_trickle(now);
        self.dis = self.draws.around(now, self.config.dis_start);
    }

    /// Sends a DIO to a neighbour, to measure the link.
    pub(super) fn probe_link(&mut self, now: Time) {
        // `around` halves the interval. With less than 2 ns the next probe would be due now, again and again.
        self.probe = self.draws.around(now, self.config.probing_interval.max(Span::from_nanos(2)));
        // Contiki probes the neighbour with the oldest statistics every other time, at random.
        let oldest = self.parent.is_some() && self.draws.below(2) == 0;
        let urgent = self.urgent.take();
        if let Some(neighbour) = urgent.or_else(|| self.neighbours.to_probe(now, self.parent, oldest)) {
            self.send(Some(neighbour), self.dio());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::RplConfig;
    use crate::mesh::rpl::tests::{Stop, TestLinks, between, dio, fetched};
    use crate::mesh::rpl::{RplMessage, Unroutable};

    #[test]
    fn a_node_whose_parent_dies_finds_another_and_the_root_finds_it_again() {
        // Two ways from 3 to the root.
        let mut links = TestLinks::new(&RplConfig::CONTIKI_3, 4, 1, |a, b| {
            !matches!((a.min(b), a.max(b)), (0, 3) | (1, 2))
        });
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
    fn a_node_that_loses_its_last_parent_announces_it_and_its_children_leave_too() {
        let config = RplConfig { excludes_children: true, ..RplConfig::CONTIKI_3 };
        let mut links = TestLinks::new(&config, 4, 1, |a, b| a.abs_diff(b) == 1);
        links.run(Time::from_secs(60));
        links.assert_all_reach();
        links.set_link(0, 1, false);
        for second in 60..120 {
            let _ = links.walk(1, 0);
            links.run(Time::from_secs(second));
        }
        for node in 1..4 {
            assert_eq!(
                (links.nodes[node].parent(), links.nodes[node].rank()),
                (None, INFINITE_RANK),
                "{node}"
            );
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
        let mut links = TestLinks::new(&RplConfig::CONTIKI_3, 4, 1, |a, b| {
            matches!((a.min(b), a.max(b)), (0, 1 | 2) | (1, 3))
        });
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
    fn a_node_with_a_full_neighbour_table_keeps_its_parent_and_counts_refusals() {
        let config = RplConfig { max_neighbours: 3, ..RplConfig::CONTIKI_3 };
        let mut links = TestLinks::new(&config, 8, 1, |_, _| true);
        links.run(Time::from_secs(60));
        assert!(links.nodes[1..].iter().all(|node| node.parent() == Some(NodeId(0))));
        assert!(links.nodes[1..].iter().all(|node| node.counters().neighbours_full > 0));
    }

    #[test]
    fn a_node_that_changes_its_parent_sends_the_old_one_a_no_path_dao() {
        let (mut node, now) = between();
        node.handle(now, NodeId(2), &dio(161));
        assert_eq!(
            (node.parent(), fetched(&mut node).len()),
            (Some(NodeId(1)), 0),
            "95 better is not enough"
        );
        node.handle(now, NodeId(2), &dio(160));
        assert_eq!(node.parent(), Some(NodeId(2)));
        let taken_back = fetched(&mut node);
        assert!(matches!(
            taken_back[..],
            [(Some(NodeId(1)), RplMessage::Dao { target: NodeId(5), no_path: true, .. })]
        ));
    }

    #[test]
    fn routes_through_an_unreachable_child_are_deleted() {
        let (mut node, now) = between();
        // From an ETX of 2 towards 10 by 15 % each: the ninth makes it more than 8.
        for _ in 0..8 {
            node.on_sent(now, NodeId(9), false, 8);
            assert_eq!(node.routes(now), 1);
        }
        node.on_sent(now, NodeId(9), false, 8);
        assert_eq!(node.routes(now), 0);
    }

    #[test]
    fn a_node_whose_rank_would_rise_too_much_leaves_and_poisons_its_subtree() {
        let (mut node, now) = between();
        node.handle(now, NodeId(1), &dio(256 + 896));
        assert_eq!((node.parent(), node.rank()), (Some(NodeId(1)), 512 + 896));
        node.handle(now, NodeId(1), &dio(257 + 896));
        // Its routes down hold as before.
        assert_eq!((node.parent(), node.rank(), node.routes(now)), (None, INFINITE_RANK, 1));
        assert!(matches!(fetched(&mut node)[..], [(Some(NodeId(1)), RplMessage::Dao { no_path: true, .. })]));
        assert_eq!(node.forward(now, None, NodeId(0), None), Err(Unroutable::NoParent));
        let soon = node.poll_timeout().unwrap();
        node.handle_timeout(soon);
        assert!(matches!(fetched(&mut node)[..], [(None, RplMessage::Dio { rank: INFINITE_RANK, .. })]));
        // It takes the place that there is.
        node.handle(now, NodeId(1), &dio(257 + 896));
        assert_eq!((node.parent(), node.counters().detachments), (Some(NodeId(1)), 1));
    }

    #[test]
    fn a_node_probes_its_only_unreachable_neighbour_within_ten_seconds() {
        let (mut node, now) = between();
        (0..9).for_each(|_| node.on_sent(now, NodeId(1), false, 8));
        let second = Span::from_secs(1);
        node.handle_timeout(now + second);
        assert_eq!(node.parent(), None);
        node.handle(now, NodeId(1), &dio(256));
        fetched(&mut node);
        let mut probed = false;
        while let Some(time) = node.poll_timeout().filter(|&time| time <= now + URGENT) {
            node.handle_timeout(time);
            probed |= fetched(&mut node).iter().any(|(to, _)| *to == Some(NodeId(1)));
        }
        assert!(probed && node.parent().is_none());
        node.on_sent(now + URGENT, NodeId(1), true, 1);
        node.handle_timeout(now + URGENT + second);
        assert_eq!(node.parent(), Some(NodeId(1)));
    }
}
