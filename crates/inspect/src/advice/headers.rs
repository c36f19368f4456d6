//! The UDP datagram of a packet, after its headers.

use std::net::IpAddr;

use etherparse::{
    EtherType, IpNumber, Ipv6ExtensionSlice, Ipv6ExtensionsSlice, LaxNetSlice, LaxSlicedPacket,
    TransportSlice, UdpHeaderSlice,
};

use super::capture::Point;
use super::datagram::{CapturedDatagram, Skipped};
use super::lowpan::Lowpan;
use super::traffic::COAP_PORT;

/// The ether types of other protocols that carry IP: Ethernet in GRE, MPLS, PPPoE.
const TUNNELLED: [u16; 4] = [0x6558, 0x8847, 0x8848, 0x8864];

/// The protocols over IP that carry IP: IPv4, IPv6, GRE (IANA's protocol numbers).
const WRAPPERS: [IpNumber; 3] = [IpNumber::IPV4, IpNumber::IPV6, IpNumber::GRE];

/// The UDP ports of protocols that carry IP: L2TP, GTP-U, Teredo, VXLAN, Geneve, and the first VXLAN of Linux.
const TUNNEL_PORTS: [u16; 6] = [1701, 2152, 3544, 4789, 6081, 8472];

/// The link types that can be read (<https://www.tcpdump.org/linktypes.html>).
mod link {
    pub(super) const NULL: i32 = 0;
    pub(super) const ETHERNET: i32 = 1;
    pub(super) const RAW: [i32; 5] = [12, 14, 101, 228, 229];
    pub(super) const LOOP: i32 = 108;
    pub(super) const LINUX_SLL: i32 = 113;
    pub(super) const IEEE_802_15_4_WITH_FCS: i32 = 195;
    pub(super) const IEEE_802_15_4: i32 = 230;
    pub(super) const LINUX_SLL2: i32 = 276;
    pub(super) const IEEE_802_15_4_TAP: i32 = 283;
}

/// Returns the datagram of a packet of this link type. `lowpan` stores the fragments of radio frames.
///
/// # Errors
/// Returns the reason why the packet has no datagram.
pub fn datagram<'a>(
    link: i32,
    bytes: &'a [u8],
    is_whole: bool,
    lowpan: &mut Lowpan,
) -> Result<CapturedDatagram<'a>, Skipped> {
    let behind = |length: usize| bytes.get(length..).ok_or(Skipped::Malformed);
    let word = |at: usize| {
        bytes.get(at..at + 2).map(|word| u16::from_be_bytes([word[0], word[1]])).ok_or(Skipped::Malformed)
    };
    match link {
        link::ETHERNET => {
            let packet = LaxSlicedPacket::from_ethernet(bytes).map_err(|_| Skipped::Malformed)?;
            of_packet(&packet, is_whole)
        }
        // The 4 bytes name the version of IP, and the packet names it, too.
        link::NULL | link::LOOP => of_ip(behind(4)?, is_whole),
        // The protocol is at the end of the first cooked header, and at the beginning of the second.
        link::LINUX_SLL => of_ether_type(word(14)?, behind(16)?, is_whole),
        link::LINUX_SLL2 => of_ether_type(word(0)?, behind(20)?, is_whole),
        link::IEEE_802_15_4 => lowpan.datagram(bytes, is_whole),
        link::IEEE_802_15_4_WITH_FCS => {
            // The checksum (FCS) is the last two bytes.
            let frame = bytes.split_last_chunk::<2>().map_or(bytes, |(frame, _)| frame);
            lowpan.datagram(frame, is_whole)
        }
        link::IEEE_802_15_4_TAP => {
            // A header whose length is in its bytes 2 and 3, then a frame. The option 0 says whether a checksum ends it.
            let length = usize::from(word(2)?.swap_bytes());
            let frame = behind(length)?;
            let has_fcs = bytes.get(4..9).is_none_or(|option| option[..2] == [0, 0] && option[4] != 0);
            let checksum = if has_fcs { 2 } else { 0 };
            lowpan.datagram(&frame[..frame.len().saturating_sub(checksum)], is_whole)
        }
        _ if link::RAW.contains(&link) => of_ip(bytes, is_whole),
        _ => Err(Skipped::Link(link)),
    }
}

fn of_ether_type(ether_type: u16, bytes: &[u8], is_whole: bool) -> Result<CapturedDatagram<'_>, Skipped> {
    if TUNNELLED.contains(&ether_type) {
        return Err(Skipped::Tunnel);
    }
    of_packet(&LaxSlicedPacket::from_ether_type(EtherType(ether_type), bytes), is_whole)
}

