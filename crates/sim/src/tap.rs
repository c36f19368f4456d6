//! What can be seen of a network at work.

use coapace_control::Duration;

use crate::mesh::FrameRecord;
use crate::{HopId, Mark, NodeId, Time, Transport};

/// Declares kinds of events with their names in traces. What they are is their documentation, for people and for the page on traces.
macro_rules! named {
    ($(#[$meta:meta])+ pub enum $name:ident { $($(#[doc = $about:literal])+ $event:ident = $text:literal,)+ }) => {
        $(#[$meta])+
        pub enum $name { $($(#[doc = $about])+ $event,)+ }

        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$event,)+];

            /// Its name in traces.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$event => $text,)+ }
            }

            /// What it is, in a sentence.
            pub const fn about(self) -> &'static str {
                match self { $(Self::$event => concat!($($about),+).trim_ascii(),)+ }
            }
        }
    };
}
pub(crate) use named;

named! {
    /// What happened to a packet.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Event {
        /// A node handed the packet to the network.
        Sent = "sent",
        /// A hop received it.
        Queued = "queued",
        /// A hop had no room for it; without a hop: there is no path, or the packet is longer than 65,535 bytes.
        Dropped = "dropped",
        /// A hop carried it and lost it.
        Lost = "lost",
        /// A node is about to receive it.
        Delivered = "delivered",
    }
}

/// One event, with everything that is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// When.
    pub time: Time,
    /// What.
    pub event: Event,
    /// Where, if not at a node.
    pub hop: Option<HopId>,
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// What the packet belongs to.
    pub mark: Mark,
    /// What its bytes are.
    pub transport: Transport,
    /// Its size on a link, headers included.
    pub wire_bytes: u32,
    /// What waits in the hop's buffer after the event, in bytes on the wire.
    pub queue_bytes: u64,
    /// For [`Event::Queued`]: the time from now until its transmission begins, in nanoseconds.
    pub wait_ns: u64,
    /// Its bytes, without the headers of the accounting.
    pub bytes: &'a [u8],
}

/// An event of a node that is no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeEvent {
    /// Its RTO at this moment: see [`Node::rto`](crate::Node::rto).
    Rto(Duration),
    /// Its way to the root of RPL's routes at this moment.
    Route {
        /// The next hop; `None` while it has none, and at the root.
        parent: Option<NodeId>,
        /// How far away the root is: see [`RplNode::rank`](crate::mesh::rpl::RplNode::rank).
        rank: u16,
    },
    /// It hands a message of RPL to its link layer.
    Rpl {
        /// Which: `dis`, `dio` or `dao`.
        message: &'static str,
        /// The neighbour that it is for; `None` is all of them.
        to: Option<NodeId>,
        /// The length of the ICMPv6 message in bytes.
        bytes: u16,
        /// The sender's rank.
        rank: u16,
    },
}

impl NodeEvent {
    /// Their names in traces, and what they say.
    pub const NAMES: [(&str, &str); 6] = [
        ("rto", "The node's RTO is another than before: after a sample, or as its mechanism lets it age."),
        ("rpl parent", "The node has another parent than before, or none; rank is what it has with it."),
        ("rpl rank", "The node has another rank than before, with the same parent."),
        ("rpl dis", "The node asks its neighbours for DIOs."),
        ("rpl dio", "The node says how far the root is."),
        ("rpl dao", "The node says who can be reached through it."),
    ];
}

/// Something that watches. It sees every event in order and changes none.
pub trait Tap {
    /// Something happened.
    fn record(&mut self, record: &Record<'_>);

    /// Whether [`node`](Self::node) is to be called: what nobody watches is not looked up.
    #[inline]
    fn watches_nodes(&self) -> bool {
        false
    }

    /// A node was given something to do, and this is what it knows then or says.
    #[inline]
    fn node(&mut self, _: Time, _: NodeId, _: NodeEvent) {}

    /// Something happened on the air of a mesh. Who watches packets alone need not look.
    #[inline]
    fn frame(&mut self, _: &FrameRecord<'_>) {}
}

/// Nobody watches.
impl Tap for () {
    #[inline]
    fn record(&mut self, _: &Record<'_>) {}
}

/// Two watch.
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

/// Perhaps one watches.
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
