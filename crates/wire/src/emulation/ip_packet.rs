//! The fields of an IP packet that the emulator reads.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::steps::PacketRole;

/// The source and destination addresses of an IP packet (RFC 791 §3.1, RFC 8200 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) from: IpAddr,
    pub(super) to: IpAddr,
}

const UDP: u8 = 17;

impl Ends {
    /// Reads the addresses of a packet that goes from one host to another. Returns `None` if the bytes are not an IP
    /// packet, or if an address is multicast, broadcast or unspecified, or a link-local address of IPv6.
    pub(super) fn read(packet: &[u8]) -> Option<Self> {
        let ends = match packet.first()? >> 4 {
            // With the length of the shortest header, both addresses are inside the packet.
            4 if packet.len() >= 20 => {
                let address = |at: usize| packet[at..].first_chunk().copied().map(Ipv4Addr::from);
                Self { from: address(12)?.into(), to: address(16)?.into() }
            }
            6 if packet.len() >= 40 => {
                let address = |at: usize| packet[at..].first_chunk().copied().map(Ipv6Addr::from);
                Self { from: address(8)?.into(), to: address(24)?.into() }
            }
            _ => return None,
        };
        // A system sends queries of its own to groups as soon as a device is up. They would take places of sources.
        let is_host = |address: IpAddr| match address {
            IpAddr::V4(v4) => !v4.is_multicast() && !v4.is_broadcast() && !v4.is_unspecified(),
            IpAddr::V6(v6) => !v6.is_multicast() && !v6.is_unicast_link_local() && !v6.is_unspecified(),
        };
        (is_host(ends.from) && is_host(ends.to)).then_some(ends)
    }
}

/// Returns the role of a packet in an exchange. It carries a CoAP message if a UDP datagram, at any port, begins with
/// the header of CoAP.
pub(super) fn content(packet: &[u8]) -> PacketRole {
    read_content(packet).unwrap_or(PacketRole::Other)
}

fn read_content(packet: &[u8]) -> Option<PacketRole> {
    let header = match packet.first()? >> 4 {
        4 => {
            // Fragments after the first have no UDP header.
            // The shift drops the three flags above the offset.
            let offset = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) << 3;
            let length = usize::from(packet.first()? & 0xf) * 4;
            (*packet.get(9)? == UDP && offset == 0).then_some(length)?
        }
        // A packet with extension headers (RFC 8200 §4), such as a fragment, counts as `Other`.
        6 => (*packet.get(6)? == UDP).then_some(40)?,
        _ => return None,
    };
    let udp = packet.get(header..)?;
    let port = |at: usize| Some(u16::from_be_bytes([*udp.get(at)?, *udp.get(at + 1)?]));
    // Both directions have the same two ports, and so the same XOR of them.
    Some(PacketRole::read(udp.get(8..)?, port(0)? ^ port(2)?))
}

#[cfg(test)]
mod tests {
    use coapace_sim::{Ecn, udp_packet};
    use proptest::prelude::*;

    use super::*;

    fn packet(from: &str, to: &str, payload: &[u8]) -> Vec<u8> {
        let mut packet = Vec::new();
        let ends = (from.parse().expect("an address"), to.parse().expect("an address"));
        udp_packet(ends.0, ends.1, 7, Ecn::NotCapable, payload, &mut packet).expect("a short datagram");
        packet
    }

    #[test]
    fn source_destination_and_payload_of_an_ip_packet_are_read() {
        let message = b"\x40\x01\x12\x34";
        for (from, to) in [("10.1.0.1:4000", "10.2.0.1:5683"), ("[fd00::1]:4000", "[fd00::2]:5683")] {
            let up = packet(from, to, message);
            let ip = |text: &str| text.parse::<std::net::SocketAddr>().expect("an address").ip();
            assert_eq!(Ends::read(&up), Some(Ends { from: ip(from), to: ip(to) }));
            let (client, server) = (4000u16, 5683);
            let key = u32::from(client ^ server) << 16 | 0x1234;
            assert_eq!(content(&up), PacketRole::Message(key));
            assert_eq!(content(&packet(to, from, b"\x60\x45\x12\x34")), PacketRole::Reply(key));
            assert_eq!(content(&packet(from, to, b"\x16hello")), PacketRole::Other);
            assert_eq!(content(&packet(from, to, b"")), PacketRole::Other);
        }
    }

    #[test]
    fn multicast_broadcast_and_link_local_packets_are_not_emulated() {
        for (from, to) in [
            ("10.1.0.1:1", "224.0.1.187:2"),
            ("10.1.0.1:1", "255.255.255.255:2"),
            ("[fd00::1]:1", "[ff02::fd]:2"),
            ("[fe80::1]:1", "[fe80::2]:2"),
        ] {
            assert_eq!(Ends::read(&packet(from, to, b"")), None, "{to}");
        }
    }

    proptest! {
        #[test]
        fn reading_any_bytes_as_an_ip_packet_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80), first in 0u8..16) {
            let mut bytes = bytes;
            if let Some(byte) = bytes.first_mut() {
                *byte = (if first % 2 == 0 { 0x40 } else { 0x60 }) | first;
            }
            let _ = (Ends::read(&bytes), content(&bytes));
        }
    }
}
