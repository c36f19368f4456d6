//! Telling packets apart that have the same ends and the same mark.

use crate::luck::scramble;
use crate::{Mark, NodeId, packet};

/// How often packets of the same ends and mark were sent before.
///
/// An acknowledgement followed by a separate response bears one mark, and so does a message that a host sends twice;
/// each is to have luck of its own. The table forgets: it remembers a packet until another falls on its place, which
/// with four places for each node takes about four packets of every node.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    /// 29 bits of fingerprint, 3 of count.
    seen: Vec<u32>,
}

const COUNT: u32 = packet::MAX_COPY as u32;

impl Copies {
    /// Makes room for so many nodes.
    pub(crate) fn reserve(&mut self, nodes: usize) {
        let places = (4 * nodes).next_power_of_two().max(1024);
        if self.seen.len() < places {
            self.seen = vec![0; places];
        }
    }

    /// Counts one packet; returns how many there were before it, up to [`packet::MAX_COPY`].
    pub(crate) fn count(&mut self, from: NodeId, to: NodeId, mark: Mark) -> u8 {
        let ends = (u64::from(from.0) << 32 | u64::from(to.0)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let step = u64::from(mark.exchange) << 8 | u64::from(mark.transmission);
        let hash = scramble(ends.rotate_left(32) ^ step);
        let place = hash as usize & self.seen.len().wrapping_sub(1);
        let Some(seen) = self.seen.get_mut(place) else { return 0 };
        let fingerprint = (hash >> 32) as u32 & !COUNT;
        let before = if *seen & !COUNT == fingerprint { *seen & COUNT } else { 0 };
        *seen = fingerprint | (before + 1).min(COUNT);
        before as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_counted_and_others_are_not() {
        let mut copies = Copies::default();
        copies.reserve(10);
        let mark = |exchange, transmission| Mark { exchange, transmission };
        let mut count = |from, to, mark| copies.count(NodeId(from), NodeId(to), mark);
        assert_eq!(count(1, 0, mark(0, 0)), 0);
        assert_eq!(count(1, 0, mark(0, 0)), 1);
        assert_eq!(count(0, 1, mark(0, 0)), 0);
        assert_eq!(count(1, 0, mark(0, 1)), 0);
        assert_eq!(count(1, 0, mark(1, 0)), 0);
        assert_eq!(count(1, 0, mark(0, 0)), 2);
        let many: Vec<_> = (0..8).map(|_| count(2, 0, mark(0, 0))).collect();
        assert_eq!(many, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(count(2, 0, mark(0, 0)), 7);
    }
}
