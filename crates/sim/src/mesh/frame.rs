//! The frames and datagrams of a mesh, in the form in which taps see them.

use crate::{Mark, NodeId};

/// An IEEE 802.15.4 frame, without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The kind of frame.
    pub kind: FrameKind,
    /// The sender. For an acknowledgement it is the node that acknowledges.
    pub from: NodeId,
    /// The receiver; `None` is all nodes.
    pub to: Option<NodeId>,
    /// The sequence number. An acknowledgement has the number of the frame that it acknowledges.
    pub sequence: u8,
    /// The length in bytes with MAC header and checksum, without preamble and length field.
    pub bytes: u16,
    /// The number of the fragment within its datagram, from 0.
    pub fragment: u8,
    /// The number of fragments of the datagram; 1 is a whole datagram.
    pub fragments: u8,
    /// The datagram tag of fragments (RFC 4944 §5.3).
    pub tag: u16,
    /// The headers of the datagram on this hop.
    pub leg: Leg,
}

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameKind {
    /// A datagram or a fragment of one.
    Data,
    /// An acknowledgement.
    Ack,
}

/// The header fields of an IPv6 packet that change from hop to hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leg {
    /// The hop limit.
    pub hop_limit: u8,
    /// The RPL option (RFC 6553), if RPL makes the routes.
    pub option: Option<RplOption>,
}

/// The RPL option of a packet (RFC 6553 §3). The instance is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RplOption {
    /// True if the packet goes down, away from the root.
    pub down: bool,
    /// True if a node found a rank that does not agree with the direction.
    pub rank_error: bool,
    /// True if a node had no route down, and sent the packet back.
    pub forwarding_error: bool,
    /// The rank of the node that forwards the packet.
    pub sender_rank: u16,
}

/// An IPv6 packet from end to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Packet<'a> {
    /// The sender.
    pub source: NodeId,
    /// The receiver; `None` is all RPL nodes on the link, ff02::1a.
    pub dest: Option<NodeId>,
    /// The content.
    pub content: Content<'a>,
}

/// The content of an IPv6 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// The payload of a UDP datagram. Both ports are 5683, and both addresses have the prefix of the mesh.
    Udp(&'a [u8]),
    /// An ICMPv6 message of RPL with its checksum. Its addresses are link-local.
    Icmpv6(&'a [u8]),
}

crate::named::named! {
    /// A kind of event of a frame.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum FrameEvent {
        /// The frame's first bit is on the air. Every attempt is an event of its own.
        Sent = "sent",
        /// The whole frame was received.
        Received = "received",
        /// Another transmission destroyed the frame during its reception.
        Collided = "collided",
        /// The addressed node did not receive the frame: the link lost it, or the node received or sent something else.
        Missed = "missed",
        /// The frame is given up: no attempt was acknowledged.
        NotAcknowledged = "not acknowledged",
        /// The frame is given up: the channel was busy too often.
        ChannelBusy = "channel busy",
        /// A queue had no room for the frame.
        QueueFull = "queue full",
    }
}

/// An event of a frame.
#[derive(Clone, Copy, Debug)]
pub struct FrameRecord<'a> {
    /// The time of the event.
    pub time: crate::Time,
    /// The kind of event.
    pub event: FrameEvent,
    /// The node where the event happened: the receiver if the frame is received, destroyed or missed, or else the sender.
    pub node: NodeId,
    /// The frame.
    pub frame: &'a Frame,
    /// The datagram that the frame carries, whole or in part; `None` for an acknowledgement.
    pub datagram: Option<Ipv6Packet<'a>>,
    /// The mark of the datagram. The mark of an RPL message has no meaning.
    pub mark: Mark,
}
