//! Routes down: sending and handling of DAOs (RFC 6550 §9).

use super::routes::StoreOutcome;
use super::{INFINITE_RANK, LollipopCounter, RplMessage, RplNode};
use crate::{NodeId, Span, Time};

impl RplNode {
    pub(super) fn handle_dao(
        &mut self,
        now: Time,
        from: NodeId,
        target: NodeId,
        path: LollipopCounter,
        no_path: bool,
    ) {
        if no_path {
            let until = now + self.config.no_path_delay;
            // The no-path DAO goes on upwards only if it has changed a route here.
            if target != self.id && self.routes.take_back(now, (target, from), path, until) {
                self.send_dao(self.parent, target, path, true);
            }
            return;
        }
        // A DAO goes up. One from the parent, or from a node nearer to the root, goes in a circle (Contiki, `dao_input_storing`).
        // DAGRank (RFC 6550 §3.5.1).
        let hops = |rank: u16| rank / self.config.min_hop_rank_increase.max(1);
        let own = hops(self.rank);
        let is_parent = self.parent == Some(from);
        if let Some(above) = self.neighbours.get_mut(from)
            && (is_parent || hops(above.rank) < own)
        {
            // The neighbour is acceptable again when it announces its rank.
            above.rank = INFINITE_RANK;
            self.counters.loops += 1;
            self.select_parent_later(now);
            return;
        }
        // A DAO for this node came in a circle. A sender without a place in the table cannot be a next hop.
        if target == self.id || self.note(now, from, 0).is_none() {
            return;
        }
        let until = now + self.config.route_lifetime;
        let roots_own = self.config.max_root_routes.filter(|_| self.is_root());
        let max = usize::from(roots_own.unwrap_or(self.config.max_routes));
        match self.routes.insert(now, (target, from), path, until, max) {
            StoreOutcome::New => self.send_dao(self.parent, target, path, false),
            StoreOutcome::Known => {}
            StoreOutcome::Full => self.counters.routes_full += 1,
        }
    }

    /// Sends the parent a new DAO for this node, and schedules the next one well before the route expires.
    pub(super) fn renew_route(&mut self, now: Time) {
        self.dao = Time::MAX;
        let half = self.config.route_lifetime / 2;
        // With a lifetime of zero, the renewal would be due at once, again and again.
        self.renewal = now + (half + self.draws.within(half / 2)).max(Span::from_nanos(1));
        self.path = self.path.next();
        self.send_dao(self.parent, self.id, self.path, false);
    }

    /// Schedules a DAO, unless one is scheduled.
    pub(super) fn schedule_dao(&mut self, now: Time) {
        if self.dao == Time::MAX {
            self.dao = self.draws.around(now, self.config.dao_delay);
        }
    }

    /// Asks the children for new DAOs: raises the DTSN, and announces it soon.
    pub(super) fn refresh_routes(&mut self, now: Time) {
        self.dtsn = self.dtsn.next();
        self.reset_trickle(now);
    }

    /// Sends `parent` a DAO about `target`, if there is a parent.
    pub(super) fn send_dao(
        &mut self,
        parent: Option<NodeId>,
        target: NodeId,
        path: LollipopCounter,
        no_path: bool,
    ) {
        if let (Some(_), Some(root)) = (parent, self.root) {
            self.sequence = self.sequence.next();
            self.send(parent, RplMessage::Dao { root, target, sequence: self.sequence, path, no_path });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::RplConfig;
    use crate::mesh::rpl::tests::{TestLinks, between, dao, fetched};

    #[test]
    fn a_no_path_dao_deletes_the_route_at_every_node_above() {
        let mut links = TestLinks::new(&RplConfig::CONTIKI_3, 4, 1, |a, b| a.abs_diff(b) == 1);
        links.run(Time::from_secs(60));
        let (sequence, path) = (LollipopCounter::START, links.nodes[3].path);
        let no_path = RplMessage::Dao { root: NodeId(0), target: NodeId(3), sequence, path, no_path: true };
        links.nodes[2].handle(links.now, NodeId(3), &no_path);
        // For a while it is still used.
        links.run(Time::from_secs(60) + Span::from_millis(100));
        assert_eq!(links.walk(0, 3).unwrap(), [0, 1, 2, 3]);
        let taken_back = |node: &RplNode| node.routes.next_hop(Time::from_secs(121), NodeId(3)).is_none();
        assert!(links.nodes[..3].iter().all(taken_back));
    }

    #[test]
    fn a_node_with_a_full_routing_table_refuses_and_counts_new_routes() {
        let config = RplConfig { max_routes: 2, ..RplConfig::CONTIKI_3 };
        let mut links = TestLinks::new(&config, 5, 1, |a, b| a.abs_diff(b) == 1);
        links.run(Time::from_secs(120));
        assert_eq!(links.nodes[0].routes(links.now), 2);
        assert!(links.nodes[1].counters().routes_full > 0);
        assert!(links.walk(0, 1).is_ok() || links.walk(0, 2).is_ok());
    }

    #[test]
    fn the_root_may_have_a_routing_table_of_another_size() {
        let config = RplConfig { max_routes: 2, max_root_routes: Some(9), ..RplConfig::CONTIKI_3 };
        // All hear the root.
        let mut links = TestLinks::new(&config, 5, 1, |a, b| a.min(b) == 0);
        links.run(Time::from_secs(120));
        assert_eq!(links.nodes[0].routes(links.now), 4);
    }

    #[test]
    fn a_repeated_dao_is_not_forwarded() {
        let (mut node, now) = between();
        node.handle(now, NodeId(9), &dao(9, 1));
        node.handle(now, NodeId(8), &dao(9, 1));
        assert_eq!(fetched(&mut node).len(), 0);
        node.handle(now, NodeId(8), &dao(9, 2));
        assert_eq!(fetched(&mut node).len(), 1);
        assert_eq!(node.forward(now, None, NodeId(9), None).unwrap().0, NodeId(8));
    }

    #[test]
    fn routes_are_renewed_before_they_expire() {
        let config = RplConfig {
            route_lifetime: Span::from_secs(100),
            dio_refreshes_routes: false,
            probing_interval: Span::ZERO,
            ..RplConfig::CONTIKI_3
        };
        let mut links = TestLinks::new(&config, 4, 1, |a, b| a.abs_diff(b) == 1);
        for minute in 1..20 {
            links.run(Time::from_secs(60 * minute));
            assert_eq!(links.nodes[0].routes(links.now), 3, "after {minute} min");
        }
    }
}
