//! The bytes of frames: IEEE 802.15.4, 6LoWPAN fragments (RFC 4944) and compressed headers (RFC 6282).
//!
//! smoltcp writes the bytes, with one exception: it compresses no address with a context. An address under the prefix
//! of context 0 is compressed to the same bytes as an address under fe80::/64. Two bits in the header, SAC and DAC,
//! tell the two addresses apart (RFC 6282 §3.1.1). Addresses of the mesh are therefore written as link-local addresses,
//! and then the bits are set.

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    Ieee802154Address, Ieee802154Frame, Ieee802154FrameType, Ieee802154FrameVersion, Ieee802154Pan,
    Ieee802154Repr, IpProtocol, Ipv6Option, Ipv6OptionRepr, RplHopByHopRepr, RplInstanceId,
    SixlowpanExtHeaderId, SixlowpanExtHeaderPacket, SixlowpanExtHeaderRepr, SixlowpanFragPacket,
    SixlowpanFragRepr, SixlowpanIphcPacket, SixlowpanIphcRepr, SixlowpanNextHeader, SixlowpanUdpNhcPacket,
    SixlowpanUdpNhcRepr, UdpRepr,
};

use super::address::{ALL_RPL_NODES, eui64, global, link_local};
use super::lowpan::{Fragments, header_bytes};
use super::{Content, Frame, Ipv6Packet, Leg, RplOption};
use crate::NodeId;

/// The PAN of all nodes, like in Contiki.
const PAN: Ieee802154Pan = Ieee802154Pan(0xabcd);

const COAP_PORT: u16 = 5683;

/// The bit in the second byte of a compressed header that gives the source a context.
const SAC: u8 = 1 << 6;
/// The bit that gives the destination a context.
const DAC: u8 = 1 << 2;

/// Appends a data frame to `out`, from its MAC header to its checksum. The datagram was cut into frames of at most
/// `max_frame_bytes` bytes.
///
/// Returns `None`, and appends nothing, if the datagram has no such frame.
pub(crate) fn write_frame(
    frame: &Frame,
    datagram: &Ipv6Packet<'_>,
    max_frame_bytes: u16,
    out: &mut Vec<u8>,
) -> Option<()> {
    let (payload, is_icmpv6) = match datagram.content {
        Content::Udp(payload) => (payload, false),
        Content::Icmpv6(message) => (message, true),
    };
    let header = header_bytes(datagram.source, datagram.dest, frame.from, frame.to, frame.leg, is_icmpv6);
    let fragments = Fragments::new(max_frame_bytes, frame.to, header, payload.len())?;
    // A capture may ask for a frame that the datagram does not have.
    if frame.fragment >= fragments.count() {
        return None;
    }
    let range = fragments.payload(frame.fragment);
    let start = out.len();
    write_mac_header(frame, out);
    if fragments.count() > 1 {
        // 2 bytes of hop-by-hop header and 6 of option (RFC 6553 §3).
        let option = if frame.leg.option.is_some() { 8 } else { 0 };
        // Fragment headers count the uncompressed packet: IPv6, the RPL option and UDP (RFC 4944 §5.3).
        let before = 40 + option + if is_icmpv6 { 0 } else { 8 };
        let size = before + payload.len() as u16;
        let offset = (before + range.start) / 8;
        // A packet has at most 1,280 bytes, so the offset in units of 8 fits a byte.
        write_fragment_header(frame, size, offset as u8, out);
    }
    // The checksum of UDP covers all of the payload, so the whole packet is written, and then cut to this fragment.
    let packet = out.len();
    write_packet(datagram, frame, out);
    out.truncate(packet + usize::from(header + range.end));
    if frame.fragment > 0 {
        out.drain(packet..packet + usize::from(header + range.start));
    }
    write_fcs(start, out);
    Some(())
}

/// Appends the acknowledgement of the frame with this sequence number to `out`.
pub(crate) fn write_ack(sequence: u8, out: &mut Vec<u8>) {
    let start = out.len();
    let mut header = Ieee802154Frame::new_unchecked([0; 3]);
    header.set_frame_type(Ieee802154FrameType::Acknowledgement);
    header.set_sequence_number(sequence);
    out.extend_from_slice(&header.into_inner());
    write_fcs(start, out);
}

fn write_mac_header(frame: &Frame, out: &mut Vec<u8>) {
    let repr = Ieee802154Repr {
        frame_type: Ieee802154FrameType::Data,
        security_enabled: false,
        frame_pending: false,
        // All receivers of a broadcast would acknowledge at the same moment.
        ack_request: frame.to.is_some(),
        sequence_number: Some(frame.sequence),
        // Both ends are in the same PAN, so the source's identifier is left out.
        pan_id_compression: true,
        frame_version: Ieee802154FrameVersion::Ieee802154_2006,
        dst_pan_id: Some(PAN),
        dst_addr: Some(frame.to.map_or(Ieee802154Address::BROADCAST, mac_address)),
        src_pan_id: None,
        src_addr: Some(mac_address(frame.from)),
    };
    repr.emit(&mut Ieee802154Frame::new_unchecked(grow(out, repr.buffer_len())));
}

