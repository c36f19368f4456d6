//! The queue of events, ordered by (time, serial number).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Time;

/// Events in the order of their time. Events at the same time are in the order in which they were pushed.
///
/// The queue is a hierarchical timing wheel. Time is cut into ticks of 1.05 ms. Only the events of the present tick are
/// sorted. The events of later ticks are unsorted in slots. A level has sixty-four slots, and a slot is as long as the
/// whole level below it. When time reaches a slot, its events move down. An event therefore costs one sequential write
/// for each level that it passes through, however many other events wait. `benches/events.rs` compares this queue with
/// a heap.
///
/// An entry is a number of 128 bits: 56 bits of time, 40 of serial number, 32 that the caller chooses. 56 bits of
/// nanoseconds are 834 days. An event beyond that never happens.
#[derive(Debug)]
pub struct Events {
    /// The events that the slot of `tick` held when time reached it. The last element is the next event.
    run: Vec<u128>,
    /// The events that were pushed after time reached `tick`, and are due in `tick` or before.
    late: BinaryHeap<Reverse<u128>>,
    /// The events that are due after `tick`. The level of an event is the highest digit, to the base of 64, in which its tick
    /// differs from `tick`.
    levels: [Level; LEVELS],
    tick: u64,
    len: usize,
    serial: u64,
}

#[derive(Debug)]
struct Level {
    /// Bit n is set if slot n holds an event.
    occupied: u64,
    slots: Box<[Vec<u128>; 64]>,
}

const TIME_BITS: u32 = 56;
const TICK_BITS: u32 = 20;
const DIGIT_BITS: u32 = 6;
const LEVELS: usize = ((TIME_BITS - TICK_BITS) / DIGIT_BITS) as usize;
const SERIALS: u64 = (1 << 40) - 1;
/// The largest capacity, in events, that an empty slot keeps. A larger buffer is freed.
const KEPT_CAPACITY: usize = 128;
/// The largest capacity, in events, that the empty heap of late events keeps. A larger buffer is freed.
const LATE_CAPACITY: usize = 4096;

impl Events {
    /// The end of time. No event at this time or after it ever happens.
    pub const HORIZON: Time = Time::from_nanos((1 << TIME_BITS) - 1);

    /// Returns an empty queue.
    pub fn new() -> Self {
        let level = |_| Level { occupied: 0, slots: Box::new([const { Vec::new() }; 64]) };
        Self {
            run: Vec::new(),
            late: BinaryHeap::new(),
            levels: std::array::from_fn(level),
            tick: 0,
            len: 0,
            serial: 0,
        }
    }

    /// Returns the number of events.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no events.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an event. Ignores an event at [`HORIZON`](Self::HORIZON) or after it.
    pub fn push(&mut self, time: Time, what: u32) {
        if time >= Self::HORIZON {
            return;
        }
        // Entries are compared as numbers: by time, then by serial number, so equal times keep the order of their pushes.
        let entry =
            u128::from(time.as_nanos()) << 72 | u128::from(self.serial & SERIALS) << 32 | u128::from(what);
        self.serial += 1;
        self.len += 1;
        self.place(entry);
    }

    /// Returns the time of the next event; `None` if the queue is empty.
    pub fn next_time(&mut self) -> Option<Time> {
        // A slot is sorted only when its time has come, so time may have to move on first.
        while self.run.is_empty() && self.late.is_empty() && self.len > 0 {
            self.advance();
        }
        let late = self.late.peek().map(|&Reverse(entry)| entry);
        self.run.last().copied().into_iter().chain(late).min().map(time_of)
    }

    /// Removes and returns the next event. Returns `None` if the queue is empty or the next event is after `until`.
    pub fn pop(&mut self, until: Time) -> Option<(Time, u32)> {
        loop {
            let (entry, is_late) = match (self.run.last(), self.late.peek()) {
                (Some(&first), Some(&Reverse(late))) => (first.min(late), late < first),
                (Some(&first), None) => (first, false),
                (None, Some(&Reverse(late))) => (late, true),
                (None, None) if self.len == 0 => return None,
                (None, None) => {
                    self.advance();
                    continue;
                }
            };
            if time_of(entry) > until {
                return None;
            }
            if is_late {
                self.late.pop();
            } else {
                self.run.pop();
            }
            self.len -= 1;
            return Some((time_of(entry), entry as u32));
        }
    }

    /// Removes the events for which `keep` returns false.
    pub fn retain(&mut self, mut keep: impl FnMut(Time, u32) -> bool) {
        let mut keep = |entry: u128| keep(time_of(entry), entry as u32);
        self.run.retain(|&entry| keep(entry));
        self.late.retain(|&Reverse(entry)| keep(entry));
        self.len = self.run.len() + self.late.len();
        for level in &mut self.levels {
            for (place, slot) in level.slots.iter_mut().enumerate() {
                // An empty slot must not stay marked: `advance` would stop at it.
                slot.retain(|&entry| keep(entry));
                self.len += slot.len();
                if slot.is_empty() {
                    level.occupied &= !(1 << place);
                }
            }
        }
    }

