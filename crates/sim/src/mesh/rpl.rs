//! RPL in storing mode (RFC 6550): the routes from the nodes of a mesh to a root, and back.
//!
//! A [`RplNode`] is the RPL of one node. It is a state machine: the caller passes in the time, messages and the outcome of
//! frames, and fetches messages to send. Choices that the RFCs leave open follow Contiki. One root has one DODAG, whose version
//! never changes. DAOs are not acknowledged, and every node is a router.
//!
//! Routes up and down are learnt separately. DIOs (`dio`) announce the distance to the root. Each node chooses the best
//! sender of DIOs as its `parent`, which is the next hop of all packets up. DAOs (`dao`) announce a node to all nodes
//! above it, which store `routes` down. At each node a packet takes a route up or a route down (`forwarding`). It
//! carries the rank of its last sender, by which nodes find loops.
//!
//! ```
//! use coapace_sim::mesh::RplConfig;
//! use coapace_sim::mesh::rpl::{RplMessage, RplNode};
//! use coapace_sim::{Luck, NodeId, Time};
//!
//! let (config, luck) = (RplConfig::CONTIKI_3, Luck::new(1).stream("rpl"));
//! let mut root = RplNode::new(&config, NodeId(0), true, luck, Time::ZERO);
//! let mut node = RplNode::new(&config, NodeId(1), false, luck, Time::ZERO);
//!
//! // The root announces itself within half to all of the first 4.096 s.
//! let now = root.poll_timeout().unwrap();
//! root.handle_timeout(now);
//! let (to, dio) = root.poll_transmit().unwrap();
//! assert_eq!((to, matches!(dio, RplMessage::Dio { rank: 128, .. })), (None, true));
//!
//! // An unknown link costs two transmissions of 128.
//! node.handle(now, NodeId(0), &dio);
//! assert_eq!((node.parent(), node.rank()), (Some(NodeId(0)), 384));
//! assert_eq!(node.forward(now, None, NodeId(0), None).unwrap().0, NodeId(0));
//! ```

mod counters;
mod dao;
mod dio;
mod draws;
mod forwarding;
mod message;
mod neighbours;
mod parent;
mod routes;
mod sequence;
#[cfg(test)]
mod tests;
mod trickle;

use std::collections::VecDeque;

pub use counters::RplCounters;
use draws::NodeDraws;
pub use forwarding::Unroutable;
pub use message::RplMessage;
use neighbours::{Neighbour, Neighbours};
use routes::DownwardRoutes;
pub use sequence::LollipopCounter;
use trickle::Trickle;

use super::RplConfig;
use crate::{NodeId, Span, Stream, Time};

/// The rank of a node without a path to the root (RFC 6550 §17).
pub const INFINITE_RANK: u16 = u16::MAX;

/// The largest number of messages that wait to be fetched. Further messages are lost.
const OUTBOX: usize = 16;

/// The state of RPL on one node: its parent, its routes down, its neighbours and its timers.
#[derive(Clone, Debug)]
pub struct RplNode {
    config: RplConfig,
    id: NodeId,
    /// The root of the DODAG that the node is in, or was in last.
    root: Option<NodeId>,
    parent: Option<NodeId>,
    rank: u16,
    /// The lowest rank since the node joined: L of RFC 6550 §8.2.2.4.
    lowest_rank: u16,
    /// The rank in the last DIO to all neighbours.
    announced_rank: u16,
    /// The DTSN of this node.
    dtsn: LollipopCounter,
    /// The sequence number of the last DAO.
    sequence: LollipopCounter,
    /// The path sequence of the last DAO for this node.
    path: LollipopCounter,
    neighbours: Neighbours,
    routes: DownwardRoutes,
    trickle: Trickle,
    /// The time of the next DIS; for a root, the time at which its DODAG begins.
    dis: Time,
    /// The time of the next DAO after a change; `Time::MAX` if none is scheduled.
    dao: Time,
    /// The time of the next DAO that renews the route because the last DAO is old.
    renewal: Time,
    /// The time of the next probe of a link.
    probe: Time,
    /// The neighbour to probe next, because it may be a better parent; `None` without such a neighbour.
    urgent: Option<NodeId>,
    /// The time at which the node was switched on.
    started: Time,
    /// The time of the next choice of the parent.
    selection: Time,
    draws: NodeDraws,
    outbox: VecDeque<(Option<NodeId>, RplMessage)>,
    counters: RplCounters,
}

