//! Slots that are reused, named by index and generation.

use smallvec::SmallVec;

use crate::NONE;

/// A bounded pool of slots. The first lies in the pool itself: a client has one exchange with one peer, and a hundred
/// thousand of them are held in memory, and in caches, by what they need and not by what they might.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: SmallVec<[T; 1]>,
    /// The slot that was freed last; each leads to the one freed before.
    free: u32,
    in_use: u32,
}

/// What can lie in a [`Slab`]: while it is free, it has a place for the next that is.
pub(crate) trait Slot {
    fn next_free(&mut self) -> &mut u32;
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { slots: SmallVec::new(), free: NONE, in_use: 0 }
    }
}

impl<T: Slot> Slab<T> {
    /// A slot to use: one that was freed, or a new one made by `fresh` while there are fewer than `bound`.
    pub(crate) fn take(&mut self, bound: u32, fresh: impl FnOnce() -> T) -> Option<u32> {
        let index = self.free;
        if let Some(slot) = self.slots.get_mut(index as usize) {
            self.free = *slot.next_free();
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

    /// Gives a slot back. Its contents stay, so that what they have allocated is used again.
    pub(crate) fn give_back(&mut self, index: u32) {
        *self.slots[index as usize].next_free() = self.free;
        self.free = index;
        self.in_use -= 1;
    }

    /// Slots in use.
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
