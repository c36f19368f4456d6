//! The UDP datagram in a frame of IEEE 802.15.4 with 6LoWPAN (RFC 4944, RFC 6282).

use std::collections::HashMap;
use std::net::{Ipv6Addr, SocketAddr};

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    Ieee802154Address, Ieee802154Frame, IpProtocol, SixlowpanExtHeaderPacket, SixlowpanFragPacket,
    SixlowpanIphcPacket, SixlowpanIphcRepr, SixlowpanNextHeader, SixlowpanNhcPacket, SixlowpanPacket,
    SixlowpanUdpNhcPacket, SixlowpanUdpNhcRepr,
};

use super::capture::Point;
use super::datagram::{CapturedDatagram, Skipped};

/// The maximum number of radios whose last sequence number is stored.
const MOST_RADIOS: usize = 10_000;

/// The frame type of data (IEEE 802.15.4-2015 §7.2.2.2).
const DATA: u8 = 1;

/// The maximum number of extension headers of a packet that are read.
const MOST_EXTENSIONS: usize = 4;

/// Reads 802.15.4 frames. A sniffer receives every radio, so it sees a datagram on each hop. The first hop counts as
/// the departure of the datagram, the last as its arrival, and the hops between are skipped.
#[derive(Clone, Debug, Default)]
pub struct Lowpan {
    /// The last sequence number of each radio. A frame with the same number is a retransmission of the MAC.
    last: HashMap<[u8; 8], u8>,
}

impl Lowpan {
    /// Returns the datagram in a frame, whose checksum must be removed before. A fragmented datagram has only the bytes
    /// of its first fragment.
    ///
    /// # Errors
    /// Returns the reason why the frame has no datagram.
    pub fn datagram<'a>(&mut self, bytes: &'a [u8], is_whole: bool) -> Result<CapturedDatagram<'a>, Skipped> {
        // An acknowledgement has no addresses, which smoltcp takes for a mistake.
        if bytes.first().is_some_and(|first| first & 7 != DATA) {
            return Err(Skipped::NotUdp);
        }
        let frame = Ieee802154Frame::new_checked(bytes).map_err(|_| Skipped::Malformed)?;
        // An encrypted frame shows no headers of IP.
        if frame.security_enabled() {
            return Err(Skipped::NotUdp);
        }
        let (source, dest) = (frame.src_addr(), frame.dst_addr());
        // A radio repeats a frame with its sequence number if no acknowledgement came.
        if let (Some(source), Some(sequence)) = (source, frame.sequence_number()) {
            let radio = key(source);
            // At the bound no further radio is remembered, and its repeated frames count as datagrams.
            let is_known = self.last.len() < MOST_RADIOS || self.last.contains_key(&radio);
            if is_known && self.last.insert(radio, sequence) == Some(sequence) {
                return Err(Skipped::Repeated);
            }
        }
        let payload = frame.payload().ok_or(Skipped::NotUdp)?;
        let (compressed, size) = match SixlowpanPacket::dispatch(payload).map_err(|_| Skipped::NotUdp)? {
            SixlowpanPacket::IphcHeader => (payload, None),
            SixlowpanPacket::FragmentHeader => {
                let fragment = SixlowpanFragPacket::new_checked(payload).map_err(|_| Skipped::Malformed)?;
                if !fragment.is_first_fragment() {
                    return Err(Skipped::Repeated);
                }
                // The first fragment has all headers, and the size of the uncompressed packet (RFC 4944 §5.3).
                (fragment.payload(), Some(u32::from(fragment.datagram_size())))
            }
        };
        let mut datagram = of_packet(compressed, source, dest)?;
        let is_first = size.is_none();
        datagram.ip_bytes = size.unwrap_or(datagram.ip_bytes);
        datagram.is_whole = is_whole && is_first;
        // The frame has the addresses of one hop, and the datagram has its ends. Where they agree, the hop is the first or the
        // last.
        let departs = source.is_some_and(|radio| is_of(radio, datagram.from));
        let arrives = dest.is_some_and(|radio| is_of(radio, datagram.to));
        datagram.point = match (departs, arrives) {
            (true, true) => Point::Interface,
            (true, false) => Point::Sender,
            (false, true) => Point::Receiver,
            (false, false) => return Err(Skipped::Forwarded),
        };
        Ok(datagram)
    }
}

