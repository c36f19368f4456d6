//! The mechanisms of the library in the order of their numbers.

use coapace_control::{BULK, Entry, REGISTRY};

include!("numbers.rs");

/// The number of mechanisms.
pub(crate) const COUNT: usize = NUMBERED.len();

const _: () = assert!(COUNT == REGISTRY.len() + BULK.len());

/// Returns the mechanism of this number.
pub(crate) const fn entry(number: usize) -> &'static Entry {
    let mut place = 0;
    // Only loops can compare in a constant.
    while place < COUNT {
        let entry = if place < REGISTRY.len() { &REGISTRY[place] } else { &BULK[place - REGISTRY.len()] };
        if are_equal(entry.name.as_bytes(), NUMBERED[number].as_bytes()) {
            return entry;
        }
        place += 1;
    }
    // This is evaluated when the library is compiled, so it links no code for a panic.
    panic!("every number has a mechanism")
}

const fn are_equal(one: &[u8], other: &[u8]) -> bool {
    let mut place = 0;
    while place < one.len() && place < other.len() && one[place] == other[place] {
        place += 1;
    }
    place == one.len() && place == other.len()
}

/// Returns all mechanisms in the order of their numbers.
#[cfg(test)]
pub(crate) fn entries() -> impl Iterator<Item = &'static Entry> + Clone {
    (0..COUNT).map(entry)
}
