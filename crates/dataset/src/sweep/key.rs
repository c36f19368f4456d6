//! The identity of a run in a dataset.

use std::fmt;
use std::hash::Hasher;
use std::str::FromStr;

use siphasher::sip128::{Hasher128, SipHasher13};

use crate::VERSION;

/// A hash of everything that determines a run, written as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(u128);

impl Key {
    /// Returns the key of a run. It is a hash of this program's version, the hash of the scenario, the text of the
    /// mechanism, and the seed.
    pub fn of(scenario_hash: &str, mechanism: &str, seed: u64) -> Self {
        let mut hasher = SipHasher13::new();
        for part in [VERSION, scenario_hash, mechanism] {
            hasher.write(part.as_bytes());
            // No text has this byte, so the parts cannot run into each other.
            hasher.write(&[0xff]);
        }
        hasher.write(&seed.to_le_bytes());
        Self(hasher.finish128().as_u128())
    }

    /// Returns one hash of several keys in this sequence.
    pub(super) fn combine(keys: impl IntoIterator<Item = Self>) -> Self {
        let mut hasher = SipHasher13::new();
        keys.into_iter().for_each(|key| hasher.write(&key.0.to_le_bytes()));
        Self(hasher.finish128().as_u128())
    }

    /// Returns the remainder of the key divided by `count`, by which runs are assigned to shards.
    pub(super) fn remainder(self, count: u32) -> u32 {
        // The fields of `Shard` are public, so the count may be 0. The remainder of a division by a `u32` fits into one.
        u32::try_from(self.0 % u128::from(count.max(1))).unwrap_or_default()
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for Key {
    type Err = std::num::ParseIntError;
    fn from_str(digits: &str) -> Result<Self, Self::Err> {
        u128::from_str_radix(digits, 16).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_run_depends_on_everything_that_determines_the_run() {
        let key = Key::of("00", "cocoa", 1);
        assert_eq!(key, Key::of("00", "cocoa", 1));
        for other in [Key::of("01", "cocoa", 1), Key::of("00", "cocoa2", 1), Key::of("00", "cocoa", 2)] {
            assert_ne!(key, other);
        }
        assert_ne!(Key::of("00", "1cocoa", 1), Key::of("001", "cocoa", 1));
        assert_eq!(key.to_string().parse(), Ok(key));
        assert_eq!(key.to_string().len(), 32);
    }
}
