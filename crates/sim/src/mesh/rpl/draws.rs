//! The random numbers of one node.

use crate::{NodeId, Stream, Time};

/// Random numbers, each keyed by the node and by how many there were before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draws {
    stream: Stream,
    node: NodeId,
    count: u64,
}

impl Draws {
    pub(super) fn new(stream: Stream, node: NodeId) -> Self {
        Self { stream, node, count: 0 }
    }

    /// A whole number of 0..`bound`; 0 if there is none.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.count += 1;
        self.stream.below(bound, u64::from(self.node.0), self.count, 0)
    }

    /// A moment between half of `span_ns` and one and a half of it after `now`.
    pub(super) fn around(&mut self, now: Time, span_ns: u64) -> Time {
        now + (span_ns / 2).saturating_add(self.below(span_ns))
    }
}
