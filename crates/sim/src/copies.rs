//! Counts packets in a row that have the same sender, receiver and mark (exchange and transmission).

use crate::luck::scramble;
use crate::{Mark, NodeId, packet};

/// How often the last packet from one node to another has been repeated, for each sender and receiver.
///
/// Several packets of one exchange may have the same mark: copies of a message, or an acknowledgement and the separate
/// response that follows it. The count gives each of these packets its own random numbers. The table remembers the last
/// mark from one node to another until two other nodes with the same table entry overwrite it. Around a hub, such as
/// the server behind a bottleneck, no two pairs of nodes share an entry.
#[derive(Debug, Default)]
pub(crate) struct RepetitionCounts {
    /// The entries of the table. An entry has 29 bits of a fingerprint of sender, receiver and mark, and 3 bits of
    /// count. Two nodes have two entries, one for each direction.
    last: Vec<u32>,
}

const COUNT: u32 = packet::MAX_COPY as u32;

impl RepetitionCounts {
    /// Makes the table large enough for this number of nodes.
    pub(crate) fn reserve(&mut self, nodes: usize) {
        // `from ^ to` is below this power of two, and each pair of nodes has two directions.
        let places = 2 * nodes.next_power_of_two();
        if self.last.len() < places {
            self.last.resize(places, 0);
        }
    }

    /// Counts a packet. Returns how many packets with the same sender, receiver and mark came directly before it, up to
    /// [`packet::MAX_COPY`].
    pub(crate) fn count(&mut self, from: NodeId, to: NodeId, mark: Mark) -> u8 {
        // If one of the two nodes is always the same, their difference identifies the other.
        let place = 2 * (from.0 ^ to.0) as usize + usize::from(from < to);
        let Some(last) = self.last.get_mut(place) else { return 0 };
        let step = u64::from(mark.exchange) << 8 | u64::from(mark.transmission);
        let hash =
            scramble((u64::from(from.0) << 32 | u64::from(to.0)) ^ step.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        // The low bits of the same word hold the count.
        let fingerprint = hash as u32 & !COUNT;
        let before = if *last & !COUNT == fingerprint { *last & COUNT } else { 0 };
        // The count stops at its largest value: one more would run into the fingerprint.
        *last = fingerprint | (before + 1).min(COUNT);
        before as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_of_the_last_transmission_of_a_client_are_counted() {
        let mut copies = RepetitionCounts::default();
        copies.reserve(1_000);
        let mark = |exchange, transmission| Mark { exchange, transmission };
        // All clients in turn, both ways: none disturbs another.
        for before in [0, 1, 2, 3, 4, 5, 6, 7, 7] {
            for client in 1..1_000 {
                assert_eq!(copies.count(NodeId(client), NodeId(0), mark(5, 0)), before);
                assert_eq!(copies.count(NodeId(0), NodeId(client), mark(5, 0)), before);
            }
        }
        assert_eq!(copies.count(NodeId(1), NodeId(0), mark(5, 1)), 0);
        assert_eq!(copies.count(NodeId(1), NodeId(0), mark(6, 1)), 0);
        assert_eq!(copies.count(NodeId(0), NodeId(1), mark(5, 0)), 7);
    }
}
