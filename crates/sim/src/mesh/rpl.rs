//! RPL in storing mode (RFC 6550): how nodes of a mesh find their way to a root, and the root to them.
//!
//! A [`RplNode`] is the RPL of one node, a state machine that is told the time, messages and what became of frames, and
//! that says what to send. Where the RFCs leave a choice it is Contiki's. One root has one DODAG, whose version never
//! changes; DAOs are not acknowledged, and every node is a router.
//!
//! ```
//! use coapace_sim::mesh::RplConfig;
//! use coapace_sim::mesh::rpl::{Message, RplNode};
//! use coapace_sim::{Luck, NodeId, Time};
//!
//! let (config, luck) = (RplConfig::CONTIKI_3, Luck::new(1).stream("rpl"));
//! let mut root = RplNode::new(&config, NodeId(0), true, luck, Time::ZERO);
//! let mut node = RplNode::new(&config, NodeId(1), false, luck, Time::ZERO);
//!
//! // The root tells everyone within half to all of the first 4.096 s.
//! let now = root.poll_timeout().unwrap();
//! root.handle_timeout(now);
//! let (to, dio) = root.poll_transmit().unwrap();
//! assert_eq!((to, matches!(dio, Message::Dio { rank: 128, .. })), (None, true));
//!
//! // An unknown link costs two transmissions of 128.
//! node.handle(now, NodeId(0), &dio);
//! assert_eq!((node.parent(), node.rank()), (Some(NodeId(0)), 384));
//! assert_eq!(node.forward(now, None, NodeId(0), None).unwrap().0, NodeId(0));
//! ```

mod message;
mod neighbours;
mod routes;
mod sequence;
#[cfg(test)]
mod tests;
mod trickle;

use std::collections::VecDeque;

pub use message::Message;
use neighbours::Neighbours;
use routes::Routes;
pub use sequence::Sequence;
use trickle::Trickle;

use super::{RplConfig, RplOption};
use crate::{NodeId, Stream, Time};

/// The rank of a node without a way to the root (RFC 6550 §17).
pub const INFINITE_RANK: u16 = u16::MAX;

/// Messages that wait to be fetched; what is more is lost.
const OUTBOX: usize = 16;
/// A node without a parent probes a neighbour within this time (Contiki, rpl-timers.c).
const URGENT_NS: u64 = 10_000_000_000;
/// A rank that rose by so many least increases since it was last announced is announced soon (Contiki-NG's rpl-lite,
/// rpl-conf.h).
const SIGNIFICANT_HOPS: u16 = 4;

/// The random numbers of one node, each keyed by the node and by how many there were before.
#[derive(Clone, Copy, Debug)]
struct Draws {
    stream: Stream,
    node: NodeId,
    count: u64,
}

impl Draws {
    fn new(stream: Stream, node: NodeId) -> Self {
        Self { stream, node, count: 0 }
    }

    /// A whole number of 0..`bound`; 0 if there is none.
    fn below(&mut self, bound: u64) -> u64 {
        self.count += 1;
        self.stream.below(bound, u64::from(self.node.0), self.count, 0)
    }

    /// A moment between half of `span_ns` and one and a half of it after `now`.
    fn around(&mut self, now: Time, span_ns: u64) -> Time {
        now + (span_ns / 2).saturating_add(self.below(span_ns))
    }
}

/// What happened to a node, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RplCounters {
    /// DIOs sent, to all or to one.
    pub dios: u32,
    /// DIOs that Trickle suppressed.
    pub dios_suppressed: u32,
    /// DISs sent.
    pub diss: u32,
    /// DAOs sent, its own and those it passes on.
    pub daos: u32,
    /// Times that Trickle began anew with its shortest interval.
    pub trickle_resets: u32,
    /// Times that one parent was left for another.
    pub parent_changes: u32,
    /// Times that no parent was left: local repairs.
    pub detachments: u32,
    /// Packets marked because their way and the ranks on it did not agree, and passed on.
    pub rank_errors: u32,
    /// Loops: packets dropped because that happened twice, and DAOs from one's own parent or of one's own.
    pub loops: u32,
    /// Packets sent back, or dropped when they came back, because there was no route down.
    pub forwarding_errors: u32,
    /// DAOs refused because there was no room for their route.
    pub routes_full: u32,
    /// Neighbours not taken note of because there was no room.
    pub neighbours_full: u32,
    /// Messages lost because nobody fetched those before.
    pub outbox_full: u32,
}

