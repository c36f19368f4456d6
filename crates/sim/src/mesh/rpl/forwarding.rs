//! The data path: the next hop of a packet, and the check of ranks that finds loops (RFC 6550 §11.2).

use super::RplNode;
use crate::mesh::RplOption;
use crate::{NodeId, Time};

/// The reason why a packet cannot be forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unroutable {
    /// The packet should go up, and the node has no parent.
    NoParent,
    /// The packet is at the root, and the root has no route.
    NoRoute,
    /// The ranks on the packet's way disagreed with its direction twice (RFC 6550 §11.2.2.2).
    Loop,
    /// The packet was going down, and a node on its way has no route: this node, or a child that sent it back (RFC 6550
    /// §11.2.2.3).
    ForwardingError,
}

impl RplNode {
    /// Returns the next hop of a packet to another node, `to`, and the RPL option to send with it. The packet begins at
    /// this node, or arrived from the neighbour `from` with `option`.
    ///
    /// # Errors
    ///
    /// [`Unroutable`] if the packet cannot be forwarded.
    pub fn forward(
        &mut self,
        now: Time,
        from: Option<NodeId>,
        to: NodeId,
        option: Option<RplOption>,
    ) -> Result<(NodeId, RplOption), Unroutable> {
        let mut ahead = option.unwrap_or_default();
        // A packet that begins here has no way behind it that could be wrong.
        if let (Some(from), Some(option)) = (from, option) {
            // The child has no route any more, so this node forgets it and asks for new DAOs (RFC 6550 §11.2.2.3).
            if option.forwarding_error {
                self.counters.forwarding_errors += 1;
                self.routes.remove((to, from));
                self.refresh_routes(now);
                return Err(Unroutable::ForwardingError);
            }
            // Whole ranks are compared, like in Contiki. Equal ranks agree with no direction, so every circle is found.
            let (sender, own) = (option.sender_rank, self.rank);
            let known = self.neighbours.get_mut(from);
            let is_known = known.is_some();
            // The ranks on the packet's way disagree, so the rank in the option replaces the one that the sender announced.
            if let Some(known) = known.filter(|_| option.rank_error) {
                known.rank = sender;
            }
            if if option.down { sender >= own } else { sender <= own } {
                // The sender may have an old rank of this node (Contiki, `rpl_verify_hbh_header`).
                if is_known {
                    self.send(Some(from), self.dio());
                }
                // This is the second disagreement on the way of the packet. It is dropped (RFC 6550 §11.2.2.2).
                if option.rank_error {
                    self.counters.loops += 1;
                    self.reset_trickle(now);
                    return Err(Unroutable::Loop);
                }
                self.counters.rank_errors += 1;
                ahead.rank_error = true;
            }
        }
        ahead.sender_rank = self.rank;
        match self.routes.next_hop(now, to) {
            Some(next) if Some(next) != from || !self.config.sends_back => {
                ahead.down = true;
                return Ok((next, ahead));
            }
            // The next hop has just sent the packet here, so the route is out of date.
            Some(next) => self.routes.remove((to, next)),
            None => {}
        }
        match (from, self.parent) {
            // A packet on its way down never turns upwards here: its next hop could send it down again.
            (Some(from), _) if ahead.down => {
                self.counters.forwarding_errors += 1;
                if !self.config.sends_back {
                    // A no-path DAO makes the sender take its route back (Contiki).
                    if self.neighbours.get(from).is_some() {
                        self.send_dao(Some(from), to, self.path, true);
                    }
                    return Err(Unroutable::ForwardingError);
                }
                ahead.forwarding_error = true;
                Ok((from, ahead))
            }
            (_, Some(parent)) => Ok((parent, ahead)),
            (_, None) if self.is_root() => Err(Unroutable::NoRoute),
            (_, None) => Err(Unroutable::NoParent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Luck;
    use crate::mesh::RplConfig;
    use crate::mesh::rpl::tests::{Stop, TestLinks, between, dao};
    use crate::mesh::rpl::{DownwardRoutes, LollipopCounter, RplMessage};

    #[test]
    fn a_downward_packet_without_a_further_route_returns_and_deletes_the_route() {
        let config = RplConfig { sends_back: true, ..RplConfig::CONTIKI_3 };
        let mut links = TestLinks::new(&config, 4, 1, |a, b| a.abs_diff(b) == 1);
        links.run(Time::from_secs(60));
        links.nodes[2].routes = DownwardRoutes::default();
        assert_eq!(links.walk(0, 3), Err(Stop::Unroutable(1, Unroutable::ForwardingError)));
        assert_eq!(links.nodes[1].routes.next_hop(links.now, NodeId(3)), None);
        assert_eq!(links.walk(0, 3), Err(Stop::Unroutable(0, Unroutable::ForwardingError)));
        assert_eq!(links.walk(0, 3), Err(Stop::Unroutable(0, Unroutable::NoRoute)));
        // The higher DTSN asks for the route again, hop by hop with the next DIO of each node, whose interval is 64 s at most by now.
        links.run(Time::from_secs(180));
        links.assert_all_reach();
    }

    #[test]
    fn contiki_drops_a_downward_packet_without_a_further_route_and_deletes_the_route() {
        let mut links = TestLinks::new(&RplConfig::CONTIKI_3, 4, 1, |a, b| a.abs_diff(b) == 1);
        links.run(Time::from_secs(60));
        links.nodes[2].routes = DownwardRoutes::default();
        assert_eq!(links.walk(0, 3), Err(Stop::Unroutable(2, Unroutable::ForwardingError)));
        let back = links.nodes[2].poll_transmit();
        let is_no_path = |message: &RplMessage| {
            matches!(message, RplMessage::Dao { target: NodeId(3), no_path: true, .. })
        };
        assert!(back.is_some_and(|(to, message)| to == Some(NodeId(1)) && is_no_path(&message)), "{back:?}");
    }

    #[test]
    fn a_forced_routing_loop_is_detected_by_rank_and_broken() {
        // 1 can go either way; 1, 2 and 3 hear each other.
        let mut links = TestLinks::new(&RplConfig::CONTIKI_3, 4, 1, |a, b| a.min(b) > 0 || a + b == 1);
        links.run(Time::from_secs(60));
        links.assert_all_reach();
        // All that belongs to 1 is below 1: that it takes 2 for its parent makes a circle, unless 2 leaves.
        links.nodes[1].neighbours.forget_ranks();
        links.nodes[1].routes = DownwardRoutes::default();
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
    fn one_rank_inconsistency_of_a_packet_is_tolerated_and_a_second_is_not() {
        let config = RplConfig::CONTIKI_3;
        let stream = Luck::new(1).stream("rpl");
        let mut node = RplNode::new(&config, NodeId(5), false, stream, Time::ZERO);
        let now = Time::from_secs(1);
        node.handle(
            now,
            NodeId(1),
            &RplMessage::Dio { root: NodeId(0), rank: 384, dtsn: LollipopCounter::START },
        );
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
    fn a_packet_that_comes_from_the_next_hop_of_its_route_goes_up_and_deletes_the_route() {
        let (mut node, now) = between();
        node.config.sends_back = true;
        node.handle(now, NodeId(9), &dao(10, 1));
        let option = RplOption { sender_rank: 768, ..RplOption::default() };
        let (next, ahead) = node.forward(now, Some(NodeId(9)), NodeId(10), Some(option)).unwrap();
        assert_eq!((next, ahead.down, ahead.rank_error, node.routes(now)), (NodeId(1), false, false, 1));
        let (next, ahead) = node.forward(now, Some(NodeId(8)), NodeId(9), Some(option)).unwrap();
        assert_eq!((next, ahead.down), (NodeId(9), true), "another's goes down");
    }
}
