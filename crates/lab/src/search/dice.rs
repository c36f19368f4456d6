//! Random numbers for one scenario.

use coapace_sim::{Luck, Stream};

/// A source of random numbers for one random scenario. The name of a quantity determines its random number.
#[derive(Debug)]
pub(super) struct Dice {
    stream: Stream,
    place: u32,
}

impl Dice {
    /// Makes the dice of scenario number `place` of its `kind`, in the set with this `seed`.
    pub(super) fn new(seed: u64, kind: &str, place: u32) -> Self {
        Self { stream: Luck::new(seed).stream(kind), place }
    }

    /// Returns the number of the scenario.
    pub(super) fn place(&self) -> u32 {
        self.place
    }

    /// Returns a uniform random number in [0, 1).
    pub(super) fn unit(&self, name: &str) -> f64 {
        // Keyed by the name, so that a new quantity leaves the draws of the others as they are.
        self.stream.unit(self.place.into(), coapace_sim::fnv1a(name.bytes()), 0)
    }

    /// Returns true with this probability.
    pub(super) fn chance(&self, name: &str, probability: f64) -> bool {
        self.unit(name) < probability
    }

    /// Returns a uniform random number from `low` to `high`.
    pub(super) fn between(&self, name: &str, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit(name)
    }

    /// Returns a random number from `low` to `high` whose logarithm is uniform.
    pub(super) fn log(&self, name: &str, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.unit(name))
    }

    /// Returns one of the `values` at random, with equal probabilities.
    pub(super) fn one_of<T: Copy>(&self, name: &str, values: &[T]) -> T {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "below the number of values"
        )]
        values[(self.unit(name) * values.len() as f64) as usize]
    }
}
