//! The mechanisms of the library: first the mechanisms for single exchanges, then the mechanisms for bodies.

use coapace_control::{BULK, Entry, REGISTRY};

/// The number of mechanisms.
pub(crate) const COUNT: usize = REGISTRY.len() + BULK.len();

/// Returns the mechanism at this place.
pub(crate) const fn entry(place: usize) -> &'static Entry {
    if place < REGISTRY.len() { &REGISTRY[place] } else { &BULK[place - REGISTRY.len()] }
}

/// Returns all mechanisms in their order.
#[cfg(test)]
pub(crate) fn entries() -> impl Iterator<Item = &'static Entry> + Clone {
    (0..COUNT).map(entry)
}