impl RplNode {
    /// Returns a node that is switched on at `now`. All nodes may share one `stream`.
    pub fn new(config: &RplConfig, id: NodeId, is_root: bool, stream: Stream, now: Time) -> Self {
        let mut node = Self {
            config: *config,
            id,
            root: None,
            parent: None,
            rank: INFINITE_RANK,
            lowest_rank: INFINITE_RANK,
            announced_rank: INFINITE_RANK,
            dtsn: LollipopCounter::START,
            sequence: LollipopCounter::START,
            path: LollipopCounter::CIRCLE,
            neighbours: Neighbours::default(),
            routes: DownwardRoutes::default(),
            trickle: Trickle::STOPPED,
            dis: now + config.dis_start,
            dao: Time::MAX,
            renewal: Time::MAX,
            probe: Time::MAX,
            urgent: None,
            started: now,
            selection: Time::MAX,
            draws: NodeDraws::new(stream, id),
            outbox: VecDeque::new(),
            counters: RplCounters::default(),
        };
        if is_root {
            node.root = Some(id);
            node.dis = now + config.root_start;
            if config.root_start == Span::ZERO {
                node.begin_dodag(now);
            }
        }
        node
    }

    /// Begins the DODAG of this node, its root.
    fn begin_dodag(&mut self, now: Time) {
        self.rank = self.config.min_hop_rank_increase;
        self.dis = Time::MAX;
        self.reset_trickle(now);
    }

    /// Returns the preferred parent: the next hop of all packets up.
    pub fn parent(&self) -> Option<NodeId> {
        self.parent
    }

    /// Returns the rank: the distance to the root in 1/128 of a transmission, plus the rank of the root. It is
    /// [`INFINITE_RANK`] without a parent.
    pub fn rank(&self) -> u16 {
        self.rank
    }

    /// Returns the number of routes down.
    pub fn routes(&self, now: Time) -> usize {
        self.routes.count(now)
    }

    /// Returns the counters of the node.
    pub fn counters(&self) -> RplCounters {
        self.counters
    }

    /// Returns the moment at which to call [`handle_timeout`](Self::handle_timeout), if any.
    pub fn poll_timeout(&self) -> Option<Time> {
        let Self { dis, dao, renewal, probe, selection, .. } = *self;
        let next = [self.trickle.poll_timeout(), dis, dao, renewal, probe, selection].into_iter().min();
        next.filter(|&time| time < Time::MAX)
    }

    /// Handles the deadline that [`poll_timeout`](Self::poll_timeout) returned.
    pub fn handle_timeout(&mut self, now: Time) {
        match self.trickle.handle_timeout(now, &self.config, &mut self.draws) {
            Some(true) => self.announce(),
            Some(false) => self.counters.dios_suppressed += 1,
            None => {}
        }
        // The parent is chosen before the DAO and the probe, because both look at it.
        if self.selection <= now {
            self.selection = Time::MAX;
            self.select_parent(now);
        }
        match self.is_root() {
            _ if self.dis > now => {}
            true => self.begin_dodag(now),
            false => self.send_dis(now),
        }
        if self.dao <= now || self.renewal <= now {
            self.renew_route(now);
        }
        if self.probe <= now {
            self.probe_link(now);
        }
    }

    /// Returns the next message to send and its receiver, if there is a message. The receiver `None` is all neighbours.
    pub fn poll_transmit(&mut self) -> Option<(Option<NodeId>, RplMessage)> {
        self.outbox.pop_front()
    }

    /// Handles a message from a neighbour.
    pub fn handle(&mut self, now: Time, from: NodeId, message: &RplMessage) {
        match *message {
            RplMessage::Dis => self.handle_dis(now),
            RplMessage::Dio { root, rank, dtsn } => self.handle_dio(now, from, root, rank, dtsn),
            RplMessage::Dao { root, target, path, no_path, .. } => {
                // A node without a rank has no way up, so no packet for the target would come through it.
                if self.root == Some(root) && self.rank < INFINITE_RANK {
                    self.handle_dao(now, from, target, path, no_path);
                }
            }
        }
    }

    fn is_root(&self) -> bool {
        self.root == Some(self.id)
    }

    /// Returns the table entry of a neighbour that sent a message. Adds the entry if there is none. `cost` is the cost
    /// of the path through the neighbour. In a full table the new entry replaces a costlier entry, but never the entry
    /// of the parent or of a child. Returns `None` if no entry may be replaced.
    fn note(&mut self, now: Time, id: NodeId, cost: u16) -> Option<&mut Neighbour> {
        let (routes, parent) = (&self.routes, self.parent);
        let kept = |id| parent == Some(id) || routes.is_child(now, id);
        let neighbour = self.neighbours.get_or_add(id, cost, &self.config, kept);
        if neighbour.is_none() {
            self.counters.neighbours_full += 1;
        }
        neighbour
    }

    fn send(&mut self, to: Option<NodeId>, message: RplMessage) {
        if self.outbox.len() >= OUTBOX {
            self.counters.outbox_full += 1;
            return;
        }
        match message {
            RplMessage::Dis => self.counters.diss += 1,
            RplMessage::Dio { .. } => self.counters.dios += 1,
            RplMessage::Dao { .. } => self.counters.daos += 1,
        }
        self.outbox.push_back((to, message));
    }
}