fn of_ip(bytes: &[u8], is_whole: bool) -> Result<CapturedDatagram<'_>, Skipped> {
    let packet = LaxSlicedPacket::from_ip(bytes).map_err(|_| Skipped::Malformed)?;
    of_packet(&packet, is_whole)
}

fn of_packet<'a>(packet: &LaxSlicedPacket<'a>, is_whole: bool) -> Result<CapturedDatagram<'a>, Skipped> {
    let (from, to, identification, header_bytes, payload): (IpAddr, IpAddr, _, usize, _) = match &packet.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            let header = ip.header();
            let ends = (header.source_addr().into(), header.destination_addr().into());
            (ends.0, ends.1, header.identification(), header.slice().len(), ip.payload())
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            // The header of IPv6 itself has 40 bytes (RFC 8200 §3).
            let extensions = ip.extensions().slice().len();
            let header = ip.header();
            (header.source_addr().into(), header.destination_addr().into(), 0, 40 + extensions, ip.payload())
        }
        _ if packet.stop_err.is_some() => return Err(Skipped::Malformed),
        _ if packet.ether_payload().is_some_and(|it| TUNNELLED.contains(&it.ether_type.0)) => {
            return Err(Skipped::Tunnel);
        }
        _ => return Err(Skipped::NotUdp),
    };
    let built = |ports: (u16, u16), udp_bytes: u16, payload: &'a [u8], is_whole| {
        // A client may have drawn one of these ports. An answer to it comes from CoAP's port, and is not a tunnel.
        let is_wrapped = TUNNEL_PORTS.contains(&ports.1) && ports.0 != COAP_PORT;
        if is_wrapped {
            return Err(Skipped::Tunnel);
        }
        Ok(CapturedDatagram {
            from: (from, ports.0).into(),
            to: (to, ports.1).into(),
            payload,
            identification,
            ip_bytes: header_bytes as u32 + u32::from(udp_bytes),
            is_whole,
            point: Point::Interface,
        })
    };
    if payload.fragmented {
        // The first fragment has the headers of UDP and of CoAP, which are enough to find exchanges.
        let is_first = match &packet.net {
            Some(LaxNetSlice::Ipv4(ip)) => ip.header().fragments_offset().value() == 0,
            Some(LaxNetSlice::Ipv6(ip)) => is_first_fragment(ip.extensions()),
            _ => false,
        };
        let header = UdpHeaderSlice::from_slice(payload.payload).map_err(|_| Skipped::Fragment)?;
        if !is_first || payload.ip_number != IpNumber::UDP {
            return Err(Skipped::Fragment);
        }
        // The length in the UDP header is the length of the whole datagram, and the rest of it is in other fragments.
        let rest = payload.payload.get(header.slice().len()..).unwrap_or_default();
        return built((header.source_port(), header.destination_port()), header.length(), rest, false);
    }
    match &packet.transport {
        Some(TransportSlice::Udp(udp)) => built(
            (udp.source_port(), udp.destination_port()),
            udp.length(),
            udp.payload(),
            is_whole && !payload.incomplete,
        ),
        // tshark is asked for packets in tunnels, so they have a reason of their own.
        _ if WRAPPERS.contains(&payload.ip_number) => Err(Skipped::Tunnel),
        None if packet.stop_err.is_some() => Err(Skipped::Malformed),
        _ => Err(Skipped::NotUdp),
    }
}