/// Returns the datagram of a packet with compressed headers. Its point is [`Point::Interface`].
fn of_packet(
    bytes: &[u8],
    source: Option<Ieee802154Address>,
    dest: Option<Ieee802154Address>,
) -> Result<CapturedDatagram<'_>, Skipped> {
    let malformed = |_| Skipped::Malformed;
    let packet = SixlowpanIphcPacket::new_checked(bytes).map_err(malformed)?;
    let without = without_contexts(bytes);
    let header = SixlowpanIphcPacket::new_checked(&without[..]).map_err(malformed)?;
    let header = SixlowpanIphcRepr::parse(&header, source, dest, &[]).map_err(malformed)?;
    let (from, to) = (header.src_addr, header.dst_addr);
    // The changed header is a copy of the first bytes only, so the payload comes from the packet itself.
    let mut rest = packet.payload();
    let mut next = header.next_header;
    let mut extensions = 0;
    // A packet may claim any number of extension headers.
    for _ in 0..MOST_EXTENSIONS {
        match next {
            SixlowpanNextHeader::Uncompressed(IpProtocol::Udp) => {
                let &[a, b, c, d, _, _, _, _, ref payload @ ..] = rest else {
                    return Err(Skipped::Malformed);
                };
                let ports = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
                return Ok(built(from, to, ports, extensions, payload));
            }
            SixlowpanNextHeader::Uncompressed(_) => return Err(Skipped::NotUdp),
            SixlowpanNextHeader::Compressed => {}
        }
        match SixlowpanNhcPacket::dispatch(rest).map_err(|_| Skipped::NotUdp)? {
            SixlowpanNhcPacket::UdpHeader => {
                let udp = SixlowpanUdpNhcPacket::new_checked(rest).map_err(malformed)?;
                // A datagram that the capture has cut off has a wrong checksum, and its ports are right.
                let ignored = ChecksumCapabilities::ignored();
                let ports = SixlowpanUdpNhcRepr::parse(&udp, &from, &to, &ignored).map_err(malformed)?;
                return Ok(built(from, to, (ports.src_port, ports.dst_port), extensions, udp.payload()));
            }
            SixlowpanNhcPacket::ExtHeader => {
                let extension = SixlowpanExtHeaderPacket::new_checked(rest).map_err(malformed)?;
                next = extension.next_header();
                // An uncompressed next header takes a byte between the first one and the length (RFC 6282 §4.2).
                let own = if matches!(next, SixlowpanNextHeader::Compressed) { 2 } else { 3 };
                let length = usize::from(extension.length());
                // Uncompressed, an extension header is padded to a multiple of 8 bytes (RFC 8200 §4).
                extensions += (2 + length).div_ceil(8) * 8;
                rest = rest.get(own + length..).ok_or(Skipped::Malformed)?;
            }
        }
    }
    Err(Skipped::NotUdp)
}

/// Returns the header of a packet, changed so that its addresses need no compression contexts, which a capture does not
/// contain. The addresses become link-local. They keep their interface identifiers, which are enough to distinguish the
/// nodes. smoltcp does not support the implied context 0.
fn without_contexts(bytes: &[u8]) -> Vec<u8> {
    const SAC: u8 = 1 << 6;
    const DAC: u8 = 1 << 2;
    // Two bytes, a context, four of traffic class and flow label, next header, hop limit, and two whole addresses.
    let mut header = bytes[..bytes.len().min(2 + 1 + 4 + 1 + 1 + 32)].to_vec();
    if let Some(modes) = header.get_mut(1) {
        // RFC 6282 §3.1.1: with SAC, the mode 00 is the unspecified address. DAC with 00 is reserved, and multicast has other forms.
        let (is_unspecified, is_multicast) = (*modes & 0x30 == 0, *modes & 0x08 != 0);
        if !is_unspecified {
            *modes &= !SAC;
        }
        if !is_multicast && *modes & 0x03 != 0 {
            *modes &= !DAC;
        }
    }
    header
}

