use super::*;
use crate::mesh::FrameKind;
use crate::mesh::address::PREFIX;
use crate::mesh::lowpan::{ACK_BYTES, MAX_PAYLOAD_BYTES};
use proptest::prelude::*;
use smoltcp::wire::{Ipv6Address, Ipv6OptionsIterator, SixlowpanAddressContext};

/// Returns the frames of a datagram on a hop, and the bytes of each.
fn frames(
    datagram: &Ipv6Packet<'_>,
    from: NodeId,
    to: Option<NodeId>,
    leg: Leg,
    max_frame_bytes: u16,
) -> Vec<(Frame, Vec<u8>)> {
    let (length, is_icmpv6) = match datagram.content {
        Content::Udp(payload) => (payload.len(), false),
        Content::Icmpv6(message) => (message.len(), true),
    };
    let header = header_bytes(datagram.source, datagram.dest, from, to, leg, is_icmpv6);
    let plan = Fragments::new(max_frame_bytes, to, header, length).expect("a datagram that fits");
    let (kind, tag, fragments) = (FrameKind::Data, 0xbeef, plan.count());
    let frame = |fragment| {
        let bytes = plan.frame_bytes(fragment);
        let sequence = 200 + fragment % 50;
        let frame = Frame { kind, from, to, sequence, bytes, fragment, fragments, tag, leg };
        let mut out = vec![0xee];
        write_frame(&frame, datagram, max_frame_bytes, &mut out).expect("a frame");
        assert_eq!(out.remove(0), 0xee);
        (frame, out)
    };
    (0..fragments).map(frame).collect()
}

/// Returns the datagram that smoltcp's parser puts together from its frames.
#[derive(Debug, PartialEq)]
struct ParsedDatagram {
    source: Ipv6Address,
    dest: Ipv6Address,
    hop_limit: u8,
    option: Option<RplOption>,
    ports: Option<(u16, u16)>,
    payload: Vec<u8>,
}

fn read(frames: &[(Frame, Vec<u8>)], has_context: bool) -> ParsedDatagram {
    let (mut packet, mut size, mut mac) = (Vec::new(), None, None);
    let mut offsets = Vec::new();
    for (frame, bytes) in frames {
        let (bytes, fcs) = bytes.split_at(bytes.len() - 2);
        let mut again = bytes.to_vec();
        write_fcs(0, &mut again);
        assert_eq!(&again[bytes.len()..], fcs);
        let ieee = Ieee802154Frame::new_checked(bytes).expect("a MAC header");
        assert_eq!(ieee.sequence_number(), Some(frame.sequence));
        assert_eq!(ieee.ack_request(), frame.to.is_some());
        mac = Some((ieee.src_addr(), ieee.dst_addr()));
        let mut rest = ieee.payload().expect("data");
        if frame.fragments > 1 {
            let fragment = SixlowpanFragPacket::new_checked(rest).expect("a fragment header");
            assert_eq!(fragment.datagram_tag(), frame.tag);
            assert_eq!(fragment.is_first_fragment(), frame.fragment == 0);
            assert_eq!(*size.get_or_insert(fragment.datagram_size()), fragment.datagram_size());
            offsets.push((usize::from(fragment.datagram_offset()) * 8, packet.len()));
            rest = fragment.payload();
        }
        packet.extend_from_slice(rest);
    }
    let (source, dest) = mac.expect("a frame");
    if has_context {
        // smoltcp's parser wants contexts named: the extension with 0 for both says the same (RFC 6282 §3.1.2).
        packet[1] |= 1 << 7;
        packet.insert(2, 0);
    }
    let iphc = SixlowpanIphcPacket::new_checked(&packet[..]).expect("a compressed header");
    let contexts = [SixlowpanAddressContext(PREFIX)];
    let ip = SixlowpanIphcRepr::parse(&iphc, source, dest, &contexts).expect("addresses");
    let (mut next, mut rest, mut option, mut length) = (ip.next_header, iphc.payload(), None, 40);
    if next == SixlowpanNextHeader::Compressed && rest[0] >> 4 == 0b1110 {
        let header = SixlowpanExtHeaderPacket::new_checked(rest).expect("an extension header");
        assert_eq!(header.extension_header_id(), SixlowpanExtHeaderId::HopByHopHeader);
        option = Some(read_option(header.payload()));
        let taken =
            rest.len().min(if header.next_header() == SixlowpanNextHeader::Compressed { 2 } else { 3 });
        next = header.next_header();
        rest = &rest[taken + header.payload().len()..];
        length += 8;
    }
    let (ports, payload) = match next {
        SixlowpanNextHeader::Compressed => {
            let udp = SixlowpanUdpNhcPacket::new_checked(rest).expect("UDP");
            let checks = ChecksumCapabilities::default();
            let repr = SixlowpanUdpNhcRepr::parse(&udp, &ip.src_addr, &ip.dst_addr, &checks)
                .expect("the right checksum");
            length += 8;
            (Some((repr.src_port, repr.dst_port)), udp.payload())
        }
        SixlowpanNextHeader::Uncompressed(protocol) => {
            assert_eq!(protocol, IpProtocol::Icmpv6);
            (None, rest)
        }
    };
    length += payload.len();
    assert_eq!(size.map_or(length, usize::from), length);
    // The offset of a fragment counts uncompressed bytes: the compressed ones, and the bytes that compression took from the headers.
    let lost = length - (packet.len() - usize::from(has_context));
    assert!(offsets.iter().skip(1).all(|&(offset, compressed)| offset == compressed + lost));
    let (source, dest, hop_limit) = (ip.src_addr, ip.dst_addr, ip.hop_limit);
    ParsedDatagram { source, dest, hop_limit, option, ports, payload: payload.to_vec() }
}