/// Why a packet cannot be sent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unroutable {
    /// It should go up, and there is no parent.
    NoParent,
    /// It is at the root, and the root has no route.
    NoRoute,
    /// The ranks on its way did not agree with its direction twice (RFC 6550 §11.2.2.2).
    Loop,
    /// A child sent it back because it has no route (RFC 6550 §11.2.2.3).
    ForwardingError,
}

/// The RPL of one node.
#[derive(Clone, Debug)]
pub struct RplNode {
    config: RplConfig,
    id: NodeId,
    /// The root of the DODAG that the node is in or was in last; a root's own.
    root: Option<NodeId>,
    parent: Option<NodeId>,
    rank: u16,
    /// The lowest rank since the node joined: L of RFC 6550 §8.2.2.4.
    lowest_rank: u16,
    /// What it told all on the link last.
    announced_rank: u16,
    /// Its own DTSN.
    dtsn: Sequence,
    /// The sequence number of its last DAO.
    sequence: Sequence,
    neighbours: Neighbours,
    routes: Routes,
    trickle: Trickle,
    /// When to send a DIS.
    dis: Time,
    /// When to send a DAO because there is reason to.
    dao: Time,
    /// When to send a DAO because the last is old.
    renewal: Time,
    /// When to probe a link.
    probe: Time,
    draws: Draws,
    outbox: VecDeque<(Option<NodeId>, Message)>,
    counters: RplCounters,
}

impl RplNode {
    /// A node that is switched on at `now`. `stream` may be the same for all nodes.
    pub fn new(config: &RplConfig, id: NodeId, is_root: bool, stream: Stream, now: Time) -> Self {
        let mut node = Self {
            config: *config,
            id,
            root: None,
            parent: None,
            rank: INFINITE_RANK,
            lowest_rank: INFINITE_RANK,
            announced_rank: INFINITE_RANK,
            dtsn: Sequence::START,
            sequence: Sequence::START,
            neighbours: Neighbours::default(),
            routes: Routes::default(),
            trickle: Trickle::STOPPED,
            dis: now + config.dis_start_ns,
            dao: Time::MAX,
            renewal: Time::MAX,
            probe: Time::MAX,
            draws: Draws::new(stream, id),
            outbox: VecDeque::new(),
            counters: RplCounters::default(),
        };
        if is_root {
            node.root = Some(id);
            node.rank = config.min_hop_rank_increase;
            node.dis = Time::MAX;
            node.reset_trickle(now);
        }
        node
    }

    /// The preferred parent: the next hop of all that goes up.
    pub fn parent(&self) -> Option<NodeId> {
        self.parent
    }

    /// How far away the root is, in 1/128 of a transmission and with the root's own rank in it; [`INFINITE_RANK`] without
    /// a parent.
    pub fn rank(&self) -> u16 {
        self.rank
    }

    /// How many routes down there are.
    pub fn routes(&self, now: Time) -> usize {
        self.routes.count(now)
    }

