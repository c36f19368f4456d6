//! The reassembly of datagrams from fragments.

use smallvec::SmallVec;

use super::{Frame, LowpanConfig};
use crate::{NodeId, Span, Time};

/// The datagrams of which a node has received some fragments and waits for others (RFC 4944 §5.3). Each datagram has a
/// context, which holds the handle of its packet: a number that the caller chooses. All memory is allocated at the
/// start.
///
/// Only a first fragment opens a context, like in Contiki (`sicslowpan.c`, `add_fragment`). If all contexts are in use,
/// the datagram is dropped. A context past its deadline stays until the first fragment of another datagram takes its
/// place. Until then, a late fragment is still added, which the RFC does not allow.
///
/// With [`prefer_new`](LowpanConfig::prefer_new) a newer datagram ends older ones, like in Contiki 2.7 (`sicslowpan.c`,
/// `PRIORITIZE_NEW_PACKETS`).
#[derive(Clone, Debug)]
pub(crate) struct FragmentReassembly {
    contexts: SmallVec<[Context; 2]>,
    /// The largest number of contexts.
    limit: usize,
    timeout: Span,
    prefer_new: bool,
}

#[derive(Clone, Copy, Debug)]
struct Context {
    from: NodeId,
    tag: u16,
    packet: u32,
    /// A bit for each fragment, set while the fragment has not arrived.
    missing: u64,
    deadline: Time,
}

/// The effect of a fragment on the reassembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reassembled {
    /// The fragment opened a context, which keeps the handle of its packet. If the context replaced another, the value is the
    /// handle of the other packet, which the caller releases.
    Opened(Option<u32>),
    /// The fragment was added, and its context waits for more.
    Added,
    /// The fragment is a copy of an earlier fragment.
    Repeated,
    /// The fragment completed the datagram. Its context is closed, and the caller takes back the handle of its packet.
    Whole(u32),
    /// A first fragment was dropped, because all contexts are in use.
    Full,
    /// A further fragment found no context: the first was lost or dropped, or this one came too late.
    Stray,
}

impl FragmentReassembly {
    /// Returns an empty reassembly for a node with this configuration.
    pub(crate) fn new(config: &LowpanConfig) -> Self {
        let limit = usize::from(config.reassembly_contexts);
        Self {
            contexts: SmallVec::with_capacity(limit),
            limit,
            timeout: config.reassembly_timeout,
            prefer_new: config.prefer_new,
        }
    }

    /// Handles a fragment of the packet with this handle. `frame.fragments` is more than 1, and
    /// [`Fragments::MAX`](super::lowpan::Fragments::MAX) at most.
    pub(crate) fn handle(&mut self, now: Time, frame: &Frame, packet: u32) -> Reassembled {
        // `Fragments::MAX` is 64, so every fragment has its bit.
        let bit = 1 << frame.fragment;
        let found = self.contexts.iter().position(|context| {
            // A first fragment after the deadline opens a context again. A later fragment is still added (Contiki).
            (context.from, context.tag) == (frame.from, frame.tag)
                && (frame.fragment > 0 || now < context.deadline)
        });
        match found {
            Some(index) => self.add(index, bit),
            None if frame.fragment > 0 => Reassembled::Stray,
            None => {
                // One bit for each fragment, without the one that has just come.
                let missing = (u64::MAX >> (64 - u32::from(frame.fragments))) & !bit;
                let deadline = now + self.timeout;
                self.open(now, Context { from: frame.from, tag: frame.tag, packet, missing, deadline })
            }
        }
    }

    /// Handles a datagram in a single frame. With [`prefer_new`](LowpanConfig::prefer_new), ends all contexts, and
    /// returns the handles of their packets, which the caller releases. Without it, does nothing.
    pub(crate) fn handle_whole(&mut self) -> SmallVec<[u32; 2]> {
        if !self.prefer_new {
            return SmallVec::new();
        }
        self.contexts.drain(..).map(|context| context.packet).collect()
    }