fn read_option(options: &[u8]) -> RplOption {
    match Ipv6OptionsIterator::new(options).next() {
        Some(Ok(Ipv6OptionRepr::Rpl(RplHopByHopRepr {
            down,
            rank_error,
            forwarding_error,
            instance_id,
            sender_rank,
        }))) => {
            assert_eq!(u8::from(instance_id), 0);
            RplOption { down, rank_error, forwarding_error, sender_rank }
        }
        other => panic!("no RPL option but {other:?}"),
    }
}

fn option() -> impl Strategy<Value = Option<RplOption>> {
    let fields = any::<(bool, bool, bool, u16)>();
    proptest::option::of(fields.prop_map(|(down, rank_error, forwarding_error, sender_rank)| RplOption {
        down,
        rank_error,
        forwarding_error,
        sender_rank,
    }))
}

fn node() -> impl Strategy<Value = NodeId> {
    prop_oneof![0u32..4, any::<u32>()].prop_map(NodeId)
}

proptest! {
    #[test]
    fn the_bytes_of_a_frame_have_the_planned_length_and_parse_back(
        (source, from) in (node(), node()),
        (dest, to) in (proptest::option::of(node()), proptest::option::of(node())),
        hop_limit: u8,
        option in option(),
        is_icmpv6: bool,
        payload in proptest::collection::vec(any::<u8>(), 0..=usize::from(MAX_PAYLOAD_BYTES)),
        shorten in prop_oneof![Just(10), Just(1)],
        max_frame_bytes in prop_oneof![Just(127u16), 90u16..=127],
    ) {
        let payload = &payload[..payload.len() / shorten];
        let content = if is_icmpv6 { Content::Icmpv6(payload) } else { Content::Udp(payload) };
        let datagram = Ipv6Packet { source, dest, content };
        let frames = frames(&datagram, from, to, Leg { hop_limit, option }, max_frame_bytes);
        for (frame, bytes) in &frames {
            prop_assert_eq!(bytes.len(), usize::from(frame.bytes));
        }
        let address = if is_icmpv6 { link_local } else { global };
        let expected = ParsedDatagram {
            source: address(source),
            dest: dest.map_or(ALL_RPL_NODES, address),
            hop_limit,
            option,
            ports: (!is_icmpv6).then_some((5683, 5683)),
            payload: payload.to_vec(),
        };
        prop_assert_eq!(read(&frames, !is_icmpv6), expected);
    }
}