fn write_fragment_header(frame: &Frame, size: u16, offset: u8, out: &mut Vec<u8>) {
    let tag = frame.tag;
    let repr = match frame.fragment {
        0 => SixlowpanFragRepr::FirstFragment { size, tag },
        _ => SixlowpanFragRepr::Fragment { size, tag, offset },
    };
    repr.emit(&mut SixlowpanFragPacket::new_unchecked(grow(out, repr.buffer_len())));
}

/// Appends the whole datagram, with headers compressed for the hop of the frame.
fn write_packet(datagram: &Ipv6Packet<'_>, frame: &Frame, out: &mut Vec<u8>) {
    let next_header = match datagram.content {
        Content::Udp(_) => SixlowpanNextHeader::Compressed,
        Content::Icmpv6(_) => SixlowpanNextHeader::Uncompressed(IpProtocol::Icmpv6),
    };
    write_ipv6_header(datagram, frame, next_header, out);
    if let Some(option) = frame.leg.option {
        write_option(option, next_header, out);
    }
    match datagram.content {
        Content::Udp(payload) => write_udp(datagram, payload, out),
        Content::Icmpv6(message) => out.extend_from_slice(message),
    }
}

fn write_ipv6_header(
    datagram: &Ipv6Packet<'_>,
    frame: &Frame,
    next_header: SixlowpanNextHeader,
    out: &mut Vec<u8>,
) {
    let Leg { hop_limit, option } = frame.leg;
    let repr = SixlowpanIphcRepr {
        src_addr: link_local(datagram.source),
        ll_src_addr: Some(mac_address(frame.from)),
        dst_addr: datagram.dest.map_or(ALL_RPL_NODES, link_local),
        ll_dst_addr: frame.to.map(mac_address),
        // The option is compressed, and names the next header itself.
        next_header: if option.is_some() { SixlowpanNextHeader::Compressed } else { next_header },
        hop_limit,
        ecn: None,
        dscp: None,
        flow_label: None,
    };
    let buffer = grow(out, repr.buffer_len());
    repr.emit(&mut SixlowpanIphcPacket::new_unchecked(&mut *buffer));
    // smoltcp took the addresses for link-local ones. These bits say that context 0 is meant (RFC 6282 §3.1.1).
    if matches!(datagram.content, Content::Udp(_)) {
        buffer[1] |= if datagram.dest.is_some() { SAC | DAC } else { SAC };
    }
}

/// Appends the RPL option in a compressed hop-by-hop header (RFC 6553 §3, RFC 6282 §4.2).
fn write_option(option: RplOption, next_header: SixlowpanNextHeader, out: &mut Vec<u8>) {
    let option = Ipv6OptionRepr::Rpl(RplHopByHopRepr {
        down: option.down,
        rank_error: option.rank_error,
        forwarding_error: option.forwarding_error,
        instance_id: RplInstanceId::from(0),
        sender_rank: option.sender_rank,
    });
    let length = option.buffer_len();
    let header = SixlowpanExtHeaderRepr {
        ext_header_id: SixlowpanExtHeaderId::HopByHopHeader,
        next_header,
        length: length as u8,
    };
    header.emit(&mut SixlowpanExtHeaderPacket::new_unchecked(grow(out, header.buffer_len())));
    option.emit(&mut Ipv6Option::new_unchecked(grow(out, length)));
}

fn write_udp(datagram: &Ipv6Packet<'_>, payload: &[u8], out: &mut Vec<u8>) {
    let repr = SixlowpanUdpNhcRepr(UdpRepr { src_port: COAP_PORT, dst_port: COAP_PORT });
    let header = repr.header_len();
    let buffer = grow(out, header + payload.len());
    repr.emit(
        &mut SixlowpanUdpNhcPacket::new_unchecked(&mut *buffer),
        // The checksum covers the addresses that the receiver restores (RFC 8200 §8.1), not the link-local ones of `repr`.
        &global(datagram.source),
        &datagram.dest.map_or(ALL_RPL_NODES, global),
        payload.len(),
        |place| place.copy_from_slice(payload),
        &ChecksumCapabilities::default(),
    );
    // 0 would mean that the datagram has no checksum (RFC 768), which IPv6 does not allow. All ones are sent for 0.
    let checksum = &mut buffer[header - 2..header];
    if checksum == [0, 0] {
        checksum.fill(0xff);
    }
}

/// Appends the checksum of the bytes from `start`: x¹⁶ + x¹² + x⁵ + 1, least significant bit first, from 0
/// (IEEE 802.15.4-2015 §7.2.10).
fn write_fcs(start: usize, out: &mut Vec<u8>) {
    let remainder = out[start..].iter().fold(0u16, |crc, &byte| {
        (0..8).fold(crc ^ u16::from(byte), |crc, _| (crc >> 1) ^ if crc & 1 == 1 { 0x8408 } else { 0 })
    });
    out.extend_from_slice(&remainder.to_le_bytes());
}

fn mac_address(node: NodeId) -> Ieee802154Address {
    Ieee802154Address::Extended(eui64(node))
}

/// Appends `length` zeros, and returns them.
fn grow(out: &mut Vec<u8>, length: usize) -> &mut [u8] {
    let start = out.len();
    out.resize(start + length, 0);
    &mut out[start..]
}

#[cfg(test)]
mod tests;