    fn add(&mut self, index: usize, bit: u64) -> Reassembled {
        let context = &mut self.contexts[index];
        if context.missing & bit == 0 {
            return Reassembled::Repeated;
        }
        context.missing &= !bit;
        if context.missing > 0 {
            return Reassembled::Added;
        }
        Reassembled::Whole(self.contexts.swap_remove(index).packet)
    }

    fn open(&mut self, now: Time, context: Context) -> Reassembled {
        if let Some(over) = self.contexts.iter_mut().find(|context| context.deadline <= now) {
            return Reassembled::Opened(Some(std::mem::replace(over, context).packet));
        }
        if self.contexts.len() == self.limit {
            // A second datagram of one sender ends none, and is dropped.
            let other = self.contexts.iter_mut().find(|older| self.prefer_new && older.from != context.from);
            return other.map_or(Reassembled::Full, |older| {
                Reassembled::Opened(Some(std::mem::replace(older, context).packet))
            });
        }
        self.contexts.push(context);
        Reassembled::Opened(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::lowpan::Fragments;
    use crate::mesh::{FrameKind, Leg};
    use Reassembled::{Added, Full, Opened, Repeated, Stray, Whole};

    const TIMEOUT: Span = Span::from_micros(1);

    fn node(contexts: u8) -> FragmentReassembly {
        FragmentReassembly::new(&LowpanConfig {
            max_frame_bytes: 127,
            hop_limit: 64,
            reassembly_contexts: contexts,
            reassembly_timeout: TIMEOUT,
            prefer_new: false,
        })
    }

    fn fragment(from: u32, tag: u16, fragment: u8, fragments: u8) -> Frame {
        Frame {
            kind: FrameKind::Data,
            from: NodeId(from),
            to: Some(NodeId(0)),
            sequence: 0,
            bytes: 127,
            fragment,
            fragments,
            tag,
            leg: Leg::default(),
        }
    }

    fn at(ns: u64) -> Time {
        Time::from_nanos(ns)
    }

    #[test]
    fn a_datagram_is_complete_with_its_last_fragment_in_any_sequence() {
        let mut node = node(1);
        assert_eq!(node.handle(at(0), &fragment(1, 5, 0, 4), 70), Opened(None));
        assert_eq!(node.handle(at(1), &fragment(1, 5, 3, 4), 70), Added);
        assert_eq!(node.handle(at(2), &fragment(1, 5, 1, 4), 70), Added);
        assert_eq!(node.handle(at(3), &fragment(1, 5, 2, 4), 70), Whole(70));
        assert_eq!(node.handle(at(4), &fragment(1, 5, 2, 4), 70), Stray);
    }

    #[test]
    fn reassembly_distinguishes_the_largest_possible_number_of_fragments() {
        let mut node = node(1);
        let last = Fragments::MAX - 1;
        assert_eq!(node.handle(at(0), &fragment(1, 5, 0, Fragments::MAX), 70), Opened(None));
        for index in 1..last {
            assert_eq!(node.handle(at(0), &fragment(1, 5, index, Fragments::MAX), 70), Added);
        }
        assert_eq!(node.handle(at(0), &fragment(1, 5, last, Fragments::MAX), 70), Whole(70));
    }

    #[test]
    fn only_a_first_fragment_opens_a_reassembly_context() {
        let mut node = node(2);
        assert_eq!(node.handle(at(0), &fragment(1, 5, 1, 2), 70), Stray);
        assert_eq!(node.handle(at(0), &fragment(1, 5, 0, 2), 70), Opened(None));
        assert_eq!(node.handle(at(0), &fragment(2, 5, 1, 2), 71), Stray);
        assert_eq!(node.handle(at(0), &fragment(1, 6, 1, 2), 72), Stray);
        assert_eq!(node.handle(at(0), &fragment(1, 5, 1, 2), 70), Whole(70));
    }

    #[test]
    fn a_repeated_fragment_changes_nothing() {
        let mut node = node(2);
        assert_eq!(node.handle(at(0), &fragment(1, 5, 0, 3), 70), Opened(None));
        assert_eq!(node.handle(at(0), &fragment(1, 5, 0, 3), 70), Repeated);
        assert_eq!(node.handle(at(0), &fragment(1, 5, 2, 3), 70), Added);
        assert_eq!(node.handle(at(0), &fragment(1, 5, 2, 3), 70), Repeated);
        assert_eq!(node.handle(at(0), &fragment(1, 5, 1, 3), 70), Whole(70));
    }

    #[test]
    fn a_datagram_is_dropped_if_all_reassembly_contexts_are_in_use() {
        let mut node = node(2);
        assert_eq!(node.handle(at(0), &fragment(1, 5, 0, 2), 70), Opened(None));
        assert_eq!(node.handle(at(0), &fragment(2, 5, 0, 2), 71), Opened(None));
        assert_eq!(node.handle(at(0), &fragment(3, 5, 0, 2), 72), Full);
        assert_eq!(node.handle(at(0), &fragment(3, 5, 1, 2), 72), Stray);
        assert_eq!(node.handle(at(0), &fragment(2, 5, 1, 2), 71), Whole(71));
        assert_eq!(node.handle(at(0), &fragment(3, 6, 0, 2), 73), Opened(None));
    }

    #[test]
    fn an_expired_reassembly_context_accepts_late_fragments_until_it_is_reused() {
        let over = at(TIMEOUT.as_nanos());
        let mut node = node(1);
        assert_eq!(node.handle(at(0), &fragment(1, 5, 0, 3), 70), Opened(None));
        assert_eq!(node.handle(at(TIMEOUT.as_nanos() - 1), &fragment(1, 5, 1, 3), 70), Added);
        assert_eq!(node.handle(at(TIMEOUT.as_nanos() - 1), &fragment(2, 5, 0, 2), 71), Full);
        assert_eq!(node.handle(over, &fragment(1, 5, 2, 3), 70), Whole(70));
        assert_eq!(node.handle(at(0), &fragment(1, 6, 0, 2), 72), Opened(None));
        assert_eq!(node.handle(over, &fragment(2, 6, 0, 2), 73), Opened(Some(72)));
        assert_eq!(node.handle(over, &fragment(1, 6, 1, 2), 72), Stray);
        assert_eq!(node.handle(over, &fragment(2, 6, 1, 2), 73), Whole(73));
    }

    #[test]
    fn a_newer_datagram_replaces_an_incomplete_older_one_if_so_configured() {
        let mut node = FragmentReassembly::new(&LowpanConfig::CONTIKI_2_7);
        assert_eq!(node.handle(at(0), &fragment(1, 5, 0, 2), 70), Opened(None));
        assert_eq!(node.handle(at(1), &fragment(2, 5, 0, 2), 71), Opened(Some(70)), "of another sender");
        assert_eq!(node.handle(at(2), &fragment(1, 5, 1, 2), 70), Stray);
        assert_eq!(node.handle(at(3), &fragment(2, 6, 0, 2), 72), Full, "of the same sender");
        assert_eq!(node.handle_whole().to_vec(), [71], "a datagram of one frame");
        assert_eq!(node.handle(at(4), &fragment(2, 5, 1, 2), 71), Stray);
        let mut node = self::node(2);
        assert_eq!(node.handle(at(0), &fragment(1, 5, 0, 2), 70), Opened(None));
        assert!(node.handle_whole().is_empty(), "unless they are preferred");
    }

    #[test]
    fn a_node_without_reassembly_contexts_reassembles_nothing() {
        assert_eq!(node(0).handle(at(0), &fragment(1, 5, 0, 2), 70), Full);
    }

    #[test]
    fn reassembly_allocates_no_memory_after_the_start() {
        let mut node = node(3);
        let capacity = node.contexts.capacity();
        for sender in 0..50 {
            node.handle(at(u64::from(sender) * 100), &fragment(sender, 0, 0, 2), sender);
        }
        assert_eq!((node.contexts.len(), node.contexts.capacity()), (3, capacity));
    }
}