#[test]
fn the_computed_lengths_of_6lowpan_headers_equal_the_written_ones() {
    let nodes = [NodeId(0), NodeId(7), NodeId(u32::MAX)];
    let peers = [None, Some(nodes[0]), Some(nodes[1]), Some(nodes[2])];
    for (source, from) in nodes.into_iter().flat_map(|source| nodes.map(|from| (source, from))) {
        for (dest, to) in peers.into_iter().flat_map(|dest| peers.map(|to| (dest, to))) {
            for hop_limit in 0..=255 {
                for option in [None, Some(RplOption::default())] {
                    for content in [Content::Udp(&[]), Content::Icmpv6(&[])] {
                        let leg = Leg { hop_limit, option };
                        let datagram = Ipv6Packet { source, dest, content };
                        let (frame, _) = frames(&datagram, from, to, leg, 127)[0];
                        let mut packet = Vec::new();
                        write_packet(&datagram, &frame, &mut packet);
                        let is_icmpv6 = matches!(content, Content::Icmpv6(_));
                        let header = header_bytes(source, dest, from, to, leg, is_icmpv6);
                        assert_eq!(packet.len(), usize::from(header), "{datagram:?} {from:?} {to:?} {leg:?}");
                    }
                }
            }
        }
    }
}

const UP: RplOption =
    RplOption { down: false, rank_error: false, forwarding_error: false, sender_rank: 0x0200 };

#[test]
fn the_bytes_of_a_datagram_between_neighbours_equal_the_example_of_the_rfcs() {
    let datagram =
        Ipv6Packet { source: NodeId(1), dest: Some(NodeId(2)), content: Content::Udp(&[0xab, 0xcd]) };
    let leg = Leg { hop_limit: 64, option: None };
    let bytes = &frames(&datagram, NodeId(1), Some(NodeId(2)), leg, 127)[0].1;
    // Data, acknowledgement wanted, one PAN; 8-byte addresses, version 2006.
    assert_eq!(bytes[..5], [0x61, 0xdc, 200, 0xcd, 0xab]);
    assert_eq!(bytes[5..13], [2, 0, 0, 0, 0x00, 0x74, 0x12, 0x02]);
    assert_eq!(bytes[13..21], [1, 0, 0, 0, 0x00, 0x74, 0x12, 0x02]);
    // RFC 6282 §3.1.1: 011, TF 11, NH 1, HLIM 10; CID 0, SAC 1, SAM 11, M 0, DAC 1, DAM 11. §4.3: 11110, C 0, P 00.
    assert_eq!(bytes[21..28], [0b0111_1110, 0b0111_0111, 0b1111_0000, 0x16, 0x33, 0x16, 0x33]);
    // The pseudo-header: twice fd00:…:12:7400:0, 1 and 2, length 10, protocol 17; then 5683 twice, 10, abcd.
    let sum = 2 * (0xfd00 + 0x12 + 0x7400u32) + 1 + 2 + 10 + 17 + 2 * 0x1633 + 10 + 0xabcd;
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    assert_eq!(bytes[28..30], checksum.to_be_bytes());
    assert_eq!(bytes[30..32], [0xab, 0xcd]);
    assert_eq!(bytes.len(), 34);
}