fn built(
    from: Ipv6Addr,
    to: Ipv6Addr,
    ports: (u16, u16),
    extensions: usize,
    payload: &[u8],
) -> CapturedDatagram<'_> {
    CapturedDatagram {
        from: SocketAddr::from((from, ports.0)),
        to: SocketAddr::from((to, ports.1)),
        payload,
        identification: 0,
        ip_bytes: (40 + extensions + 8 + payload.len()) as u32,
        is_whole: true,
        point: Point::Interface,
    }
}

fn key(radio: Ieee802154Address) -> [u8; 8] {
    match radio {
        Ieee802154Address::Absent => [0; 8],
        // The interface identifier that a short address gives (RFC 6282 §3.2.2).
        Ieee802154Address::Short([a, b]) => [0, 0, 0, 0xff, 0xfe, 0, a, b],
        Ieee802154Address::Extended(bytes) => bytes,
    }
}

/// Returns whether an address has the interface identifier of a radio (RFC 6282 §3.2.2).
fn is_of(radio: Ieee802154Address, address: SocketAddr) -> bool {
    let SocketAddr::V6(address) = address else { return false };
    let identifier = &address.ip().octets()[8..];
    // The identifier of a long address has its universal bit inverted, but some stacks leave it as it is.
    radio.as_eui_64().is_some_and(|own| own == identifier) || key(radio) == identifier
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a frame from radio 1 to radio `to` with a packet from node `from` to node 2, whose addresses are uncompressed.
    fn frame(sequence: u8, from: u8, to: u8) -> Vec<u8> {
        let mut frame = vec![0x61, 0x98, sequence, 0xcd, 0xab, to, 0, 1, 0];
        // Short addresses: 0x9861 has both modes 2, one PAN, frame version 1.
        frame.extend([0x7e, 0x11]); // IPHC: compressed next header, hop limit 64; 64 bits of both addresses in line
        for node in [from, 2] {
            frame.extend([0, 0, 0, 0xff, 0xfe, 0, 0, node]);
        }
        frame.extend([0xf0, 0x9c, 0x40, 0x16, 0x33, 0, 0]); // UDP: ports 40000 and 5683, a checksum
        frame.extend(b"CoAP!");
        frame
    }

    #[test]
    fn ports_addresses_and_payload_of_6lowpan_frames_are_decompressed() {
        let bytes = frame(1, 1, 2);
        let mut lowpan = Lowpan::default();
        // The addresses are little-endian on the air, so nothing here depends on which byte is first.
        let datagram = lowpan.datagram(&bytes, true).unwrap();
        assert_eq!((datagram.from.port(), datagram.to.port()), (40_000, 5683));
        assert_eq!(datagram.from.ip().to_string(), "fe80::ff:fe00:1");
        assert_eq!((datagram.payload, datagram.ip_bytes), (&b"CoAP!"[..], 53));
        assert_eq!(datagram.point, Point::Interface);
        assert_eq!(lowpan.datagram(&bytes, true), Err(Skipped::Repeated));
    }

    #[test]
    fn a_datagram_over_a_mesh_departs_at_its_first_hop_and_arrives_at_its_last() {
        let mut lowpan = Lowpan::default();
        assert_eq!(lowpan.datagram(&frame(1, 1, 3), true).unwrap().point, Point::Sender);
        assert_eq!(lowpan.datagram(&frame(2, 9, 2), true).unwrap().point, Point::Receiver);
        assert_eq!(lowpan.datagram(&frame(3, 9, 3), true), Err(Skipped::Forwarded));
    }

    #[test]
    fn acknowledgements_and_beacons_of_802_15_4_are_not_datagrams() {
        let mut lowpan = Lowpan::default();
        assert_eq!(lowpan.datagram(&[0x02, 0x00, 7], true), Err(Skipped::NotUdp));
        assert_eq!(lowpan.datagram(&[], true), Err(Skipped::Malformed));
    }
}
