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

    /// Handles the event that was pushed under the number `what`. If it makes a packet arrive, passes the packet to `deliver`
    /// and returns its receiver.
    fn handle_event<T: Tap>(
        &mut self,
        moment: &mut MediumContext<'_, T>,
        what: u32,
        // A callback, because the bytes of the packet are borrowed from the medium.
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
    /// The ECN field of the packet's IP header.
    pub ecn: Ecn,
    /// The bytes of the packet.
    pub bytes: &'a [u8],
}

/// The parts of the world that a medium may use during a call.
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
    /// The exclusive upper limit of the numbers of a medium's events.
    pub const LIMIT: u32 = 1 << 31;

    /// Adds the event `what`, a number below [`LIMIT`](Self::LIMIT), at `time`.
    #[inline]
    pub fn push(&mut self, time: Time, what: u32) {
        // The highest bit keeps events of the medium apart from timers of nodes.
        self.0.push(time, Self::LIMIT | what);
    }
}
