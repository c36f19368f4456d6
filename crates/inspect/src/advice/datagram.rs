//! The UDP datagram of a packet.

use std::net::SocketAddr;

use super::capture::Point;

/// A UDP datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedDatagram<'a> {
    /// The sender.
    pub from: SocketAddr,
    /// The receiver.
    pub to: SocketAddr,
    /// The bytes behind the UDP header that were kept.
    pub payload: &'a [u8],
    /// The identification of the IPv4 packet (RFC 791 §3.1); 0 if there is none.
    pub identification: u16,
    /// The length of the IP packet in bytes, headers included and uncompressed.
    pub ip_bytes: u32,
    /// Whether the payload was kept whole.
    pub is_whole: bool,
    /// The point of its path where it was seen.
    pub point: Point,
}

/// The reason why no datagram is read from a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Skipped {
    /// No reader is known for its link type.
    Link(i32),
    /// It carries no UDP.
    NotUdp,
    /// It is wrapped into another protocol, such as GRE, VXLAN or PPPoE.
    Tunnel,
    /// It is a further fragment of an IP packet. The first one has the header of CoAP.
    Fragment,
    /// It is a radio frame that was seen before, or a further fragment of one.
    Repeated,
    /// It is a radio frame between two nodes that are neither the sender nor the receiver of the datagram.
    Forwarded,
    /// Its headers are cut off or contradict themselves.
    Malformed,
}
