//! Reusable slots, identified by their index.

use smallvec::SmallVec;

use crate::NONE;

/// A bounded pool of slots.
///
/// The first slot is inside the pool itself. Most clients have one exchange with one peer, and a simulation holds a hundred
/// thousand of such clients in memory.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: SmallVec<[T; 1]>,
    /// The slot that was freed last. Its link leads to the slot freed before it.
    free: u32,
    in_use: u32,
}

/// The content of a slot, which stores the index of the next slot of a list.
pub(crate) trait Linked {
    /// Returns the next slot of the list that this one is in; `NONE` if it is the last.
    fn next(&self) -> u32;

    fn set_next(&mut self, next: u32);
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { slots: SmallVec::new(), free: NONE, in_use: 0 }
    }
}

impl<T: Linked> Slab<T> {
    /// Returns the index of a slot to use: a free one, or a new one made by `fresh`. Returns `None` if `bound` slots
    /// are in use.
    pub(crate) fn take(&mut self, bound: u32, fresh: impl FnOnce() -> T) -> Option<u32> {
        let index = self.free;
        if let Some(slot) = self.slots.get(index as usize) {
            self.free = slot.next();
            self.in_use += 1;
            return Some(index);
        }
        let index = self.slots.len() as u32;
        (index < bound).then(|| {
            self.slots.push(fresh());
            self.in_use += 1;
            index
        })
    }

    /// Frees a slot. Its content stays, so that its allocations are used again.
    pub(crate) fn give_back(&mut self, index: u32) {
        // A slot that is in no list lends its link to the list of free ones.
        self.slots[index as usize].set_next(self.free);
        self.free = index;
        self.in_use -= 1;
    }

    /// Returns how many slots are in use.
    pub(crate) fn in_use(&self) -> usize {
        self.in_use as usize
    }

    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.slots.get(index as usize)
    }
}

impl<T> core::ops::Index<u32> for Slab<T> {
    type Output = T;
    fn index(&self, index: u32) -> &T {
        &self.slots[index as usize]
    }
}

impl<T> core::ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.slots[index as usize]
    }
}