fn is_first_fragment(extensions: &Ipv6ExtensionsSlice<'_>) -> bool {
    extensions.clone().into_iter().any(|extension| match extension {
        Ipv6ExtensionSlice::Fragment(fragment) => fragment.fragment_offset().value() == 0,
        _ => false,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use coapace_sim::{Ecn, udp_packet};
    use proptest::prelude::*;

    use super::*;

    pub(in crate::advice) fn ip(from: &str, to: &str, payload: &[u8]) -> Vec<u8> {
        let mut packet = Vec::new();
        let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
        udp_packet(from, to, 0, Ecn::NotCapable, payload, &mut packet).unwrap();
        packet
    }

    const FOUR: (&str, &str) = ("10.0.0.1:40000", "10.0.0.2:5683");
    const SIX: (&str, &str) = ("[fd00::1]:40000", "[fd00::2]:5683");

    fn check(link: i32, header: &[u8], ends: (&str, &str)) {
        let packet = [header, &ip(ends.0, ends.1, b"CoAP!")].concat();
        let mut lowpan = Lowpan::default();
        let datagram = datagram(link, &packet, true, &mut lowpan).unwrap();
        assert_eq!((datagram.from, datagram.to), (ends.0.parse().unwrap(), ends.1.parse().unwrap()));
        assert_eq!(datagram.payload, b"CoAP!");
        assert_eq!(datagram.ip_bytes as usize, packet.len() - header.len());
        assert!(datagram.is_whole && datagram.point == Point::Interface);
    }

    #[test]
    fn datagrams_are_found_in_frames_of_every_link_type() {
        let mac = [2; 12];
        for (ends, ether_type, family) in [(FOUR, [0x08, 0x00], 2u8), (SIX, [0x86, 0xdd], 30)] {
            check(1, &[&mac[..], &ether_type].concat(), ends);
            check(1, &[&mac[..], &[0x81, 0x00, 0x00, 0x07], &ether_type].concat(), ends);
            check(1, &[&mac[..], &[0x88, 0xa8, 0, 1, 0x81, 0x00, 0, 7], &ether_type].concat(), ends);
            for link in [12, 101] {
                check(link, &[], ends);
            }
            check(if family == 2 { 228 } else { 229 }, &[], ends);
            check(0, &[family, 0, 0, 0], ends);
            check(108, &[0, 0, 0, family], ends);
            // Linux cooked: packet type, ARPHRD, length of the address, address, protocol.
            check(113, &[&[0, 4, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0][..], &ether_type].concat(), ends);
            // Version 2: protocol, reserved, interface, ARPHRD, packet type, length of the address, address.
            check(
                276,
                &[&ether_type[..], &[0, 0, 0, 0, 0, 1, 0, 1, 4, 6, 2, 2, 2, 2, 2, 2, 0, 0]].concat(),
                ends,
            );
        }
    }

    #[test]
    fn a_payload_cut_by_the_capture_is_marked() {
        let packet = ip(FOUR.0, FOUR.1, b"CoAP!");
        let cut = datagram(101, &packet[..packet.len() - 2], false, &mut Lowpan::default()).unwrap();
        assert_eq!((cut.payload, cut.is_whole, cut.ip_bytes), (&b"CoA"[..], false, 33));
    }

    #[test]
    fn the_first_fragment_of_an_ip_packet_counts_as_a_truncated_datagram() {
        let mut fragment = ip(FOUR.0, FOUR.1, b"CoAP!");
        (fragment[4], fragment[5], fragment[6]) = (1, 2, 0x20);
        let first = datagram(101, &fragment, true, &mut Lowpan::default()).unwrap();
        assert_eq!((first.payload, first.is_whole, first.identification), (&b"CoAP!"[..], false, 0x0102));
        // IPv6: a fragment header (44) between the header and UDP, with the offset 0 and more to come.
        let mut six = ip(SIX.0, SIX.1, b"CoAP!");
        six[6] = 44;
        six[5] += 8;
        six.splice(40..40, [17, 0, 0, 1, 0, 0, 0, 7]);
        let first = datagram(101, &six, true, &mut Lowpan::default()).unwrap();
        assert_eq!((first.from, first.payload), (SIX.0.parse().unwrap(), &b"CoAP!"[..]));
        six[43] = 9;
        assert_eq!(datagram(101, &six, true, &mut Lowpan::default()), Err(Skipped::Fragment));
    }

    #[test]
    fn a_frame_without_a_datagram_is_skipped_with_a_reason() {
        let mut lowpan = Lowpan::default();
        let mut of = |link, bytes: &[u8]| datagram(link, bytes, true, &mut lowpan).unwrap_err();
        assert_eq!(of(147, b"whatever"), Skipped::Link(147));
        assert_eq!(of(1, b"short"), Skipped::Malformed);
        let mut packet = ip(FOUR.0, FOUR.1, b"CoAP!");
        packet[9] = 6;
        assert_eq!(of(101, &packet), Skipped::Malformed, "TCP, but too short for it");
        packet[9] = 89;
        assert_eq!(of(101, &packet), Skipped::NotUdp);
        let mut fragment = ip(FOUR.0, FOUR.1, b"CoAP!");
        fragment[7] = 3;
        assert_eq!(of(101, &fragment), Skipped::Fragment);
        packet[9] = 47;
        assert_eq!(of(101, &packet), Skipped::Tunnel, "GRE");
        assert_eq!(of(101, &ip("10.0.0.1:40000", "10.0.0.2:4789", b"VXLAN")), Skipped::Tunnel);
        assert_eq!(of(1, &[&[2; 12][..], &[0x88, 0x64], &[0; 28]].concat()), Skipped::Tunnel, "PPPoE");
        let arp = [&[2; 12][..], &[0x08, 0x06], &[0; 28]].concat();
        assert_eq!(of(1, &arp), Skipped::NotUdp);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_as_a_frame_do_not_cause_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut lowpan = Lowpan::default();
            for link in [0, 1, 12, 101, 108, 113, 195, 228, 229, 230, 276, 283] {
                let _ = datagram(link, &bytes, true, &mut lowpan);
            }
        }
    }
}
