//! The deadlines of an endpoint: a heap with at most one deadline for each timer.

use alloc::boxed::Box;
use alloc::vec::Vec;

use coapace_control::Instant;
use smallvec::SmallVec;

/// The owner of a deadline: an exchange or a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeadlineOwner {
    /// The exchange in this slot: its timeout, or the end of the wait for a response.
    Exchange(u32),
    /// The peer in this slot: the time at which the next waiting exchange may depart.
    Peer(u32),
}

impl DeadlineOwner {
    /// Returns the key of the timer, a number that no other timer has. Slots are numbered from 0, and so are keys.
    const fn key(self) -> u32 {
        match self {
            // Each slot takes memory, so none has a number near 2³¹.
            Self::Exchange(index) => 2 * index,
            Self::Peer(slot) => 2 * slot + 1,
        }
    }

    const fn of_key(key: u32) -> Self {
        if key.is_multiple_of(2) { Self::Exchange(key / 2) } else { Self::Peer(key / 2) }
    }
}

/// The deadlines of all timers, at most one for each.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    /// A binary heap by (deadline, key of the timer).
    heap: SmallVec<[(Instant, u32); 1]>,
    /// The position of each key in the heap plus one; 0 if the timer has no deadline. This table is created for more
    /// than [`SCANNED`] deadlines. Most endpoints never have so many, so it is behind one pointer.
    #[allow(clippy::box_collection)]
    places: Option<Box<Vec<u32>>>,
}

/// The maximum number of deadlines for which a linear search is the fastest way to find one.
const SCANNED: usize = 4;

impl Deadlines {
    /// Returns the earliest deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.first().map(|&(at, _)| at)
    }

    /// Sets or moves the deadline of `timer`.
    pub(crate) fn set(&mut self, timer: DeadlineOwner, at: Instant) {
        let key = timer.key();
        if let Some(place) = self.place(key) {
            self.heap[place].0 = at;
            self.sift(place);
        } else {
            self.heap.push((at, key));
            self.note_last();
            self.sift(self.heap.len() - 1);
        }
    }

    /// Returns where the deadline of `key` is in the heap.
    fn place(&self, key: u32) -> Option<usize> {
        match &self.places {
            None => self.heap.iter().position(|&(_, other)| other == key),
            Some(places) => (*places.get(key as usize)? as usize).checked_sub(1),
        }
    }

    /// Records the position of a deadline that was added at the end of the heap.
    fn note_last(&mut self) {
        if self.places.is_none() && self.heap.len() > SCANNED {
            self.places = Some(Box::default());
            // Until now each search went through the heap, so no place is recorded yet.
            (0..self.heap.len() - 1).for_each(|place| self.note(place));
        }
        self.note(self.heap.len() - 1);
    }

    /// Records the position of the deadline at `place`.
    fn note(&mut self, place: usize) {
        let Some(places) = &mut self.places else { return };
        let key = self.heap[place].1 as usize;
        if key >= places.len() {
            places.resize(key + 1, 0);
        }
        places[key] = place as u32 + 1;
    }

    /// Removes the deadline of `timer`, if it has one.
    pub(crate) fn clear(&mut self, timer: DeadlineOwner) {
        let key = timer.key();
        let Some(place) = self.place(key) else { return };
        if let Some(places) = &mut self.places {
            places[key as usize] = 0;
        }
        self.heap.swap_remove(place);
        // The last deadline of the heap now lies here. It may belong higher or lower.
        if place < self.heap.len() {
            self.note(place);
            self.sift(place);
        }
    }

    /// Removes and returns the timer with the earliest deadline, if that has passed.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<DeadlineOwner> {
        let &(at, key) = self.heap.first()?;
        (at <= now).then(|| {
            let timer = DeadlineOwner::of_key(key);
            self.clear(timer);
            timer
        })
    }

    /// Restores the order of the heap around `place`.
    fn sift(&mut self, mut place: usize) {
        while place > 0 && self.heap[place] < self.heap[(place - 1) / 2] {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
        // A deadline that moved up is earlier than both below its new place, so it does not move down again.
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
        fn deadlines_expire_in_order_of_time_after_any_changes(
            steps in proptest::collection::vec((0u32..20, proptest::option::of(0u64..1000)), 1..200),
        ) {
            let mut deadlines = Deadlines::default();
            let mut model = std::collections::BTreeMap::new();
            for (key, at) in steps {
                let timer = DeadlineOwner::of_key(key);
                prop_assert_eq!(timer.key(), key);
                if let Some(at) = at {
                    deadlines.set(timer, Instant::from_micros(at));
                    model.insert(key, at);
                } else {
                    deadlines.clear(timer);
                    model.remove(&key);
                }
                prop_assert_eq!(deadlines.next().map(Instant::as_micros), model.values().min().copied());
            }
            let mut left: Vec<_> = model.into_iter().map(|(key, at)| (at, key)).collect();
            left.sort_unstable();
            for (at, key) in left {
                prop_assert_eq!(deadlines.pop_due(Instant::from_micros(at)), Some(DeadlineOwner::of_key(key)));
            }
            prop_assert_eq!(deadlines.pop_due(Instant::MAX), None);
        }
    }
}
