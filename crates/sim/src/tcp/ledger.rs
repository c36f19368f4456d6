//! Recognises TCP segments without new data, from the view of one end of a connection.

use smoltcp::wire::{IpProtocol, Ipv4Packet, TcpPacket};

/// The fields of a segment that [`SequenceLedger`] needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct TcpSegment {
    pub(super) source: u16,
    pub(super) destination: u16,
    pub(super) synchronises: bool,
    sequence: u32,
    acknowledgement: Option<u32>,
    /// The length in sequence numbers: payload, SYN and FIN.
    length: u32,
}

impl TcpSegment {
    /// Reads an IPv4 packet. Returns `None` if it has no TCP segment.
    pub(super) fn read(packet: &[u8]) -> Option<Self> {
        let ip = Ipv4Packet::new_checked(packet).ok()?;
        if ip.next_header() != IpProtocol::Tcp {
            return None;
        }
        let tcp = TcpPacket::new_checked(ip.payload()).ok()?;
        Some(Self {
            source: tcp.src_port(),
            destination: tcp.dst_port(),
            synchronises: tcp.syn(),
            sequence: tcp.seq_number().0.cast_unsigned(),
            acknowledgement: tcp.ack().then(|| tcp.ack_number().0.cast_unsigned()),
            length: u32::try_from(tcp.segment_len()).ok()?,
        })
    }

    /// Returns whether the segment requests a connection.
    pub(super) fn opens(&self) -> bool {
        self.synchronises && self.acknowledgement.is_none()
    }

    fn end(&self) -> u32 {
        self.sequence.wrapping_add(self.length)
    }
}

/// The progress of the sequence numbers of a connection in each direction, as one end sees it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SequenceLedger {
    /// The number after the highest sequence number sent.
    sent: Option<u32>,
    /// The number after the last sequence number that arrived without a gap.
    arrived: Option<u32>,
}

impl SequenceLedger {
    /// Records a segment that is sent. Returns whether it repeats sequence numbers that were sent before.
    pub(super) fn sends(&mut self, segment: &TcpSegment) -> bool {
        if let Some(acknowledged) = segment.acknowledgement {
            // An acknowledgement counts data beyond a gap that has closed.
            advance(&mut self.arrived, acknowledged);
        }
        // A pure ACK takes no sequence number, so it repeats none.
        let again = segment.length > 0 && self.sent.is_some_and(|sent| before(segment.sequence, sent));
        if segment.length > 0 {
            advance(&mut self.sent, segment.end());
        }
        again
    }

    /// Records a segment that arrives. Returns whether all its sequence numbers had arrived before.
    pub(super) fn arrives(&mut self, segment: &TcpSegment) -> bool {
        if segment.length == 0 {
            return false;
        }
        match self.arrived {
            Some(arrived) if !before(arrived, segment.end()) => true,
            // Data beyond a gap count when an acknowledgement shows that the gap has closed.
            Some(arrived) if before(arrived, segment.sequence) => false,
            _ => {
                self.arrived = Some(segment.end());
                false
            }
        }
    }
}

fn advance(mark: &mut Option<u32>, to: u32) {
    if mark.is_none_or(|mark| before(mark, to)) {
        *mark = Some(to);
    }
}

/// Returns whether `a` is before `b`, modulo 2³² (RFC 9293 §3.4).
fn before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(sequence: u32, length: u32) -> TcpSegment {
        TcpSegment { source: 1, destination: 2, synchronises: false, sequence, acknowledgement: None, length }
    }

    #[test]
    fn tcp_retransmissions_are_recognised_across_the_wrap_of_sequence_numbers() {
        let mut ledger = SequenceLedger::default();
        assert!(!ledger.sends(&data(u32::MAX - 9, 20)));
        assert!(!ledger.sends(&data(10, 20)));
        assert!(ledger.sends(&data(u32::MAX - 9, 20)));
        assert!(!ledger.sends(&data(30, 0)), "an ACK repeats nothing");
    }

    #[test]
    fn the_tcp_segment_that_closes_a_gap_is_not_a_duplicate() {
        let mut ledger = SequenceLedger::default();
        assert!(!ledger.arrives(&data(100, 10)));
        assert!(!ledger.arrives(&data(120, 10)));
        assert!(!ledger.arrives(&data(110, 10)));
        assert!(ledger.arrives(&data(110, 10)));
        ledger.sends(&TcpSegment { acknowledgement: Some(130), ..data(0, 0) });
        assert!(ledger.arrives(&data(120, 10)));
    }
}
