//! Hashes of scenarios and traces.

use std::fmt;
use std::str::FromStr;

use coapace_sim::fnv1a;
use serde::{Deserialize, Serialize};

/// A 64-bit hash, written as 16 hexadecimal digits everywhere, because many readers of JSON lose the low bits of a
/// 64-bit number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Hash64(pub u64);

impl Hash64 {
    /// Returns the FNV-1a hash of bytes. It distinguishes contents that differ by accident; it does not protect against
    /// forgery.
    pub fn of(bytes: impl IntoIterator<Item = u8>) -> Self {
        Self(fnv1a(bytes))
    }

    /// Returns one hash of a sequence of numbers: the hash of their little-endian bytes.
    pub fn combine(numbers: impl IntoIterator<Item = u64>) -> Self {
        Self::of(numbers.into_iter().flat_map(u64::to_le_bytes))
    }
}

impl fmt::Display for Hash64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for Hash64 {
    type Err = std::num::ParseIntError;
    fn from_str(digits: &str) -> Result<Self, Self::Err> {
        u64::from_str_radix(digits, 16).map(Self)
    }
}

impl TryFrom<String> for Hash64 {
    type Error = std::num::ParseIntError;
    fn try_from(digits: String) -> Result<Self, Self::Error> {
        digits.parse()
    }
}

impl From<Hash64> for String {
    fn from(hash: Hash64) -> Self {
        hash.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_hash_is_sixteen_digits_and_parses_back() {
        assert_eq!(Hash64(0xbeef).to_string(), "000000000000beef");
        assert_eq!("000000000000beef".parse(), Ok(Hash64(0xbeef)));
        assert!("no hash".parse::<Hash64>().is_err());
    }

    #[test]
    fn a_combined_hash_depends_on_the_sequence_of_hashes() {
        assert_ne!(Hash64::combine([1, 2]), Hash64::combine([2, 1]));
        // The FNV-1a hash of eight zero bytes.
        assert_eq!(Hash64::combine([0]).to_string(), "a8c7f832281a39c5");
    }
}
