//! The packets that have come through the simulated network.

use coapace_sim::{Event, Mark, NodeId, Record, Tap, Time};

/// A packet that is to leave towards its real receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival<'a> {
    /// The moment at which it arrived in the simulated network.
    pub(super) due: Time,
    pub(super) from: NodeId,
    pub(super) to: NodeId,
    pub(super) mark: Mark,
    pub(super) bytes: &'a [u8],
}

/// Collects the packets that arrive, and counts the packets of every node that are under way.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// The arrivals, each with the end of its bytes.
    heads: Vec<(Head, usize)>,
    bytes: Vec<u8>,
    /// Packets under way from or to each node, by its number.
    under_way: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Head {
    due: Time,
    from: NodeId,
    to: NodeId,
    mark: Mark,
}

/// The largest buffer that is kept after a burst of arrivals, in bytes.
const KEPT: usize = 1 << 20;

impl Arrivals {
    /// Returns the arrivals since [`clear`](Self::clear), in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Arrival<'_>> {
        let mut start = 0;
        self.heads.iter().map(move |&(Head { due, from, to, mark }, end)| {
            let bytes = &self.bytes[start..end];
            start = end;
            Arrival { due, from, to, mark, bytes }
        })
    }

    pub(super) fn clear(&mut self) {
        self.heads.clear();
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
    }

    /// Returns the number of packets that are under way from or to a node.
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
            Event::Queued | Event::Marked | Event::Begun => return,
        };
        self.count(record.from, change);
        self.count(record.to, change);
        if record.event == Event::Delivered {
            let &Record { time: due, from, to, mark, bytes, .. } = record;
            self.bytes.extend_from_slice(bytes);
            self.heads.push((Head { due, from, to, mark }, self.bytes.len()));
        }
    }
}
