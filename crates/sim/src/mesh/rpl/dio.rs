//! Routes up: DIOs, DISs that ask for them, and their timing by Trickle (RFC 6550 §8).

use super::neighbours::ETX_UNIT;
use super::{INFINITE_RANK, LollipopCounter, RplMessage, RplNode};
use crate::{NodeId, Span, Time};

impl RplNode {
    /// Asks all neighbours for a DIO, and schedules the next DIS.
    pub(super) fn send_dis(&mut self, now: Time) {
        // With an interval of zero, time would stand still.
        self.dis = now + self.config.dis_interval.max(Span::from_nanos(1));
        self.send(None, RplMessage::Dis);
    }

    pub(super) fn handle_dis(&mut self, now: Time) {
        // A DIS of a neighbour is an inconsistency for Trickle (RFC 6550 §8.3), if there is a rank to announce.
        if self.rank < INFINITE_RANK {
            self.reset_trickle(now);
        }
    }

    pub(super) fn handle_dio(
        &mut self,
        now: Time,
        from: NodeId,
        root: NodeId,
        rank: u16,
        dtsn: LollipopCounter,
    ) {
        if self.is_root() {
            // The root chooses no parent. It only counts consistent DIOs, for Trickle.
            if root == self.id && rank < INFINITE_RANK {
                self.trickle.hear();
            }
            return;
        }
        if self.root != Some(root) {
            // A node that has joined stays in its DODAG, and a DODAG without a rank is not joined.
            if self.parent.is_some() || rank == INFINITE_RANK {
                return;
            }
            // This is another DODAG, in which the ranks of the last one have no meaning.
            self.neighbours.forget_ranks();
            self.root = Some(root);
        }
        // The neighbour has no way to the root, so it does not earn a place in the table.
        if rank == INFINITE_RANK && self.neighbours.get(from).is_none() {
            return;
        }
        let parent = self.parent;
        // A neighbour that is new to the table has no statistics yet, so its link counts with the initial ETX.
        let cost = rank.saturating_add(u16::from(self.config.initial_etx).saturating_mul(ETX_UNIT));
        let Some(neighbour) = self.note(now, from, cost) else { return };
        let consistent = neighbour.rank == rank;
        // A higher DTSN of the parent asks for DAOs (RFC 6550 §9.6).
        let refresh = dtsn.is_newer_than(neighbour.dtsn) && parent == Some(from);
        neighbour.rank = rank;
        neighbour.dtsn = dtsn;
        // Only a DIO that says nothing new suppresses one's own (RFC 6206 §4.2).
        if consistent && parent.is_some() {
            self.trickle.hear();
        }
        self.select_parent(now);
        // The children are asked in turn. A new parent gets a DAO anyway.
        if refresh && self.parent == parent {
            self.dtsn = self.dtsn.next();
            self.schedule_dao(now);
        }
    }

    pub(super) fn reset_trickle(&mut self, now: Time) {
        if self.trickle.reset(now, &self.config, &mut self.draws) {
            self.counters.trickle_resets += 1;
        }
    }

    pub(super) fn dio(&self) -> RplMessage {
        RplMessage::Dio { root: self.root.unwrap_or(self.id), rank: self.rank, dtsn: self.dtsn }
    }

    /// Sends a DIO to all neighbours.
    pub(super) fn announce(&mut self) {
        if self.is_root() && self.config.dio_refreshes_routes {
            self.dtsn = self.dtsn.next();
        }
        self.announced_rank = self.rank;
        self.send(None, self.dio());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Luck;
    use crate::mesh::RplConfig;
    use crate::mesh::rpl::tests::{TestLinks, between, dio};

    #[test]
    fn nodes_with_a_parent_answer_a_dis_soon() {
        let mut links = TestLinks::new(&RplConfig::CONTIKI_3, 3, 1, |a, b| a.abs_diff(b) == 1);
        links.run(Time::from_secs(600));
        let before = [1, 2].map(|node| links.nodes[node].counters().dios);
        let now = links.now;
        links.nodes[1].handle(now, NodeId(2), &RplMessage::Dis);
        let soon = links.nodes[1].poll_timeout().unwrap();
        assert!(soon <= now + Span::from_millis(4_096));
        links.run(now + Span::from_millis(4_096));
        assert_eq!(links.nodes[1].counters().dios, before[0] + 1);
        let mut alone =
            RplNode::new(&RplConfig::CONTIKI_3, NodeId(9), false, Luck::new(1).stream("rpl"), Time::ZERO);
        alone.handle(now, NodeId(2), &RplMessage::Dis);
        assert_eq!(alone.poll_timeout(), Some(Time::from_secs(5)), "only its own DIS");
    }

    #[test]
    fn trickle_suppresses_most_dios_in_a_dense_network() {
        let dios = |dio_redundancy| {
            let config = RplConfig { dio_redundancy, probing_interval: Span::ZERO, ..RplConfig::CONTIKI_3 };
            let mut links = TestLinks::new(&config, 20, 1, |_, _| true);
            let sum = |links: &TestLinks| links.nodes.iter().map(|node| node.counters().dios).sum::<u32>();
            // Ranks change until the links are known, and what changes suppresses nothing.
            links.run(Time::from_secs(60));
            for node in (1..20).cycle().take(19 * 60) {
                links.walk(node, 0).unwrap();
            }
            links.run(Time::from_secs(300));
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
    fn routes_through_a_child_are_kept_whatever_rank_it_announces() {
        for rank in [511, INFINITE_RANK] {
            let (mut node, now) = between();
            node.handle(now, NodeId(9), &dio(513));
            node.handle(now, NodeId(9), &dio(rank));
            assert_eq!(node.routes(now), 1, "only a DAO takes a route back");
        }
    }

    #[test]
    fn a_rank_that_rose_by_four_hops_is_announced_soon_and_one_that_rose_less_is_not() {
        let (mut node, mut now) = between();
        for _ in 0..4 {
            now = node.poll_timeout().unwrap();
            node.handle_timeout(now);
        }
        let before = node.counters().trickle_resets;
        assert_eq!(node.announced_rank, 512);
        node.handle(now, NodeId(1), &dio(767));
        assert_eq!((node.rank(), node.counters().trickle_resets), (1_023, before));
        node.handle(now, NodeId(1), &dio(768));
        assert_eq!((node.rank(), node.counters().trickle_resets), (1_024, before + 1));
    }
}
