//! The table of routes down: the child through which each node is reached.

use super::LollipopCounter;
use crate::{NodeId, Time};

/// A route down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DownwardRoute {
    to: NodeId,
    next: NodeId,
    /// The path sequence of the DAO that made the route.
    path: LollipopCounter,
    /// True if a no-path DAO revoked the route.
    taken_back: bool,
    until: Time,
}

/// The effect of a DAO on the table of routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreOutcome {
    /// The route is new, or renewed.
    New,
    /// This DAO, or a newer one, was stored before. This DAO was late, or came back in a loop.
    Known,
    /// The table is full.
    Full,
}

/// The routes, sorted by their destinations. An expired route does not count, and is removed when the table needs the
/// room.
#[derive(Clone, Debug, Default)]
pub(super) struct DownwardRoutes(Vec<DownwardRoute>);

impl DownwardRoutes {
    fn find(&self, to: NodeId) -> Result<usize, usize> {
        self.0.binary_search_by_key(&to, |route| route.to)
    }

    /// Returns the next hop to `to`; `None` without a valid route.
    pub(super) fn next_hop(&self, now: Time, to: NodeId) -> Option<NodeId> {
        let route = &self.0[self.find(to).ok()?];
        (now < route.until).then_some(route.next)
    }

    /// Returns whether `neighbour` is a child: the route to it is direct.
    pub(super) fn is_child(&self, now: Time, neighbour: NodeId) -> bool {
        self.next_hop(now, neighbour) == Some(neighbour)
    }

    /// Stores or renews the route to `to` through `next`. The table has `max` routes at most.
    pub(super) fn insert(
        &mut self,
        now: Time,
        (to, next): (NodeId, NodeId),
        path: LollipopCounter,
        until: Time,
        max: usize,
    ) -> StoreOutcome {
        let route = DownwardRoute { to, next, path, taken_back: false, until };
        match self.find(to) {
            Ok(at) => {
                let known = &mut self.0[at];
                // An old or equal path sequence went round in a circle, or came late (RFC 6550 §9.2.1).
                if now < known.until && (known.path == path || known.path.is_newer_than(path)) {
                    return StoreOutcome::Known;
                }
                *known = route;
            }
            Err(mut at) => {
                // Routes whose lifetime is over stay until their room is needed.
                if self.0.len() >= max {
                    self.0.retain(|route| now < route.until);
                    // Without the old routes, the place may be another.
                    at = self.find(to).unwrap_or_else(|at| at);
                }
                if self.0.len() >= max {
                    return StoreOutcome::Full;
                }
                self.0.insert(at, route);
            }
        }
        StoreOutcome::New
    }

    /// Revokes the route to `to` through `next`, which then stays valid until `until` at most. Returns false, and
    /// changes nothing, if the table has no such route, if the route comes from a newer DAO, or if it was revoked
    /// before.
    pub(super) fn take_back(
        &mut self,
        now: Time,
        (to, next): (NodeId, NodeId),
        path: LollipopCounter,
        until: Time,
    ) -> bool {
        let Ok(at) = self.find(to) else { return false };
        let route = &mut self.0[at];
        if route.next != next || route.taken_back || route.until <= now || route.path.is_newer_than(path) {
            return false;
        }
        route.taken_back = true;
        route.until = route.until.min(until);
        true
    }

    /// Removes the route to `to` if it goes through `next`.
    pub(super) fn remove(&mut self, (to, next): (NodeId, NodeId)) {
        if let Ok(at) = self.find(to)
            && self.0[at].next == next
        {
            self.0.remove(at);
        }
    }

    /// Removes all routes through `next`.
    pub(super) fn remove_through(&mut self, next: NodeId) {
        self.0.retain(|route| route.next != next);
    }