    fn place(&mut self, entry: u128) {
        let tick = tick_of(entry);
        if tick <= self.tick {
            self.late.push(Reverse(entry));
        } else {
            self.put_off(entry, tick);
        }
    }

    /// Puts an event that is due after the present tick into its slot.
    fn put_off(&mut self, entry: u128, tick: u64) {
        // The highest digit that differs from the present tick is the level at which the event waits.
        let digit = (tick ^ self.tick).ilog2() / DIGIT_BITS;
        let slot = (tick >> (digit * DIGIT_BITS)) as usize % 64;
        let level = &mut self.levels[digit as usize];
        level.occupied |= 1 << slot;
        level.slots[slot].push(entry);
    }

    /// Advances time to the first slot that holds an event, and moves the events of that slot down. The present tick
    /// must have no event left.
    fn advance(&mut self) {
        let Some(digit) = self.levels.iter().position(|level| level.occupied != 0) else { return };
        // When all clients start at once, the heap holds an event of each, and later hardly any.
        if self.late.capacity() > LATE_CAPACITY {
            self.late = BinaryHeap::new();
        }
        let level = &mut self.levels[digit];
        // Slots in the past are empty, so the lowest occupied one is the next.
        let slot = level.occupied.trailing_zeros();
        level.occupied &= !(1 << slot);
        let entries = &mut level.slots[slot as usize];
        let shift = digit as u32 * DIGIT_BITS;
        // The digits below the slot's own become 0: time is at the beginning of the slot.
        self.tick = ((self.tick >> shift) & !63 | u64::from(slot)) << shift;
        if digit == 0 {
            std::mem::swap(&mut self.run, entries);
        } else {
            let mut entries = std::mem::take(entries);
            for &entry in &entries {
                let tick = tick_of(entry);
                if tick == self.tick {
                    self.run.push(entry);
                } else {
                    self.put_off(entry, tick);
                }
            }
            // The slot keeps its memory for the next round, unless a burst has made it large.
            if entries.capacity() <= KEPT_CAPACITY {
                entries.clear();
                self.levels[digit].slots[slot as usize] = entries;
            }
        }
        // The next event is the last, so that it is taken without moving the others.
        self.run.sort_unstable_by(|a, b| b.cmp(a));
    }
}

impl Default for Events {
    fn default() -> Self {
        Self::new()
    }
}

const fn tick_of(entry: u128) -> u64 {
    (entry >> (72 + TICK_BITS)) as u64
}

const fn time_of(entry: u128) -> Time {
    Time::from_nanos((entry >> 72) as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(ns: u64) -> Time {
        Time::from_nanos(ns)
    }

    #[test]
    fn events_at_the_same_time_are_popped_in_the_sequence_they_were_pushed() {
        let mut events = Events::new();
        for what in 0..1000 {
            events.push(at(u64::from(what % 3)), what);
        }
        let mut popped = Vec::new();
        while let Some(event) = events.pop(Time::MAX) {
            popped.push(event);
        }
        let mut expected: Vec<_> = (0..1000).map(|what| (at(u64::from(what % 3)), what)).collect();
        expected.sort_by_key(|event| event.0);
        assert_eq!(popped, expected);
    }

    #[test]
    fn no_event_after_the_given_time_is_popped() {
        let mut events = Events::new();
        events.push(at(10), 1);
        assert_eq!(events.pop(at(9)), None);
        assert_eq!(events.pop(at(10)), Some((at(10), 1)));
        assert_eq!(events.pop(Time::MAX), None);
    }

    #[test]
    fn events_beyond_the_horizon_never_happen() {
        let mut events = Events::new();
        events.push(Time::MAX, 1);
        events.push(Events::HORIZON, 2);
        assert!(events.is_empty());
    }

    proptest! {
        #[test]
        fn events_are_sorted_by_time_after_any_pushes_pops_and_removals(
            steps in proptest::collection::vec((0u8..8, 0u64..5_000_000), 0..2000),
        ) {
            let mut events = Events::new();
            let mut model: Vec<(u64, u32)> = Vec::new();
            let mut now = 0;
            for (what, (verb, ahead)) in steps.into_iter().enumerate() {
                let what = what as u32;
                match verb {
                    0..5 => {
                        let time = now + if verb == 4 { ahead << 20 } else { ahead >> (6 * verb) };
                        events.push(at(time), what);
                        model.push((time, what));
                    }
                    5 if ahead % 16 == 0 => {
                        events.retain(|_, what| what % 3 != 0);
                        model.retain(|(_, what)| what % 3 != 0);
                    }
                    _ => {
                        let next = model.iter().copied().min();
                        if verb == 6 {
                            prop_assert_eq!(events.next_time(), next.map(|(time, _)| at(time)));
                        }
                        model.retain(|&event| Some(event) != next);
                        let popped = events.pop(Time::MAX).map(|(time, what)| (time.as_nanos(), what));
                        prop_assert_eq!(popped, next);
                        now = next.map_or(now, |(time, _)| time);
                    }
                }
                prop_assert_eq!(events.len(), model.len());
            }
        }
    }
}
