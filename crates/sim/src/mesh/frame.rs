//! What nodes of a mesh put on the air, as far as others have to know it.

use crate::{Mark, NodeId};

/// An IEEE 802.15.4 frame, without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub kind: FrameKind,
    /// Who sends it; for an acknowledgement, who acknowledges.
    pub from: NodeId,
    /// Whom it is for; `None` is everyone.
    pub to: Option<NodeId>,
    /// Its sequence number; an acknowledgement has that of what it acknowledges.
    pub sequence: u8,
    /// Its length in bytes with MAC header and checksum, without preamble and length field.
    pub bytes: u16,
    /// Which fragment of its datagram it is, from 0.
    pub fragment: u8,
    /// How many fragments there are; 1 is a datagram whole.
    pub fragments: u8,
    /// The datagram tag of fragments (RFC 4944 §5.3).
    pub tag: u16,
    /// The hop it is for.
    pub leg: Leg,
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameKind {
    /// A datagram or a fragment of one.
    Data,
    /// An acknowledgement.
    Ack,
}

/// What an IPv6 packet is on one of its hops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leg {
    /// Its hop limit.
    pub hop_limit: u8,
    /// Its RPL option (RFC 6553), if routes are RPL's.
    pub option: Option<RplOption>,
}

/// The RPL option of a packet (RFC 6553 §3); the instance is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RplOption {
    /// It goes down, away from the root.
    pub down: bool,
    /// A rank was found that does not go with that.
    pub rank_error: bool,
    /// A node had no route down.
    pub forwarding_error: bool,
    /// The rank of the node that sends it on.
    pub sender_rank: u16,
}

/// An IPv6 packet from end to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Whose it is.
    pub source: NodeId,
    /// Whom it is for; `None` is all RPL nodes on the link, ff02::1a.
    pub dest: Option<NodeId>,
    /// What is in it.
    pub content: Content<'a>,
}

/// What an IPv6 packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// The payload of a UDP datagram between ports 5683, under addresses of the mesh's prefix.
    Udp(&'a [u8]),
    /// An ICMPv6 message of RPL with its checksum, under link-local addresses.
    Icmpv6(&'a [u8]),
}

crate::tap::named! {
    /// What happened to a frame.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum FrameEvent {
        /// Its first bit is on the air; every attempt is one.
        Sent = "sent",
        /// It was received whole.
        Received = "received",
        /// It was being received, and another transmission destroyed it.
        Collided = "collided",
        /// The node it was for did not receive it: the link failed it, or the node heard or sent something else.
        Missed = "missed",
        /// It is given up: no attempt of it was acknowledged.
        NotAcknowledged = "not acknowledged",
        /// It is given up: the channel was busy too often.
        ChannelBusy = "channel busy",
        /// There was no room for it in a queue.
        QueueFull = "queue full",
    }
}

/// One event of a frame.
#[derive(Clone, Copy, Debug)]
pub struct FrameRecord<'a> {
    /// When.
    pub time: crate::Time,
    /// What.
    pub event: FrameEvent,
    /// At which node: the receiver's of what is received or destroyed, else the sender's.
    pub node: NodeId,
    /// The frame.
    pub frame: &'a Frame,
    /// The datagram that it carries, whole or in part; `None` for an acknowledgement.
    pub datagram: Option<Datagram<'a>>,
    /// What that belongs to: an exchange, unless it is RPL's.
    pub mark: Mark,
}
