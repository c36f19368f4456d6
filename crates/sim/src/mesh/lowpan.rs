//! The number of bytes and of frames of a datagram: the arithmetic of RFC 6282 and RFC 4944.
//!
//! [`bytes`](super::bytes) writes the bytes themselves, and its tests prove that both agree.

use std::ops::Range;

use super::Leg;
use crate::NodeId;

/// The length of the checksum of a frame.
pub(crate) const FCS_BYTES: u16 = 2;

/// The length of an acknowledgement: frame control, sequence number, checksum (IEEE 802.15.4-2015 §7.3.3).
pub(crate) const ACK_BYTES: u16 = 5;

/// The length of the header of a first fragment (RFC 4944 §5.3).
const FRAG1_BYTES: u16 = 4;
/// The length of the header of a further fragment.
const FRAGN_BYTES: u16 = 5;

/// The longest payload that fits the 1,280 bytes of an IPv6 packet (RFC 4944 §4) with all headers: IPv6, the RPL option, UDP.
pub(crate) const MAX_PAYLOAD_BYTES: u16 = 1_280 - 40 - 8 - 8;

/// Returns the length of the MAC header of a data frame: frame control, sequence number, one PAN identifier, 8 bytes of the
/// sender, and 8 bytes of the receiver or 2 of the broadcast address.
pub(crate) const fn mac_header_bytes(to: Option<NodeId>) -> u16 {
    if to.is_some() { 21 } else { 15 }
}

/// Returns the length of the compressed headers of a packet from `source` to `dest` on its hop from `from` to `to`,
/// without a fragment header: IPv6, the RPL option, and UDP if there is any. An ICMPv6 message counts as payload.
///
/// A hop limit other than 1, 64 and 255 takes a byte, an end of the path that is not an end of the hop takes 8, and
/// ff02::1a takes 1 (RFC 6282 §3.1.1); UDP between ports 5683 takes 7 with its checksum (§4.3).
///
/// This is the least that the RFC allows. Contiki (`sicslowpan.c`, `compress_hdr_iphc`) writes context identifiers
/// though they are 0, which is a byte more with UDP. Contiki 3.x compresses nothing behind an RPL option, which is 3
/// bytes more.
#[inline]
pub(crate) fn header_bytes(
    source: NodeId,
    dest: Option<NodeId>,
    from: NodeId,
    to: Option<NodeId>,
    leg: Leg,
    is_icmpv6: bool,
) -> u16 {
    let hop_limit = u16::from(!matches!(leg.hop_limit, 1 | 64 | 255));
    let source = if source == from { 0 } else { 8 };
    let dest = match dest {
        None => 1,
        Some(_) if dest == to => 0,
        Some(_) => 8,
    };
    let option = if leg.option.is_some() { 2 + 6 } else { 0 };
    // A header that is not compressed is named in the header before it.
    // A compressed UDP header has a byte of its own, two ports, and a checksum.
    let next = if is_icmpv6 { 1 } else { 1 + 4 + 2 };
    2 + hop_limit + source + dest + option + next
}

/// The division of a packet into frames on one hop (RFC 4944 §5.3). Frames are numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragments {
    /// The length of MAC header and checksum, in bytes.
    overhead: u16,
    /// The length in bytes of the compressed headers, all of which are in the first frame.
    header: u16,
    payload: u16,
    /// The payload in the first frame, in bytes.
    first: u16,
    /// The payload in each further frame, in bytes. The last frame has the rest.
    next: u16,
    count: u8,
}

impl Fragments {
    /// The largest number of frames of a packet.
    pub(crate) const MAX: u8 = 64;

    /// Divides a packet into frames of at most `max_frame_bytes` for a hop to `to`. The packet has compressed headers
    /// of `header` bytes and a payload of `payload` bytes.
    ///
    /// Returns `None` if the payload is longer than [`MAX_PAYLOAD_BYTES`], if it takes more than [`MAX`](Self::MAX) frames, or
    /// if the headers do not fit the first frame (RFC 6282 §2).
    #[inline]
    pub(crate) fn new(max_frame_bytes: u16, to: Option<NodeId>, header: u16, payload: usize) -> Option<Self> {
        let payload = u16::try_from(payload).ok().filter(|&payload| payload <= MAX_PAYLOAD_BYTES)?;
        let overhead = mac_header_bytes(to) + FCS_BYTES;
        let room = max_frame_bytes.checked_sub(overhead)?;
        // A packet that fits one frame has no fragment header.
        if header + payload <= room {
            return Some(Self { overhead, header, payload, first: payload, next: 0, count: 1 });
        }
        // Offsets are in units of 8 bytes of the uncompressed packet, whose headers are a multiple of 8 themselves.
        let first = room.checked_sub(FRAG1_BYTES + header)? & !7;
        let next = room.checked_sub(FRAGN_BYTES)? & !7;
        // The payload did not fit one frame, so it exceeds `first`. Frames without room for 8 bytes make `next` 0: no plan.
        let others = (payload - first).checked_add(next.checked_sub(1)?)? / next;
        let count = u8::try_from(1 + others).ok().filter(|&count| count <= Self::MAX)?;
        Some(Self { overhead, header, payload, first, next, count })
    }

