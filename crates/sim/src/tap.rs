//! The interface of taps, and the events that they see.

use coapace_control::Duration;

use crate::mesh::FrameRecord;
use crate::named::named;
use crate::{Ecn, HopId, Mark, NodeId, Span, Time, Transport};

named! {
    /// A kind of event of a packet.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Event {
        /// A node passed the packet to the network.
        Sent = "sent",
        /// A hop received the packet.
        Queued = "queued",
        /// A hop had no room for the packet; without a hop: no path leads there, or the packet is longer than 65,535 bytes.
        Dropped = "dropped",
        /// A hop carried the packet and lost it.
        Lost = "lost",
        /// A node is about to receive the packet.
        Delivered = "delivered",
        /// The queue management of a hop dropped the packet, although there was room.
        Discarded = "discarded",
        /// The queue management of a hop marked the packet (RFC 3168).
        Marked = "marked",
        /// A hop with queue management begins to transmit the packet.
        Begun = "begun",
    }
}

/// An event of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The time of the event.
    pub time: Time,
    /// The kind of event.
    pub event: Event,
    /// The hop where the event happened; `None` if it happened at a node.
    pub hop: Option<HopId>,
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// The exchange and transmission that the packet belongs to.
    pub mark: Mark,
    /// The layer that its bytes begin with.
    pub transport: Transport,
    /// The ECN field of the packet's IP header, after the event.
    pub ecn: Ecn,
    /// The size of the packet on a link, with headers.
    pub wire_bytes: u32,
    /// The bytes on the wire that wait in the hop's buffer after the event.
    pub queue_bytes: u64,
    /// The time until the transmission of the packet begins, for [`Event::Queued`] in a drop-tail buffer; the time that
    /// the packet has waited, for [`Event::Begun`].
    pub wait: Span,
    /// The bytes of the packet, without the headers of [`Accounting`](crate::Accounting).
    pub bytes: &'a [u8],
}

/// A new state of a node, or a message of its routing protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeEvent {
    /// The RTO of the node at this moment; see [`Node::rto`](crate::Node::rto).
    Rto(Duration),
    /// The route of the node to the root of RPL at this moment.
    Route {
        /// The next hop; `None` while there is none, and at the root.
        parent: Option<NodeId>,
        /// The distance to the root; see [`RplNode::rank`](crate::mesh::rpl::RplNode::rank).
        rank: u16,
    },
    /// The node sends a message of RPL.
    Rpl {
        /// The kind of message: `dis`, `dio` or `dao`.
        message: &'static str,
        /// The neighbour that receives it; `None` is all neighbours.
        to: Option<NodeId>,
        /// The length of the ICMPv6 message in bytes.
        bytes: u16,
        /// The sender's rank.
        rank: u16,
    },
}

impl NodeEvent {
    /// The names of these events in traces, each with a description.
    pub const NAMES: [(&str, &str); 6] = [
        ("rto", "The node's RTO has changed: after a sample, or because its mechanism lets it age."),
        ("rpl parent", "The node has another parent than before, or none; rank is its rank from now on."),
        ("rpl rank", "The node has another rank than before, with the same parent."),
        ("rpl dis", "The node asks its neighbours for DIOs."),
        ("rpl dio", "The node says how far the root is."),
        ("rpl dao", "The node says who can be reached through it."),
    ];
}

/// An observer of a run. It sees every event in sequence, and changes none.
pub trait Tap {
    /// Observes an event of a packet.
    fn record(&mut self, record: &Record<'_>);

    /// Returns whether the tap wants calls of [`node`](Self::node). If so, the world looks up the RTO of nodes at every
    /// event.
    #[inline]
    fn watches_nodes(&self) -> bool {
        false
    }

    /// Observes the state of a node after it handled an event, or a message that it sends.
    #[inline]
    fn node(&mut self, _: Time, _: NodeId, _: NodeEvent) {}

    /// Observes an event of a frame in a mesh.
    #[inline]
    fn frame(&mut self, _: &FrameRecord<'_>) {}
}

/// The tap `()` observes nothing.
impl Tap for () {
    #[inline]
    fn record(&mut self, _: &Record<'_>) {}
}

/// Passes every event to both taps.
impl<A: Tap, B: Tap> Tap for (A, B) {
    #[inline]
    fn record(&mut self, record: &Record<'_>) {
        self.0.record(record);
        self.1.record(record);
    }
    #[inline]
    fn frame(&mut self, record: &FrameRecord<'_>) {
        self.0.frame(record);
        self.1.frame(record);
    }
    #[inline]
    fn watches_nodes(&self) -> bool {
        self.0.watches_nodes() || self.1.watches_nodes()
    }
    #[inline]
    fn node(&mut self, time: Time, node: NodeId, event: NodeEvent) {
        self.0.node(time, node, event);
        self.1.node(time, node, event);
    }
}

/// Passes every event to the tap, if there is one.
impl<T: Tap> Tap for Option<T> {
    #[inline]
    fn record(&mut self, record: &Record<'_>) {
        if let Some(tap) = self {
            tap.record(record);
        }
    }
    #[inline]
    fn frame(&mut self, record: &FrameRecord<'_>) {
        if let Some(tap) = self {
            tap.frame(record);
        }
    }
    #[inline]
    fn watches_nodes(&self) -> bool {
        self.as_ref().is_some_and(Tap::watches_nodes)
    }
    #[inline]
    fn node(&mut self, time: Time, node: NodeId, event: NodeEvent) {
        if let Some(tap) = self {
            tap.node(time, node, event);
        }
    }
}

impl<T: Tap> Tap for &mut T {
    #[inline]
    fn record(&mut self, record: &Record<'_>) {
        (**self).record(record);
    }
    #[inline]
    fn frame(&mut self, record: &FrameRecord<'_>) {
        (**self).frame(record);
    }
    #[inline]
    fn watches_nodes(&self) -> bool {
        (**self).watches_nodes()
    }
    #[inline]
    fn node(&mut self, time: Time, node: NodeId, event: NodeEvent) {
        (**self).node(time, node, event);
    }
}
