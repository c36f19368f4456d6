//! The least time of a datagram on the air: every frame once, with the shortest headers.

use super::lowpan::{ACK_BYTES, FCS_BYTES, Fragments, header_bytes};
use super::{Leg, MeshConfig, RadioConfig, RoutingConfig, RplOption};
use crate::{NodeId, Span};

/// The time of a byte at 250 kbit/s.
const BYTE: Span = Span::from_micros(32);

/// A hop limit that takes no byte in a compressed header (RFC 6282 §3.1.1).
const ELIDED: u8 = 64;

/// The position of a hop on the path of a datagram. It decides the length of the compressed headers: an end of the path
/// that is also an end of the hop needs no address in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopPlace {
    /// The only hop of the path.
    Only,
    /// The first or the last hop of several.
    End,
    /// A hop between two others.
    Middle,
}

/// The frames of a datagram on one hop, each sent once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopFrames {
    /// The number of frames.
    pub count: u8,
    /// The time of all frames on the air, without acknowledgements.
    pub on_air: Span,
}

impl RadioConfig {
    /// Returns the time on the air of a frame of this many bytes, checksum included. The preamble and the length field
    /// are added.
    #[inline]
    pub fn air_time(&self, bytes: u16) -> Span {
        // `bytes` counts the standard's checksum of 2 bytes. A radio may send another number, such as none on a Cooja mote.
        let content = u64::from(bytes.saturating_sub(FCS_BYTES));
        BYTE * (u64::from(self.phy_header_bytes + self.checksum_bytes) + content)
    }
}

impl MeshConfig {
    /// Returns the time from the last bit of a frame to the last bit of its acknowledgement.
    #[inline]
    pub fn acknowledgement_time(&self) -> Span {
        self.mac.ack_turnaround + self.radio.air_time(ACK_BYTES)
    }

    /// Returns the frames that carry a UDP datagram with `payload_bytes` of payload over a hop at `place`. The hop
    /// limit is assumed to take no byte in the compressed header. Returns `None` if frames cannot carry the payload.
    pub fn hop_frames(&self, place: HopPlace, payload_bytes: usize) -> Option<HopFrames> {
        // Any four nodes do: only whether the ends of the hop are ends of the path changes the headers.
        let [source, relay, other, dest] = [0, 1, 2, 3].map(NodeId);
        let (from, to) = match place {
            HopPlace::Only => (source, dest),
            HopPlace::End => (source, relay),
            HopPlace::Middle => (relay, other),
        };
        let option = matches!(self.routing, RoutingConfig::Rpl(_)).then(RplOption::default);
        let leg = Leg { hop_limit: ELIDED, option };
        let header = header_bytes(source, Some(dest), from, Some(to), leg, false);
        let fragments = Fragments::new(self.lowpan.max_frame_bytes, Some(to), header, payload_bytes)?;
        let times = (0..fragments.count()).map(|index| self.radio.air_time(fragments.frame_bytes(index)));
        let on_air = times.fold(Span::ZERO, |sum, time| sum + time);
        Some(HopFrames { count: fragments.count(), on_air })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::{LowpanConfig, MacConfig, RplConfig};

    fn config(routing: RoutingConfig) -> MeshConfig {
        MeshConfig {
            radio: RadioConfig::UNIT_DISK,
            mac: MacConfig::STANDARD,
            lowpan: LowpanConfig::CONTIKI_3,
            routing,
        }
    }

    #[test]
    fn addresses_and_the_rpl_option_increase_the_length_of_frames() {
        // Preamble and the like 6, MAC 21 + 2, IPv6 2, UDP 7, and the payload of 10 bytes.
        let bytes =
            |config: &MeshConfig, place| config.hop_frames(place, 10).unwrap().on_air.as_micros() / 32;
        let shortest = config(RoutingConfig::Shortest);
        assert_eq!(
            [HopPlace::Only, HopPlace::End, HopPlace::Middle].map(|place| bytes(&shortest, place)),
            [48, 56, 64]
        );
        assert_eq!(bytes(&config(RoutingConfig::Rpl(RplConfig::CONTIKI_3)), HopPlace::End), 64);
    }

    #[test]
    fn a_long_payload_takes_several_frames() {
        let frames = config(RoutingConfig::Shortest).hop_frames(HopPlace::End, 96).unwrap();
        // 4 + 17 bytes of headers and 80 of payload, then 5 and 16; each with 21 + 2 + 6.
        let [first, last] = [(29 + 21 + 80) * 32, (29 + 5 + 16) * 32].map(Span::from_micros);
        assert_eq!(frames, HopFrames { count: 2, on_air: first + last });
        assert_eq!(config(RoutingConfig::Shortest).hop_frames(HopPlace::End, 5_000), None);
    }

    #[test]
    fn an_802_15_4_acknowledgement_comes_after_the_turnaround() {
        assert_eq!(config(RoutingConfig::Shortest).acknowledgement_time(), Span::from_micros(192 + 11 * 32));
    }
}
