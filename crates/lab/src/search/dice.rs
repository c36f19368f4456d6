//! Random numbers of one scenario.

use coapace_sim::{Luck, Stream};

/// The random numbers of a scenario that is drawn, by the name of the quantity.
#[derive(Debug)]
pub(super) struct Dice {
    stream: Stream,
    place: u32,
}

impl Dice {
    /// Makes the dice of the scenario at `place` among the scenarios of a `kind` in the set of `seed`.
    pub(super) fn new(seed: u64, kind: &str, place: u32) -> Self {
        Self { stream: Luck::new(seed).stream(kind), place }
    }

    /// Returns the place of the scenario.
    pub(super) fn place(&self) -> u32 {
        self.place
    }

    /// Returns a number from 0 up to 1, uniform.
    pub(super) fn unit(&self, name: &str) -> f64 {
        self.stream.unit(self.place.into(), coapace_sim::fnv1a(name.bytes()), 0)
    }

    /// Returns true with this probability.
    pub(super) fn chance(&self, name: &str, probability: f64) -> bool {
        self.unit(name) < probability
    }

    /// Returns a number between two others, uniform.
    pub(super) fn between(&self, name: &str, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit(name)
    }

    /// Returns a number between two others whose logarithm is uniform.
    pub(super) fn log(&self, name: &str, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.unit(name))
    }

    /// Returns one of the `values`, each with equal probability.
    pub(super) fn one_of<T: Copy>(&self, name: &str, values: &[T]) -> T {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "below the number of values"
        )]
        values[(self.unit(name) * values.len() as f64) as usize]
    }
}
