//! What carries packets between nodes: a [`Network`](crate::Network) of hops, or a [`Mesh`](crate::mesh::Mesh) of radios.

use crate::{Events, Mark, NodeId, Outgoing, Site, Tap, Time};

/// Whatever carries packets between the nodes of a [`World`](crate::World).
pub trait Medium {
    /// The next node is added, at `site`.
    fn place(&mut self, site: Site);

    /// All nodes are placed; what happens without them may begin. Called more than once.
    fn prepare(&mut self, events: &mut Happenings<'_>);

    /// A node sends a packet.
    fn send<T: Tap>(&mut self, moment: &mut Moment<'_, T>, from: NodeId, outgoing: Outgoing, bytes: &[u8]);

    /// What was put into the queue of events under the number `what` happens. A packet that arrives goes to `deliver`, and
    /// its receiver is returned.
    fn happen<T: Tap>(
        &mut self,
        moment: &mut Moment<'_, T>,
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
    /// What it belongs to.
    pub mark: Mark,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// A moment of a run, and those around the medium.
#[derive(Debug)]
pub struct Moment<'a, T> {
    /// When.
    pub now: Time,
    /// What is to happen later.
    pub events: Happenings<'a>,
    /// Who watches.
    pub tap: T,
}

/// The queue of events as a medium may use it.
#[derive(Debug)]
pub struct Happenings<'a>(pub(crate) &'a mut Events);

impl Happenings<'_> {
    /// What a medium names lies below this.
    pub const LIMIT: u32 = 1 << 31;

    /// Lets `what`, a number below [`LIMIT`](Self::LIMIT), happen at `time`.
    #[inline]
    pub fn push(&mut self, time: Time, what: u32) {
        self.0.push(time, Self::LIMIT | what);
    }
}