#[test]
fn a_datagram_over_several_hops_carries_addresses_and_the_rpl_option() {
    let datagram = Ipv6Packet { source: NodeId(1), dest: Some(NodeId(2)), content: Content::Udp(&[]) };
    let leg = Leg { hop_limit: 62, option: Some(UP) };
    let bytes = &frames(&datagram, NodeId(8), Some(NodeId(9)), leg, 127)[0].1;
    // HLIM 00; SAC 1, SAM 01, DAC 1, DAM 01.
    assert_eq!(bytes[21..24], [0b0111_1100, 0b0101_0101, 62]);
    assert_eq!(bytes[24..32], [0, 0x12, 0x74, 0, 0, 0, 0, 1]);
    assert_eq!(bytes[32..40], [0, 0x12, 0x74, 0, 0, 0, 0, 2]);
    // RFC 6282 §4.2: 1110, EID 0, NH 1, 6 bytes; RFC 6553 §3: 0x63, 4 bytes, no flags, instance 0, rank.
    assert_eq!(bytes[40..48], [0b1110_0001, 6, 0x63, 4, 0, 0, 0x02, 0x00]);
    assert_eq!(bytes[48], 0b1111_0000);
}

#[test]
fn a_message_to_all_nodes_is_a_broadcast_frame_without_an_acknowledgement() {
    let datagram = Ipv6Packet { source: NodeId(1), dest: None, content: Content::Icmpv6(&[155, 0]) };
    let leg = Leg { hop_limit: 64, option: None };
    let bytes = &frames(&datagram, NodeId(1), None, leg, 127)[0].1;
    assert_eq!(bytes[..7], [0x41, 0xd8, 200, 0xcd, 0xab, 0xff, 0xff]);
    // NH 0, HLIM 10; SAC 0, SAM 11, M 1, DAC 0, DAM 11; ICMPv6, ff02::1a.
    assert_eq!(bytes[15..19], [0b0111_1010, 0b0011_1011, 58, 0x1a]);
    assert_eq!(bytes[19..21], [155, 0]);
}

#[test]
fn an_802_15_4_acknowledgement_takes_five_bytes_with_its_checksum() {
    let mut out = vec![1];
    write_ack(0x56, &mut out);
    assert_eq!(out[..4], [1, 2, 0, 0x56]);
    assert_eq!(out.len(), 1 + usize::from(ACK_BYTES));
    // The example of IEEE 802.15.4-2015 §7.2.10; the checksum's bits are 0010 0111 1001 1110 in the order they are sent.
    out.clear();
    write_ack(0x6a, &mut out);
    assert_eq!(out, [0x02, 0x00, 0x6a, 0xe4, 0x79]);
}

#[test]
fn a_checksum_of_zero_is_written_as_all_ones() {
    let leg = Leg { hop_limit: 64, option: None };
    let checksum = |word: u16| {
        let payload = word.to_be_bytes();
        let datagram =
            Ipv6Packet { source: NodeId(1), dest: Some(NodeId(2)), content: Content::Udp(&payload) };
        let bytes = &frames(&datagram, NodeId(1), Some(NodeId(2)), leg, 127)[0].1;
        u16::from_be_bytes([bytes[28], bytes[29]])
    };
    // A word that is the checksum without it brings the sum to all ones, and its complement to 0.
    assert_eq!(checksum(checksum(0)), 0xffff);
}

#[test]
fn a_fragment_beyond_its_datagram_is_not_written() {
    let datagram = Ipv6Packet { source: NodeId(1), dest: Some(NodeId(2)), content: Content::Udp(&[0; 200]) };
    let leg = Leg { hop_limit: 64, option: None };
    let mut frame = frames(&datagram, NodeId(1), Some(NodeId(2)), leg, 127)[0].0;
    frame.fragment = frame.fragments;
    let mut out = Vec::new();
    assert_eq!(write_frame(&frame, &datagram, 127, &mut out), None);
    let long = Ipv6Packet { content: Content::Udp(&[0; 1_300]), ..datagram };
    assert_eq!(write_frame(&frame, &long, 127, &mut out), None);
    assert!(out.is_empty());
}