    /// Returns the number of routes that have not expired.
    pub(super) fn count(&self, now: Time) -> usize {
        self.0.iter().filter(|route| now < route.until).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_secs(100);
    const LATER: Time = Time::from_secs(200);

    fn route(to: u32, next: u32) -> (NodeId, NodeId) {
        (NodeId(to), NodeId(next))
    }

    /// Returns the path sequence after `count` more DAOs.
    fn path(count: usize) -> LollipopCounter {
        (0..count).fold(LollipopCounter::CIRCLE, |path, _| path.next())
    }

    #[test]
    fn a_route_expires_unless_it_is_renewed() {
        let mut routes = DownwardRoutes::default();
        assert_eq!(routes.insert(NOW, route(5, 2), path(0), LATER, 4), StoreOutcome::New);
        assert_eq!(routes.next_hop(Time::from_secs(199), NodeId(5)), Some(NodeId(2)));
        assert_eq!(routes.next_hop(LATER, NodeId(5)), None);
        assert_eq!(routes.insert(NOW, route(5, 3), path(1), Time::from_secs(300), 4), StoreOutcome::New);
        assert_eq!(routes.next_hop(LATER, NodeId(5)), Some(NodeId(3)));
        assert!(!routes.is_child(NOW, NodeId(3)));
        routes.insert(NOW, route(3, 3), path(0), LATER, 4);
        assert!(routes.is_child(NOW, NodeId(3)));
    }

    #[test]
    fn a_repeated_or_late_dao_does_not_change_a_valid_route() {
        let mut routes = DownwardRoutes::default();
        routes.insert(NOW, route(5, 2), path(3), LATER, 4);
        for old in [path(3), path(2)] {
            assert_eq!(routes.insert(NOW, route(5, 9), old, LATER, 4), StoreOutcome::Known);
        }
        assert_eq!(routes.next_hop(NOW, NodeId(5)), Some(NodeId(2)));
        assert_eq!(routes.insert(LATER, route(5, 9), path(2), Time::from_secs(300), 4), StoreOutcome::New);
        assert_eq!(
            routes.insert(LATER, route(5, 8), path(90), LATER, 4),
            StoreOutcome::New,
            "beyond comparison"
        );
    }

    #[test]
    fn a_full_routing_table_refuses_new_routes_until_old_ones_expire() {
        let mut routes = DownwardRoutes::default();
        routes.insert(NOW, route(9, 1), path(0), LATER, 2);
        routes.insert(NOW, route(5, 1), path(0), Time::from_secs(300), 2);
        assert_eq!(routes.insert(NOW, route(7, 1), path(0), LATER, 2), StoreOutcome::Full);
        let renewed = routes.insert(NOW, route(5, 2), path(1), Time::from_secs(300), 2);
        assert_eq!(renewed, StoreOutcome::New, "renewing needs no room");
        assert_eq!(routes.insert(LATER, route(7, 1), path(0), Time::from_secs(300), 2), StoreOutcome::New);
        assert_eq!(routes.count(LATER), 2);
        assert_eq!(routes.next_hop(LATER, NodeId(7)), Some(NodeId(1)));
        assert_eq!(routes.next_hop(LATER, NodeId(9)), None);
    }

    #[test]
    fn only_the_next_hop_of_a_route_can_delete_it_and_not_a_newer_one() {
        let mut routes = DownwardRoutes::default();
        routes.insert(NOW, route(5, 2), path(4), LATER, 4);
        let soon = Time::from_secs(110);
        assert!(!routes.take_back(NOW, route(5, 3), path(4), soon));
        assert!(!routes.take_back(NOW, route(5, 2), path(3), soon));
        assert!(routes.take_back(NOW, route(5, 2), path(4), soon));
        assert!(!routes.take_back(NOW, route(5, 2), path(4), soon));
        assert_eq!(routes.next_hop(Time::from_secs(109), NodeId(5)), Some(NodeId(2)));
        assert_eq!(routes.next_hop(soon, NodeId(5)), None);
    }

    #[test]
    fn losing_a_child_deletes_the_routes_through_it_only() {
        let mut routes = DownwardRoutes::default();
        for (to, next) in [(5, 2), (2, 2), (7, 3)] {
            routes.insert(NOW, route(to, next), path(0), LATER, 4);
        }
        routes.remove(route(7, 2));
        assert_eq!(routes.count(NOW), 3);
        routes.remove_through(NodeId(2));
        assert_eq!(routes.next_hop(NOW, NodeId(5)), None);
        assert_eq!(routes.next_hop(NOW, NodeId(7)), Some(NodeId(3)));
        assert_eq!(routes.count(NOW), 1);
    }
}
