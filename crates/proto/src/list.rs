//! Lists of slots of a [`Slab`], linked through the slots themselves.
//!
//! A slot is in one list at a time. An exchange waits in the [`SlotQueue`] of its peer, is active or failed in a [`SlotStack`],
//! or is free.

use crate::NONE;
use crate::slab::{Linked, Slab};

/// A list whose newest slot is first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotStack {
    first: u32,
}

impl SlotStack {
    pub(crate) const EMPTY: Self = Self { first: NONE };

    pub(crate) fn is_empty(self) -> bool {
        self.first == NONE
    }

    /// Returns the slot that was pushed last; `NONE` if the list is empty.
    pub(crate) fn first(self) -> u32 {
        self.first
    }

    pub(crate) fn push<T: Linked>(&mut self, slots: &mut Slab<T>, index: u32) {
        slots[index].set_next(self.first);
        self.first = index;
    }

    /// Removes a slot from the list.
    pub(crate) fn remove<T: Linked>(&mut self, slots: &mut Slab<T>, index: u32) {
        let next = slots[index].next();
        if self.first == index {
            self.first = next;
        } else {
            // The list has no links back, so the slot before is searched. Lists of one peer are short.
            let before = predecessor(slots, self.first, index);
            slots[before].set_next(next);
        }
    }

    /// Returns the slots, the newest first.
    pub(crate) fn iter<T: Linked>(self, slots: &Slab<T>) -> impl Iterator<Item = (u32, &T)> {
        iter(slots, self.first)
    }
}

/// A list whose oldest slot is first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotQueue {
    first: u32,
    last: u32,
}

impl SlotQueue {
    pub(crate) const EMPTY: Self = Self { first: NONE, last: NONE };

    pub(crate) fn is_empty(self) -> bool {
        self.first == NONE
    }

    /// Returns the slot that was pushed first; `NONE` if the queue is empty.
    pub(crate) fn first(self) -> u32 {
        self.first
    }

    pub(crate) fn push<T: Linked>(&mut self, slots: &mut Slab<T>, index: u32) {
        slots[index].set_next(NONE);
        match core::mem::replace(&mut self.last, index) {
            NONE => self.first = index,
            last => slots[last].set_next(index),
        }
    }

    /// Removes a slot from any position of the queue.
    pub(crate) fn remove<T: Linked>(&mut self, slots: &mut Slab<T>, index: u32) {
        let next = slots[index].next();
        let before = if self.first == index {
            self.first = next;
            NONE
        } else {
            let before = predecessor(slots, self.first, index);
            slots[before].set_next(next);
            before
        };
        if next == NONE {
            // `NONE` if it was the only slot.
            self.last = before;
        }
    }

    /// Returns the slots, the oldest first.
    pub(crate) fn iter<T: Linked>(self, slots: &Slab<T>) -> impl Iterator<Item = (u32, &T)> {
        iter(slots, self.first)
    }
}

/// Returns the slot before `index` in the list that begins with the slot `first`, which is not `index` itself.
fn predecessor<T: Linked>(slots: &Slab<T>, first: u32, index: u32) -> u32 {
    let mut before = first;
    while slots[before].next() != index {
        before = slots[before].next();
    }
    before
}

fn iter<T: Linked>(slots: &Slab<T>, first: u32) -> impl Iterator<Item = (u32, &T)> {
    let mut next = first;
    core::iter::from_fn(move || {
        let index = next;
        let slot = slots.get(index)?;
        next = slot.next();
        Some((index, slot))
    })
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug)]
    struct TestNode(u32);

    impl Linked for TestNode {
        fn next(&self) -> u32 {
            self.0
        }

        fn set_next(&mut self, next: u32) {
            self.0 = next;
        }
    }

    proptest! {
        #[test]
        fn linked_lists_keep_their_sequence_under_any_insertions_and_removals(steps in proptest::collection::vec(0u32..8, 1..100)) {
            let mut slots = Slab::default();
            let indices: Vec<_> = (0..16).map(|_| slots.take(16, || TestNode(NONE)).unwrap()).collect();
            let (mut stack, mut queue) = (SlotStack::EMPTY, SlotQueue::EMPTY);
            let (mut stacked, mut queued) = (Vec::new(), Vec::new());
            for step in steps {
                let (index, other) = (indices[step as usize], indices[step as usize + 8]);
                if queued.contains(&index) {
                    queue.remove(&mut slots, index);
                    queued.retain(|&known| known != index);
                    stack.remove(&mut slots, other);
                    stacked.retain(|&known| known != other);
                } else {
                    queue.push(&mut slots, index);
                    queued.push(index);
                    stack.push(&mut slots, other);
                    stacked.insert(0, other);
                }
                prop_assert!(queue.iter(&slots).map(|(index, _)| index).eq(queued.iter().copied()));
                prop_assert!(stack.iter(&slots).map(|(index, _)| index).eq(stacked.iter().copied()));
                prop_assert_eq!((queue.is_empty(), stack.is_empty()), (queued.is_empty(), stacked.is_empty()));
            }
        }
    }
}
