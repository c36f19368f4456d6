//! The packets that have come through the simulated network.

use coapace_sim::{Ecn, Event, Mark, NodeId, Record, Tap, Time, Transport};

/// A packet that has come through the simulated network and is due for its real receiver.
#[derive(Clone, Copy, Debug)]
pub struct ArrivedPacket<'a> {
    /// The time at which it arrived in the simulated network.
    pub due: Time,
    /// The node that sent it.
    pub from: NodeId,
    /// The node that it is for.
    pub to: NodeId,
    /// The exchange and the transmission that the packet belongs to.
    pub mark: Mark,
    /// The content of the packet.
    pub bytes: &'a [u8],
}

/// Collects the packets that arrive, and counts the packets in flight for every node.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// The packets that have arrived, each with the end of its content in `bytes`.
    heads: Vec<(PacketHead, usize)>,
    bytes: Vec<u8>,
    /// The number of packets in flight from or to each node, by the node's number.
    under_way: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct PacketHead {
    due: Time,
    from: NodeId,
    to: NodeId,
    mark: Mark,
}

/// The largest buffer that is kept after a burst of arrivals, in bytes.
const KEPT: usize = 1 << 20;

impl Arrivals {
    /// Returns the arrivals since [`clear`](Self::clear), the earliest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = ArrivedPacket<'_>> {
        let mut start = 0;
        self.heads.iter().map(move |&(PacketHead { due, from, to, mark }, end)| {
            let bytes = &self.bytes[start..end];
            start = end;
            ArrivedPacket { due, from, to, mark, bytes }
        })
    }

    pub(super) fn clear(&mut self) {
        self.heads.clear();
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
    }

    /// Returns the number of packets in flight from or to a node.
    pub(super) fn under_way(&self, node: NodeId) -> u32 {
        self.under_way.get(node.0 as usize).copied().unwrap_or(0)
    }

    fn count(&mut self, node: NodeId, change: i32) {
        let place = node.0 as usize;
        if place >= self.under_way.len() {
            self.under_way.resize(place + 1, 0);
        }
        self.under_way[place] = self.under_way[place].saturating_add_signed(change);
    }
}

impl Tap for Arrivals {
    fn record(&mut self, record: &Record<'_>) {
        let change = match record.event {
            Event::Sent => 1,
            Event::Delivered | Event::Dropped | Event::Discarded | Event::Lost => -1,
            // A packet in these events is still in flight.
            Event::Queued | Event::Marked | Event::Begun => return,
        };
        self.count(record.from, change);
        self.count(record.to, change);
        if record.event == Event::Delivered {
            let &Record { time: due, from, to, mark, bytes, .. } = record;
            let start = self.bytes.len();
            self.bytes.extend_from_slice(bytes);
            // Queues mark the record and not the bytes. A real receiver reads the header.
            if (record.ecn, record.transport) == (Ecn::Congested, Transport::Ip) {
                mark_congestion(&mut self.bytes[start..]);
            }
            self.heads.push((PacketHead { due, from, to, mark }, self.bytes.len()));
        }
    }
}

/// Writes CE into the header of an IP packet (RFC 3168 §5), and corrects the checksum of IPv4 (RFC 1624 §3).
fn mark_congestion(packet: &mut [u8]) {
    match packet {
        // The traffic class begins in the lower half of the first byte, so ECN is bits 4 and 5 of the second.
        [first, second, ..] if *first >> 4 == 6 => *second |= 0x30,
        [first, second, _, _, _, _, _, _, _, _, high, low, ..] if *first >> 4 == 4 => {
            let word = |bytes: [u8; 2]| u32::from(u16::from_be_bytes(bytes));
            let before = word([*first, *second]);
            *second |= 3;
            let after = word([*first, *second]);
            let sum = (!word([*high, *low]) & 0xffff) + (!before & 0xffff) + after;
            // Three words add up to 18 bits. The first fold may carry once more, the second one cannot.
            let folded = (sum & 0xffff) + (sum >> 16);
            let folded = (folded & 0xffff) + (folded >> 16);
            [*high, *low] = (!folded as u16).to_be_bytes();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use coapace_sim::udp_packet;

    use super::*;

    #[test]
    fn an_ecn_marked_packet_equals_the_sent_packet_except_its_ecn_field() {
        for (from, to) in [("10.1.0.1:4000", "10.2.0.1:5683"), ("[fd00::1]:4000", "[fd00::2]:5683")] {
            let packet = |ecn| {
                let mut packet = Vec::new();
                let (from, to) = (from.parse().expect("an address"), to.parse().expect("an address"));
                udp_packet(from, to, 9, ecn, b"hello", &mut packet).expect("a short datagram");
                packet
            };
            for before in [Ecn::Capable, Ecn::Congested] {
                let mut marked = packet(before);
                assert_eq!(Ecn::of_ip(&marked), before);
                mark_congestion(&mut marked);
                assert_eq!(marked, packet(Ecn::Congested));
            }
        }
        mark_congestion(&mut [0x45, 0]);
    }
}
