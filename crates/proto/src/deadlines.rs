//! A heap of deadlines that can be moved: one for each key, no stale entries.

use alloc::boxed::Box;
use alloc::vec::Vec;

use coapace_control::Instant;
use smallvec::SmallVec;

/// For each of a dense range of keys at most one deadline.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    /// A binary heap by (deadline, key).
    heap: SmallVec<[(Instant, u32); 1]>,
    /// For each key its place in the heap plus one, 0 if it has no deadline; once there are more than [`SCANNED`].
    /// Behind one pointer: most endpoints never have so many.
    #[allow(clippy::box_collection)]
    places: Option<Box<Vec<u32>>>,
}

/// So few deadlines are found faster by looking at each.
const SCANNED: usize = 4;

impl Deadlines {
    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.first().map(|&(at, _)| at)
    }

    /// Sets or moves the deadline of `key`.
    pub(crate) fn set(&mut self, key: u32, at: Instant) {
        if let Some(place) = self.place(key) {
            self.heap[place].0 = at;
            self.settle(place);
        } else {
            self.heap.push((at, key));
            self.note_last();
            self.settle(self.heap.len() - 1);
        }
    }

    /// Where the deadline of `key` is in the heap.
    fn place(&self, key: u32) -> Option<usize> {
        match &self.places {
            None => self.heap.iter().position(|&(_, other)| other == key),
            Some(places) => (*places.get(key as usize)? as usize).checked_sub(1),
        }
    }

    /// A deadline was added at the end of the heap.
    fn note_last(&mut self) {
        if self.places.is_none() && self.heap.len() > SCANNED {
            self.places = Some(Box::default());
            (0..self.heap.len() - 1).for_each(|place| self.note(place));
        }
        self.note(self.heap.len() - 1);
    }

    /// Notes which deadline lies at `place` now.
    fn note(&mut self, place: usize) {
        let Some(places) = &mut self.places else { return };
        let key = self.heap[place].1 as usize;
        if key >= places.len() {
            places.resize(key + 1, 0);
        }
        places[key] = place as u32 + 1;
    }

    /// Removes the deadline of `key`, if it has one.
    pub(crate) fn clear(&mut self, key: u32) {
        let Some(place) = self.place(key) else { return };
        if let Some(places) = &mut self.places {
            places[key as usize] = 0;
        }
        self.heap.swap_remove(place);
        if place < self.heap.len() {
            self.note(place);
            self.settle(place);
        }
    }

    /// Takes a key whose deadline has come.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<u32> {
        let &(at, key) = self.heap.first()?;
        (at <= now).then(|| {
            self.clear(key);
            key
        })
    }

    /// Restores the order around `place`.
    fn settle(&mut self, mut place: usize) {
        while place > 0 && self.heap[place] < self.heap[(place - 1) / 2] {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
        loop {
            let mut least = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if child < self.heap.len() && self.heap[child] < self.heap[least] {
                    least = child;
                }
            }
            if least == place {
                return;
            }
            self.swap(place, least);
            place = least;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.note(a);
        self.note(b);
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn deadlines_leave_in_order_whatever_was_set_moved_and_cleared(
            steps in proptest::collection::vec((0u32..20, proptest::option::of(0u64..1000)), 1..200),
        ) {
            let mut deadlines = Deadlines::default();
            let mut model = std::collections::BTreeMap::new();
            for (key, at) in steps {
                if let Some(at) = at {
                    deadlines.set(key, Instant::from_micros(at));
                    model.insert(key, at);
                } else {
                    deadlines.clear(key);
                    model.remove(&key);
                }
                prop_assert_eq!(deadlines.next().map(Instant::as_micros), model.values().min().copied());
            }
            let mut left: Vec<_> = model.into_iter().map(|(key, at)| (at, key)).collect();
            left.sort_unstable();
            for (at, key) in left {
                prop_assert_eq!(deadlines.pop_due(Instant::from_micros(at)), Some(key));
            }
            prop_assert_eq!(deadlines.pop_due(Instant::MAX), None);
        }
    }
}