    /// Returns the number of frames; 1 is a whole packet.
    #[inline]
    pub(crate) fn count(&self) -> u8 {
        self.count
    }

    /// Returns the part of the payload in frame `index`, which is below the count.
    #[inline]
    pub(crate) fn payload(&self, index: u8) -> Range<u16> {
        match u16::from(index).checked_sub(1) {
            None => 0..self.first,
            Some(before) => {
                let start = self.first + before * self.next;
                start..self.payload.min(start + self.next)
            }
        }
    }

    /// Returns the length of frame `index` with MAC header and checksum, for [`Frame::bytes`](super::Frame::bytes).
    #[inline]
    pub(crate) fn frame_bytes(&self, index: u8) -> u16 {
        let headers = match (index, self.count) {
            (_, 1) => self.header,
            (0, _) => FRAG1_BYTES + self.header,
            _ => FRAGN_BYTES,
        };
        self.overhead + headers + self.payload(index).len() as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::RplOption;
    use proptest::prelude::*;

    const HOPS: [NodeId; 4] = [NodeId(0), NodeId(1), NodeId(2), NodeId(3)];

    /// Returns the length of the headers of UDP from node 0 to node 3 on one of its hops.
    fn udp(from: usize, to: usize, hop_limit: u8, option: Option<RplOption>) -> u16 {
        header_bytes(HOPS[0], Some(HOPS[3]), HOPS[from], Some(HOPS[to]), Leg { hop_limit, option }, false)
    }

    #[test]
    fn lowpan_elides_an_ip_address_that_equals_the_link_address_of_the_hop() {
        assert_eq!(udp(0, 3, 64, None), 2 + 7);
        assert_eq!(udp(0, 1, 64, None), 2 + 8 + 7);
        assert_eq!(udp(1, 2, 63, None), 2 + 1 + 16 + 7);
        assert_eq!(udp(2, 3, 62, None), 2 + 1 + 8 + 7);
        assert_eq!(udp(1, 2, 63, Some(RplOption::default())), 2 + 1 + 16 + 8 + 7);
    }

    #[test]
    fn ninety_six_bytes_of_coap_take_two_frames() {
        let to = Some(HOPS[3]);
        // A frame of 127 bytes has room for 104.
        assert_eq!(Fragments::new(127, to, udp(0, 3, 64, None), 95).unwrap().count(), 1);
        assert_eq!(Fragments::new(127, to, udp(0, 3, 64, None), 96).unwrap().count(), 2);
        let fragments = Fragments::new(127, to, udp(2, 3, 62, None), 96).unwrap();
        assert_eq!(fragments.count(), 2);
        assert_eq!([fragments.payload(0), fragments.payload(1)], [0..80, 80..96]);
        assert_eq!(fragments.frame_bytes(0), 21 + 4 + 18 + 80 + 2);
        assert_eq!(fragments.frame_bytes(1), 21 + 5 + 16 + 2);
    }

    #[test]
    fn a_datagram_too_long_for_6lowpan_is_refused() {
        let to = Some(HOPS[3]);
        assert!(Fragments::new(127, to, 42, usize::from(MAX_PAYLOAD_BYTES)).is_some());
        assert_eq!(Fragments::new(127, to, 42, usize::from(MAX_PAYLOAD_BYTES) + 1), None);
        assert_eq!(Fragments::new(127, to, 42, 70_000), None);
        assert_eq!(Fragments::new(22, to, 9, 0), None);
        // 4 + 9 bytes of headers and 8 of payload, or 5 and 8.
        assert_eq!(Fragments::new(23 + 12, to, 9, 100), None);

        assert_eq!(Fragments::new(23 + 13, to, 9, 63 * 8).unwrap().count(), 64);
        assert_eq!(Fragments::new(23 + 13, to, 9, 63 * 8 + 1), None);
    }

    proptest! {
        #[test]
        fn lowpan_fragments_carry_the_payload_in_sequence_and_in_units_of_eight(
            max_frame_bytes in 40u16..200,
            header in 9u16..43,
            payload in 0usize..1_300,
            all: bool,
        ) {
            let to = (!all).then_some(NodeId(1));
            if let Some(fragments) = Fragments::new(max_frame_bytes, to, header, payload) {
                let mut end = 0;
                for index in 0..fragments.count() {
                    let range = fragments.payload(index);
                    prop_assert_eq!(range.start, end);
                    prop_assert_eq!(range.start % 8, 0);
                    prop_assert!(index == 0 || !range.is_empty());
                    prop_assert!(fragments.frame_bytes(index) <= max_frame_bytes);
                    end = range.end;
                }
                prop_assert_eq!(usize::from(end), payload);
            }
        }
    }
}
