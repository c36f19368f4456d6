//! The interface of a medium, which carries packets between nodes.

use crate::{Ecn, Events, Mark, NodeId, Outgoing, Site, Tap, Time};

/// A carrier of packets between the nodes of a [`World`](crate::World): a [`Network`](crate::Network) of hops, or a
/// [`Mesh`](crate::mesh::Mesh) of radios.
pub trait Medium {
    /// Adds the next node, at `site`.
    fn place(&mut self, site: Site);

    /// Pushes the first events of the medium. It is called after all nodes are placed, and may be called again.
    fn prepare(&mut self, events: &mut MediumEvents<'_>);

    /// Sends a packet of a node.
    fn send<T: Tap>(
        &mut self,
        moment: &mut MediumContext<'_, T>,
        from: NodeId,
        outgoing: Outgoing,
        bytes: &[u8],
    );

    /// Handles the event that was pushed under the number `what`. If a packet arrives, passes it to `deliver` and returns
    /// its receiver.
    fn handle_event<T: Tap>(
        &mut self,
        moment: &mut MediumContext<'_, T>,
        what: u32,
        deliver: impl FnOnce(Arrival<'_>),
    ) -> Option<NodeId>;
}

/// A packet that arrives at its receiver.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// The exchange and transmission that the packet belongs to.
    pub mark: Mark,
    /// The ECN field of its IP header.
    pub ecn: Ecn,
    /// The bytes of the packet.
    pub bytes: &'a [u8],
}

/// The surroundings of a medium at a moment of a run.
#[derive(Debug)]
pub struct MediumContext<'a, T> {
    /// The present moment.
    pub now: Time,
    /// The queue for later events.
    pub events: MediumEvents<'a>,
    /// The observer of the run.
    pub tap: T,
}

/// The part of the queue of events that a medium may use.
#[derive(Debug)]
pub struct MediumEvents<'a>(pub(crate) &'a mut Events);

impl MediumEvents<'_> {
    /// The upper limit of the numbers of a medium's events.
    pub const LIMIT: u32 = 1 << 31;

    /// Adds the event `what`, a number below [`LIMIT`](Self::LIMIT), at `time`.
    #[inline]
    pub fn push(&mut self, time: Time, what: u32) {
        self.0.push(time, Self::LIMIT | what);
    }
}
