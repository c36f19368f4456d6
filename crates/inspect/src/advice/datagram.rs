//! The UDP datagram of a packet.

use std::net::SocketAddr;

use super::capture::Point;

/// A captured UDP datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedDatagram<'a> {
    /// The sender.
    pub from: SocketAddr,
    /// The receiver.
    pub to: SocketAddr,
    /// The captured bytes after the UDP header.
    pub payload: &'a [u8],
    /// The Identification field of the IPv4 packet (RFC 791 §3.1); 0 for an IPv6 packet.
    pub identification: u16,
    /// The length of the IP packet in bytes, headers included and uncompressed.
    pub ip_bytes: u32,
    /// Whether the whole payload was captured.
    pub is_whole: bool,
    /// The point of the network where the datagram was seen.
    pub point: Point,
}

/// The reason why a packet is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Skipped {
    /// The link type is unknown.
    Link(i32),
    /// The packet does not carry UDP.
    NotUdp,
    /// The packet is wrapped in another protocol, such as GRE, VXLAN or PPPoE.
    Tunnel,
    /// The packet is a later fragment of an IP packet. The first fragment has the header of CoAP.
    Fragment,
    /// The packet is a radio frame that was seen before, or that carries a later fragment of a datagram.
    Repeated,
    /// The packet is a radio frame between two nodes that are neither the sender nor the receiver of the datagram.
    Forwarded,
    /// The headers of the packet are truncated or contradictory.
    Malformed,
    /// The file does not describe the interface of the packet, or describes too many interfaces before it.
    Interface,
    /// The file does not have the time of the packet.
    Timeless,
}
