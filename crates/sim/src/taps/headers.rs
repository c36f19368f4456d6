//! The headers of IP and UDP.

use std::net::{IpAddr, SocketAddr};

use crate::Ecn;

const UDP: u8 = 17;

/// Appends a datagram to `packet`, with headers of IP and UDP and their checksums (RFC 791, RFC 8200 §3, RFC 768). The
/// time to live or hop limit is 64, and an IPv4 header has Don't Fragment. `identification` is for the IPv4 header, and
/// `ecn` for the ECN field of either IP header (RFC 3168 §5).
///
/// Returns `None`, and appends nothing, if the datagram is too long for the headers, or if one end is IPv4 and the other
/// IPv6.
pub fn udp_packet(
    from: SocketAddr,
    to: SocketAddr,
    identification: u16,
    ecn: Ecn,
    bytes: &[u8],
    packet: &mut Vec<u8>,
) -> Option<()> {
    let length = u16::try_from(8 + bytes.len()).ok()?;
    let start = packet.len();
    let addresses = match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let total = length.checked_add(20)?;
            packet.extend_from_slice(&[0x45, ecn.bits()]);
            packet.extend_from_slice(&total.to_be_bytes());
            packet.extend_from_slice(&identification.to_be_bytes());
            // Don't Fragment, time to live 64, and a checksum of 0 until the header is complete.
            packet.extend_from_slice(&[0x40, 0, 64, UDP, 0, 0]);
            packet.extend_from_slice(&from.octets());
            packet.extend_from_slice(&to.octets());
            let header = checksum(sum(&packet[start..]));
            packet[start + 10..start + 12].copy_from_slice(&header.to_be_bytes());
            start + 12..start + 20
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            packet.extend_from_slice(&[0x60, ecn.bits() << 4, 0, 0]);
            packet.extend_from_slice(&length.to_be_bytes());
            packet.extend_from_slice(&[UDP, 64]);
            packet.extend_from_slice(&from.octets());
            packet.extend_from_slice(&to.octets());
            start + 8..start + 40
        }
        _ => return None,
    };
    let udp = packet.len();
    packet.extend([from.port(), to.port(), length, 0].iter().flat_map(|word| word.to_be_bytes()));
    packet.extend_from_slice(bytes);
    // The checksum covers the pseudo-header (RFC 768, RFC 8200 §8.1): addresses, protocol, length.
    let pseudo = sum(&packet[addresses]) + u64::from(UDP) + u64::from(length);
    // 0 would mean that the datagram has no checksum.
    let whole = match checksum(sum(&packet[udp..]) + pseudo) {
        0 => 0xffff,
        whole => whole,
    };
    packet[udp + 6..udp + 8].copy_from_slice(&whole.to_be_bytes());
    Some(())
}

/// Returns the sum of `bytes` in words of 16 bits (RFC 1071).
fn sum(bytes: &[u8]) -> u64 {
    let (words, last) = bytes.as_chunks::<2>();
    let words: u64 = words.iter().map(|&word| u64::from(u16::from_be_bytes(word))).sum();
    words + last.first().map_or(0, |&byte| u64::from(byte) << 8)
}

/// Returns the Internet checksum (RFC 1071) of a sum of words.
fn checksum(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_internet_checksum_agrees_with_rfc_1071() {
        // RFC 1071 §3: 00 01 f2 03 f4 f5 f6 f7 sum up to ddf2.
        assert_eq!(checksum(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7])), !0xddf2);
        assert_eq!(sum(&[1, 2, 3]), 0x0102 + 0x0300);
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn the_sum_over_a_packet_with_its_checksum_is_all_ones() {
        let ends = [("10.0.0.1:5683", "10.0.0.2:40000"), ("[fd00::1]:5683", "[fd00::2]:40000")];
        let fields = [(Ecn::NotCapable, 0), (Ecn::Capable, 2), (Ecn::Congested, 3)];
        for ((from, to), (ecn, field)) in ends.into_iter().flat_map(|ends| fields.map(|field| (ends, field)))
        {
            let (from, to) = (address(from), address(to));
            let mut packet = vec![7];
            assert_eq!(udp_packet(from, to, 9, ecn, b"odd", &mut packet), Some(()));
            let headers = if from.is_ipv4() { 20 } else { 40 };
            assert_eq!(packet.len(), 1 + headers + 8 + 3);
            let (ip, udp) = packet[1..].split_at(headers);
            if from.is_ipv4() {
                assert_eq!(checksum(sum(ip)), 0);
            }
            assert_eq!(if from.is_ipv4() { ip[1] } else { ip[1] >> 4 } & 3, field, "RFC 3168 §5");
            let addresses = if from.is_ipv4() { &ip[12..20] } else { &ip[8..40] };
            let pseudo = sum(addresses) + u64::from(UDP) + udp.len() as u64;
            assert_eq!(checksum(sum(udp) + pseudo), 0);
        }
    }

    #[test]
    fn a_header_that_does_not_fit_the_buffer_writes_nothing() {
        let (four, six) = (address("10.0.0.1:1"), address("[::1]:1"));
        let mut packet = Vec::new();
        assert_eq!(udp_packet(four, six, 0, Ecn::NotCapable, b"", &mut packet), None);
        assert_eq!(udp_packet(four, four, 0, Ecn::NotCapable, &vec![0; 65_510], &mut packet), None);
        assert_eq!(udp_packet(six, six, 0, Ecn::NotCapable, &vec![0; 65_530], &mut packet), None);
        assert!(packet.is_empty());
    }
}
