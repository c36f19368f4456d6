//! The size of a packet on a link.

use crate::Transport;

/// The headers that a network adds to the payload of a UDP datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Accounting {
    /// 20 bytes of IPv4 (RFC 791) and 8 of UDP.
    #[default]
    Ipv4,
    /// 40 bytes of IPv6 (RFC 8200) and 8 of UDP.
    Ipv6,
}

impl Accounting {
    /// Returns the length that a packet with `payload` bytes has on a link, in bytes. With `Transport::Ip` the payload
    /// is a whole packet, and no header is added.
    pub const fn wire_bytes(self, transport: Transport, payload: usize) -> u32 {
        let headers = match (transport, self) {
            // The payload is a whole IP packet, which brings its headers.
            (Transport::Ip, _) => 0,
            (Transport::Udp, Self::Ipv4) => 20 + 8,
            (Transport::Udp, Self::Ipv6) => 40 + 8,
        };
        headers + payload as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_counts_with_its_headers_and_an_ip_packet_with_its_own_length() {
        assert_eq!(Accounting::Ipv4.wire_bytes(Transport::Udp, 10), 38);
        assert_eq!(Accounting::Ipv6.wire_bytes(Transport::Udp, 10), 58);
        assert_eq!(Accounting::Ipv4.wire_bytes(Transport::Ip, 60), 60);
    }
}
