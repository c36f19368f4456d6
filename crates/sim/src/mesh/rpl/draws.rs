//! The random numbers of a node.

use crate::{NodeId, Span, Stream, Time};

/// The random numbers of a node, with the node and their count as key.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeDraws {
    stream: Stream,
    node: NodeId,
    count: u64,
}

impl NodeDraws {
    pub(super) fn new(stream: Stream, node: NodeId) -> Self {
        Self { stream, node, count: 0 }
    }

    /// Draws a random integer from 0..`bound`; 0 if `bound` is 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.count += 1;
        self.stream.below(bound, u64::from(self.node.0), self.count, 0)
    }

    /// Draws a random span shorter than `bound`; zero if `bound` is zero.
    pub(super) fn within(&mut self, bound: Span) -> Span {
        Span::from_nanos(self.below(bound.as_nanos()))
    }

    /// Returns a random time, from 0.5 to 1.5 times `span` after `now`.
    pub(super) fn around(&mut self, now: Time, span: Span) -> Time {
        now + span / 2 + self.within(span)
    }
}
