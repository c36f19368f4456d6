//! Slots that are reused, named by index and generation.

use alloc::vec::Vec;

/// `Vec::push`, but what is full doubles from one: a client of one destination has one of everything, and `Vec`'s own
/// first step of four would make it three times as large.
pub(crate) fn push<T>(vec: &mut Vec<T>, value: T) {
    if vec.len() == vec.capacity() {
        vec.reserve_exact(vec.len().max(1));
    }
    vec.push(value);
}

/// A bounded pool of slots.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<T>,
    /// Slots that are free, last freed first.
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// A slot to use: one that was freed, or a new one made by `fresh` while there are fewer than `bound`.
    pub(crate) fn take(&mut self, bound: u32, fresh: impl FnOnce() -> T) -> Option<u32> {
        if let Some(index) = self.free.pop() {
            return Some(index);
        }
        let index = self.slots.len() as u32;
        (index < bound).then(|| {
            push(&mut self.slots, fresh());
            index
        })
    }

    /// Gives a slot back. Its contents stay, so that what they have allocated is used again.
    pub(crate) fn give_back(&mut self, index: u32) {
        push(&mut self.free, index);
    }

    /// Slots in use.
    pub(crate) fn in_use(&self) -> usize {
        self.slots.len() - self.free.len()
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
