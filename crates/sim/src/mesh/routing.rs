//! The choice between two sources of routes: trees of shortest paths, or RPL.

use super::links::RadioLinks;
use super::packets::MeshPacket;
use super::rpl::{RplMessage, RplNode, Unroutable};
use super::trees::Trees;
use super::{RoutingConfig, RplConfig, RplOption};
use crate::{Luck, NodeId, Time};

/// The routes of a mesh.
#[derive(Debug)]
pub(super) enum MeshRouting {
    Shortest(Trees),
    Rpl(Rpl),
}

/// The RPL of every node.
#[derive(Debug)]
pub(super) struct Rpl {
    config: RplConfig,
    nodes: Vec<RplNode>,
    /// The moment at which each node's timer fires, if it is armed.
    armed: Vec<Option<Time>>,
}

impl MeshRouting {
    /// Returns the routes of nodes that are switched on at `starts`. The first of `roots` is the border router, and the others
    /// are the sinks.
    pub(super) fn new(
        config: &RoutingConfig,
        links: &RadioLinks,
        roots: &[u32],
        starts: &[Time],
        luck: Luck,
    ) -> Self {
        let stream = luck.stream("mesh/routes");
        match config {
            RoutingConfig::Shortest => Self::Shortest(Trees::new(links, roots, stream)),
            RoutingConfig::Rpl(config) => {
                let node = |(&start, node): (&Time, u32)| {
                    // The DODAG has one root. RPL knows nothing of the other sinks.
                    RplNode::new(config, NodeId(node), roots.first() == Some(&node), stream, start)
                };
                Self::Rpl(Rpl {
                    config: *config,
                    nodes: starts.iter().zip(0..).map(node).collect(),
                    armed: vec![None; starts.len()],
                })
            }
        }
    }

    /// Computes shortest paths again, after nodes have moved. RPL notices a move by itself.
    pub(super) fn survey(&mut self, links: &RadioLinks) {
        if let Self::Shortest(trees) = self {
            trees.grow(links);
        }
    }

    /// Returns the next hop of a node on its way to the border router; `None` at the router itself or without a route.
    pub(super) fn parent(&self, node: u32) -> Option<NodeId> {
        match self {
            Self::Shortest(trees) => trees.parent(node),
            Self::Rpl(rpl) => rpl.nodes.get(node as usize)?.parent(),
        }
    }

    /// Returns the parent and the rank of a node; `None` without RPL.
    pub(super) fn parent_and_rank(&self, node: u32) -> Option<(Option<NodeId>, u16)> {
        match self {
            Self::Shortest(_) => None,
            Self::Rpl(rpl) => rpl.nodes.get(node as usize).map(|own| (own.parent(), own.rank())),
        }
    }

    /// Returns the next hop of a packet from `node`, and its RPL option. The packet began at `node`, or arrived from the
    /// neighbour `from` with `option`.
    pub(super) fn next(
        &mut self,
        now: Time,
        node: u32,
        packet: &MeshPacket,
        from: Option<NodeId>,
        option: Option<RplOption>,
    ) -> Result<(NodeId, Option<RplOption>), Unroutable> {
        // Only messages of RPL have no receiver, and they are never forwarded.
        let dest = packet.dest.ok_or(Unroutable::NoRoute)?;
        match self {
            Self::Shortest(trees) => {
                let next = trees.next(node, packet.source.0, dest.0).ok_or(Unroutable::NoRoute)?;
                Ok((next, None))
            }
            Self::Rpl(rpl) => {
                let (next, option) = rpl.nodes[node as usize].forward(now, from, dest, option)?;
                Ok((next, Some(option)))
            }
        }
    }

    /// Returns the RPL of all nodes; `None` if routes are shortest paths.
    pub(super) fn rpl(&mut self) -> Option<&mut Rpl> {
        match self {
            Self::Shortest(_) => None,
            Self::Rpl(rpl) => Some(rpl),
        }
    }
}

impl Rpl {
    pub(super) fn config(&self) -> &RplConfig {
        &self.config
    }

    pub(super) fn node(&mut self, node: u32) -> &mut RplNode {
        &mut self.nodes[node as usize]
    }

    /// Returns the next RPL message of a node and its receiver, if there is a message. The receiver `None` is all
    /// neighbours.
    pub(super) fn poll_transmit(&mut self, node: u32) -> Option<(Option<NodeId>, RplMessage)> {
        self.nodes[node as usize].poll_transmit()
    }

    /// Arms a node's timer. Returns the time, or `None` if the timer was already armed for that time or an earlier one.
    pub(super) fn arm(&mut self, now: Time, node: u32) -> Option<Time> {
        let deadline = self.nodes[node as usize].poll_timeout()?.max(now);
        let armed = &mut self.armed[node as usize];
        // An event for that moment or an earlier one is in the queue already. Events cannot be taken out of it.
        if armed.is_some_and(|armed| armed <= deadline) {
            return None;
        }
        *armed = Some(deadline);
        Some(deadline)
    }

    /// Handles a node's timer. Returns false for a stale timer, after which an earlier time was armed.
    pub(super) fn fires(&mut self, now: Time, node: u32) -> bool {
        let armed = &mut self.armed[node as usize];
        if *armed != Some(now) {
            return false;
        }
        *armed = None;
        let own = &mut self.nodes[node as usize];
        // The deadline may have moved to a later moment since the timer was armed.
        if own.poll_timeout().is_some_and(|deadline| deadline <= now) {
            own.handle_timeout(now);
        }
        true
    }
}