    /// What happened so far.
    pub fn counters(&self) -> RplCounters {
        self.counters
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called.
    pub fn poll_timeout(&self) -> Option<Time> {
        let next =
            [self.trickle.poll_timeout(), self.dis, self.dao, self.renewal, self.probe].into_iter().min();
        next.filter(|&time| time < Time::MAX)
    }

    /// The moment that [`poll_timeout`](Self::poll_timeout) named has come.
    pub fn handle_timeout(&mut self, now: Time) {
        match self.trickle.handle_timeout(now, &self.config, &mut self.draws) {
            Some(true) => self.announce(),
            Some(false) => self.counters.dios_suppressed += 1,
            None => {}
        }
        if self.dis <= now {
            // An interval of no length would never let time pass.
            self.dis = now + self.config.dis_interval_ns.max(1);
            self.send(None, Message::Dis);
        }
        if self.dao <= now || self.renewal <= now {
            self.dao = Time::MAX;
            let half = self.config.route_lifetime_ns / 2;
            self.renewal = now + half.saturating_add(self.draws.below(half / 2)).max(1);
            self.send_dao(self.parent, false);
        }
        if self.probe <= now {
            self.probe = self.draws.around(now, self.config.probing_interval_ns.max(2));
            let oldest = self.parent.is_some() && self.draws.below(2) == 0;
            if let Some(neighbour) = self.neighbours.to_probe(now, self.parent, oldest) {
                self.send(Some(neighbour), self.dio());
            }
        }
    }

    /// The next message to send, and to which neighbour: `None` is all on the link.
    pub fn poll_transmit(&mut self) -> Option<(Option<NodeId>, Message)> {
        self.outbox.pop_front()
    }

    /// A message came from a neighbour.
    pub fn handle(&mut self, now: Time, from: NodeId, message: &Message) {
        match *message {
            Message::Dis => {
                if self.rank < INFINITE_RANK {
                    self.reset_trickle(now);
                }
            }
            Message::Dio { root, rank, dtsn } => self.handle_dio(now, from, root, rank, dtsn),
            Message::Dao { root, target, no_path, .. } => {
                if self.root == Some(root) && self.rank < INFINITE_RANK {
                    self.handle_dao(now, from, target, no_path);
                }
            }
        }
    }

    /// The MAC is done with a frame to one neighbour, after so many `transmissions` of it. (Frames that it gave up because
    /// the channel was busy tell nothing of the link.)
    pub fn on_sent(&mut self, now: Time, neighbour: NodeId, acknowledged: bool, transmissions: u8) {
        let Some(known) = self.neighbours.sent(now, neighbour, (acknowledged, transmissions), &self.config)
        else {
            return;
        };
        if !known.is_reachable(&self.config) {
            self.routes.remove_through(neighbour);
        }
        self.select_parent(now);
    }

    /// Where a packet for `to`, another node, goes next, and with which RPL option; it came `from` a neighbour with
    /// `option`, or is the node's own.
    ///
    /// # Errors
    ///
    /// [`Unroutable`] if it goes nowhere.
    pub fn forward(
        &mut self,
        now: Time,
        from: Option<NodeId>,
        to: NodeId,
        option: Option<RplOption>,
    ) -> Result<(NodeId, RplOption), Unroutable> {
        let mut ahead = option.unwrap_or_default();
        if let (Some(from), Some(option)) = (from, option) {
            if option.forwarding_error {
                self.counters.forwarding_errors += 1;
                self.routes.remove((to, from));
                self.refresh_routes(now);
                return Err(Unroutable::ForwardingError);
            }
            // Whole ranks, as Contiki compares them, and equal ones agree with no direction: no circle passes.
            let (sender, own) = (option.sender_rank, self.rank);
            if if option.down { sender >= own } else { sender <= own } {
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
            Some(next) if Some(next) != from => {
                ahead.down = true;
                return Ok((next, ahead));
            }
            // Whom it would be sent to has just sent it here: the route is an old one.
            Some(next) => self.routes.remove((to, next)),
            None => {}
        }
        match (from, self.parent) {
            (Some(from), _) if ahead.down => {
                self.counters.forwarding_errors += 1;
                ahead.forwarding_error = true;
                Ok((from, ahead))
            }
            (_, Some(parent)) => Ok((parent, ahead)),
            (_, None) if self.is_root() => Err(Unroutable::NoRoute),
            (_, None) => Err(Unroutable::NoParent),
        }
    }

    fn is_root(&self) -> bool {
        self.root == Some(self.id)
    }

    fn handle_dio(&mut self, now: Time, from: NodeId, root: NodeId, rank: u16, dtsn: Sequence) {
        if self.is_root() {
            if root == self.id && rank < INFINITE_RANK {
                self.trickle.hear();
            }
            return;
        }
        if self.root != Some(root) {
            if self.parent.is_some() || rank == INFINITE_RANK {
                return;
            }
            // Another DODAG: what is known of the last one is of no use in it.
            self.neighbours.forget_ranks();
            self.root = Some(root);
        }
        // A child is below its parent: one that is not has left. (One that only does not know of a rank that has just
        // risen sends its DAOs again, for a parent that moves asks for them.)
        if (rank == INFINITE_RANK || rank < self.rank) && self.routes.is_child(now, from) {
            self.routes.remove_through(from);
        }
        if rank == INFINITE_RANK && self.neighbours.get(from).is_none() {
            return;
        }
        let (routes, parent) = (&self.routes, self.parent);
        let kept = |id| parent == Some(id) || routes.is_child(now, id);
        let cost = rank.saturating_add(u16::from(self.config.initial_etx).saturating_mul(128));
        let Some(neighbour) = self.neighbours.get_or_add(from, cost, &self.config, kept) else {
            self.counters.neighbours_full += 1;
            return;
        };
        let consistent = neighbour.rank == rank;
        let refresh = dtsn.is_newer_than(neighbour.dtsn) && parent == Some(from);
        neighbour.rank = rank;
        neighbour.dtsn = dtsn;
        if consistent && parent.is_some() {
            self.trickle.hear();
        }
        self.select_parent(now);
        if refresh && self.parent == parent {
            self.dtsn = self.dtsn.next();
            self.schedule_dao(now);
        }
    }

    fn handle_dao(&mut self, now: Time, from: NodeId, target: NodeId, no_path: bool) {
        if no_path {
            if target != self.id
                && self.routes.take_back(now, (target, from), now + self.config.no_path_delay_ns)
            {
                self.pass_on(target, true);
            }
            return;
        }
        let parent = self.parent;
        if target == self.id || parent == Some(from) {
            // Upwards goes round in a circle. The parent is one again when it says where it is.
            self.counters.loops += 1;
            if let Some(above) = parent.and_then(|parent| self.neighbours.get_mut(parent)) {
                above.rank = INFINITE_RANK;
            }
            self.select_parent(now);
            if target == self.id || self.rank == INFINITE_RANK {
                return;
            }
        }
        let (routes, parent) = (&self.routes, self.parent);
        let kept = |id| parent == Some(id) || routes.is_child(now, id);
        let Some(neighbour) = self.neighbours.get_or_add(from, 0, &self.config, kept) else {
            self.counters.neighbours_full += 1;
            return;
        };
        if neighbour.rank <= self.rank {
            // It was above or beside this node, and is below now: where, it has not said yet.
            neighbour.rank = INFINITE_RANK;
        }
        let until = now + self.config.route_lifetime_ns;
        let max = usize::from(self.config.max_routes);
        if self.routes.insert(now, (target, from), until, max).is_err() {
            self.counters.routes_full += 1;
            return;
        }
        self.pass_on(target, false);
    }

    /// Sends the parent a DAO of another node's.
    fn pass_on(&mut self, target: NodeId, no_path: bool) {
        if let (Some(parent), Some(root)) = (self.parent, self.root) {
            self.sequence = self.sequence.next();
            self.send(Some(parent), Message::Dao { root, target, sequence: self.sequence, no_path });
        }
    }

    /// Takes the best parent there is, or none, and the rank that comes with it.
    fn select_parent(&mut self, now: Time) {
        if self.is_root() {
            return;
        }
        let highest = match self.config.max_rank_increase {
            0 => INFINITE_RANK,
            increase => self.lowest_rank.saturating_add(increase),
        };
        let child = |id| self.routes.is_child(now, id);
        let best = self.neighbours.best(self.parent, highest, &self.config, child);
        match (self.parent, best.map(|best| (best.id, best.rank_through(&self.config)))) {
            (before, Some((parent, rank))) => {
                self.rank = rank;
                self.lowest_rank = self.lowest_rank.min(rank);
                if before != Some(parent) {
                    self.move_to(now, parent);
                }
                let significant = self.config.min_hop_rank_increase.saturating_mul(SIGNIFICANT_HOPS);
                if rank >= self.announced_rank.saturating_add(significant) {
                    self.reset_trickle(now);
                }
            }
            (Some(_), None) => self.detach(now),
            (None, None) => {
                // What is heard cannot be used; perhaps the links are better now.
                if self.config.probing_interval_ns > 0 && self.neighbours.any_joined() {
                    let soon = now + self.draws.below(URGENT_NS);
                    if self.probe > now + URGENT_NS {
                        self.probe = soon;
                    }
                }
            }
        }
    }

    fn move_to(&mut self, now: Time, parent: NodeId) {
        if let Some(before) = self.parent.replace(parent) {
            self.counters.parent_changes += 1;
            self.send_dao(Some(before), true);
        }
        self.dis = Time::MAX;
        if self.probe == Time::MAX && self.config.probing_interval_ns > 0 {
            self.probe = self.draws.around(now, self.config.probing_interval_ns);
        }
        self.schedule_dao(now);
        self.refresh_routes(now);
    }

    /// Local repair (RFC 6550 §8.2.2.5): without a parent the node tells all that it is no parent either, forgets who is
    /// above and who is below, and asks for a DODAG.
    fn detach(&mut self, now: Time) {
        self.counters.detachments += 1;
        self.parent = None;
        self.rank = INFINITE_RANK;
        self.lowest_rank = INFINITE_RANK;
        (self.dao, self.renewal) = (Time::MAX, Time::MAX);
        self.routes.clear();
        self.neighbours.forget_ranks();
        if self.config.probing_interval_ns == 0 {
            // Nothing but use would find out that a link is better than it was.
            self.neighbours.clear();
        }
        self.announce();
        self.reset_trickle(now);
        self.dis = self.draws.around(now, self.config.dis_start_ns);
    }

    /// Has the children send their DAOs again, and soon.
    fn refresh_routes(&mut self, now: Time) {
        self.dtsn = self.dtsn.next();
        self.reset_trickle(now);
    }

    fn reset_trickle(&mut self, now: Time) {
        if self.trickle.reset(now, &self.config, &mut self.draws) {
            self.counters.trickle_resets += 1;
        }
    }

    fn schedule_dao(&mut self, now: Time) {
        if self.dao == Time::MAX {
            self.dao = self.draws.around(now, self.config.dao_delay_ns);
        }
    }

    fn dio(&self) -> Message {
        Message::Dio { root: self.root.unwrap_or(self.id), rank: self.rank, dtsn: self.dtsn }
    }

    /// Sends all on the link a DIO.
    fn announce(&mut self) {
        if self.is_root() && self.config.dio_refreshes_routes {
            self.dtsn = self.dtsn.next();
        }
        self.announced_rank = self.rank;
        self.send(None, self.dio());
    }

    /// Sends `parent` a DAO of the node's own.
    fn send_dao(&mut self, parent: Option<NodeId>, no_path: bool) {
        if let (Some(_), Some(root)) = (parent, self.root) {
            self.sequence = self.sequence.next();
            self.send(parent, Message::Dao { root, target: self.id, sequence: self.sequence, no_path });
        }
    }

    fn send(&mut self, to: Option<NodeId>, message: Message) {
        if self.outbox.len() >= OUTBOX {
            self.counters.outbox_full += 1;
            return;
        }
        match message {
            Message::Dis => self.counters.diss += 1,
            Message::Dio { .. } => self.counters.dios += 1,
            Message::Dao { .. } => self.counters.daos += 1,
        }
        self.outbox.push_back((to, message));
    }
}
