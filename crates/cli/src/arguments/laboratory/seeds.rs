//! Seeds of random generators.

use std::fmt;

/// Consecutive seeds, the first and the last included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seeds {
    pub(crate) first: u64,
    pub(crate) count: u32,
}

impl Seeds {
    /// Returns the seeds 1 to `count`.
    pub(crate) const fn up_to(count: u32) -> Self {
        Self { first: 1, count }
    }
}

impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `count` is at least 1, and `first` comes from a u32, so neither step overflows.
        write!(f, "{}-{}", self.first, self.first + u64::from(self.count) - 1)
    }
}

/// Reads a number of seeds, which then start at 1, or a range FIRST-LAST.
pub(crate) fn seeds(text: &str) -> Result<Seeds, String> {
    let (first, last) = text.split_once('-').unwrap_or(("1", text));
    // A negative number has an empty first part, which fails here, too.
    let number = |text: &str| text.trim().parse::<u32>().ok().filter(|&seed| seed > 0);
    let range = number(first).zip(number(last)).filter(|(first, last)| first <= last);
    let count = range.map(|(first, last)| (first, last - first + 1)).filter(|(_, count)| *count <= 100_000);
    let (first, count) = count.ok_or("expected a number from 1 to 100000, or a range such as 21-40")?;
    Ok(Seeds { first: first.into(), count })
}

/// Reads the seed of a random generator.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected a whole number from 0 to {}", u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_number_or_a_range() {
        assert_eq!(seeds("20"), Ok(Seeds { first: 1, count: 20 }));
        assert_eq!(seeds("21-40"), Ok(Seeds { first: 21, count: 20 }));
        assert_eq!(seeds("7-7"), Ok(Seeds { first: 7, count: 1 }));
        assert_eq!(Seeds { first: 21, count: 20 }.to_string(), "21-40");
        for text in ["0", "", "-1", "40-21", "0-3", "1-200000", "1-2-3", "x", "100001"] {
            assert!(seeds(text).is_err(), "{text}");
        }
    }
}
