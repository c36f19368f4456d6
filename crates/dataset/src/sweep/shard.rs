//! Shards: how several processes share the runs of a sweep.

use std::fmt;
use std::str::FromStr;

use super::Key;

/// The maximum number of shards.
const MOST: u32 = 10_000;

/// A share of the runs of a plan, written as `2/8`: the second of eight. Every run belongs to exactly one shard, determined by
/// its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The number of this shard, from 1.
    pub place: u32,
    /// The number of all shards.
    pub of: u32,
}

impl Shard {
    /// Returns whether the run with this key belongs to the shard.
    pub fn has(self, key: Key) -> bool {
        key.remainder(self.of) + 1 == self.place
    }

    /// Returns the shard in the form for file names, such as `2-of-8`.
    pub(super) fn word(self) -> String {
        format!("{}-of-{}", self.place, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let numbers =
            text.split_once('/').and_then(|(place, of)| Some((place.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((place, of)) if (1..=of).contains(&place) && of <= MOST => Ok(Self { place, of }),
            _ => {
                Err(format!("expected I/N, such as 2/8 for the second of eight shards; N is at most {MOST}"))
            }
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.place, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_of_a_sweep_is_in_one_shard_and_shards_have_similar_sizes() {
        let mut counts = [0; 3];
        for seed in 0..3_000 {
            let key = Key::of("00", "default", seed);
            let of: Vec<_> = (1..=3).filter(|&place| Shard { place, of: 3 }.has(key)).collect();
            assert_eq!(of.len(), 1);
            counts[of[0] as usize - 1] += 1;
        }
        assert!(counts.iter().all(|count| (900..1_100).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_shard_is_written_as_i_of_n() {
        assert_eq!("2/8".parse(), Ok(Shard { place: 2, of: 8 }));
        for text in ["", "2", "0/2", "3/2", "1/0", "a/b", "1/2/3", "1/10001"] {
            assert!(text.parse::<Shard>().unwrap_err().contains("such as 2/8"), "{text}");
        }
    }
}
