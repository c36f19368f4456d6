//! Whose word a node takes for the next hop: trees known from the start, or its RPL.

use super::links::Links;
use super::packets::Packet;
use super::rpl::{Message, RplCounters, RplNode, Unroutable};
use super::trees::Trees;
use super::{RoutingConfig, RplConfig, RplOption};
use crate::{Luck, NodeId, Time};

/// The routes of a mesh.
#[derive(Debug)]
pub(super) enum Routing {
    Shortest(Trees),
    Rpl(Rpl),
}

/// The RPL of every node.
#[derive(Debug)]
pub(super) struct Rpl {
    config: RplConfig,
    nodes: Vec<RplNode>,
    /// When each node's timer fires, if it is armed.
    armed: Vec<Option<Time>>,
}

impl Routing {
    /// Of nodes that are switched on at `starts`; the border router is the first of `roots`, the others are the sinks.
    pub(super) fn new(
        config: &RoutingConfig,
        links: &Links,
        roots: &[u32],
        starts: &[Time],
        luck: Luck,
    ) -> Self {
        let stream = luck.stream("mesh/routes");
        match config {
            RoutingConfig::Shortest => Self::Shortest(Trees::new(links, roots, stream)),
            RoutingConfig::Rpl(config) => {
                let node = |(&start, node): (&Time, u32)| {
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

    /// Nodes have moved. RPL has to find out by itself.
    pub(super) fn survey(&mut self, links: &Links) {
        if let Self::Shortest(trees) = self {
            trees.grow(links);
        }
    }

    /// Where a node's packets to the border router go first.
    pub(super) fn parent(&self, node: u32) -> Option<NodeId> {
        match self {
            Self::Shortest(trees) => trees.parent(node),
            Self::Rpl(rpl) => rpl.nodes.get(node as usize)?.parent(),
        }
    }

    /// A node's parent and rank, if routes are RPL's.
    pub(super) fn standing(&self, node: u32) -> Option<(Option<NodeId>, u16)> {
        match self {
            Self::Shortest(_) => None,
            Self::Rpl(rpl) => rpl.nodes.get(node as usize).map(|own| (own.parent(), own.rank())),
        }
    }

    /// Where a packet goes next from `node`, which it reached `from` a neighbour with `option`, or began at.
    pub(super) fn next(
        &mut self,
        now: Time,
        node: u32,
        packet: &Packet,
        from: Option<NodeId>,
        option: Option<RplOption>,
    ) -> Result<(NodeId, Option<RplOption>), Unroutable> {
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

    /// The RPL of all nodes, if it is RPL.
    pub(super) fn rpl(&mut self) -> Option<&mut Rpl> {
        match self {
            Self::Shortest(_) => None,
            Self::Rpl(rpl) => Some(rpl),
        }
    }

    /// What happened to a node's RPL.
    pub(super) fn counters(&self, node: u32) -> Option<RplCounters> {
        match self {
            Self::Shortest(_) => None,
            Self::Rpl(rpl) => rpl.nodes.get(node as usize).map(RplNode::counters),
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

    /// The next message that a node has to send, and to whom.
    pub(super) fn poll_transmit(&mut self, node: u32) -> Option<(Option<NodeId>, Message)> {
        self.nodes[node as usize].poll_transmit()
    }

    /// When a node's timer is to be armed for, if it is not armed for that moment or an earlier one.
    pub(super) fn arm(&mut self, now: Time, node: u32) -> Option<Time> {
        let deadline = self.nodes[node as usize].poll_timeout()?.max(now);
        let armed = &mut self.armed[node as usize];
        if armed.is_some_and(|armed| armed <= deadline) {
            return None;
        }
        *armed = Some(deadline);
        Some(deadline)
    }

    /// A node's timer fires. One that was armed for a later moment before is stale.
    pub(super) fn fires(&mut self, now: Time, node: u32) -> bool {
        let armed = &mut self.armed[node as usize];
        if *armed != Some(now) {
            return false;
        }
        *armed = None;
        let own = &mut self.nodes[node as usize];
        if own.poll_timeout().is_some_and(|deadline| deadline <= now) {
            own.handle_timeout(now);
        }
        true
    }
}
