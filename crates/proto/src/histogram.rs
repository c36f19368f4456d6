//! A histogram of durations.

use coapace_control::Duration;

/// The upper bounds of the buckets in milliseconds. They reach from a round trip on loopback to beyond
/// MAX_TRANSMIT_WAIT, and are denser around ACK_TIMEOUT (RFC 7252 §4.8).
const BOUNDS_MS: [u64; 19] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 3_000, 5_000, 10_000, 20_000, 30_000, 60_000, 90_000,
    120_000,
];

/// Counts of durations in 20 buckets with fixed bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// The counts of the buckets. The last bucket has the durations beyond the last bound.
    counts: [u64; BOUNDS_MS.len() + 1],
    sum_us: u64,
}

impl Histogram {
    /// Counts a duration. A duration that equals a bound belongs to the bucket that ends there.
    pub fn add(&mut self, duration: Duration) {
        let us = duration.as_micros();
        let place = BOUNDS_MS.partition_point(|&bound_ms| bound_ms * 1_000 < us);
        self.counts[place] += 1;
        self.sum_us = self.sum_us.saturating_add(us);
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(other.counts).for_each(|(count, more)| *count += more);
        self.sum_us = self.sum_us.saturating_add(other.sum_us);
    }

    /// Returns how many durations were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of all durations.
    pub fn sum(&self) -> Duration {
        Duration::from_micros(self.sum_us)
    }

    /// Returns each bound, from 1 ms to 120 s, and how many durations do not exceed it.
    pub fn cumulative(&self) -> impl Iterator<Item = (Duration, u64)> {
        BOUNDS_MS.iter().zip(&self.counts).scan(0, |sum, (&bound_ms, &count)| {
            *sum += count;
            Some((Duration::from_millis(bound_ms), *sum))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_equal_to_a_bucket_bound_counts_in_that_bucket() {
        let mut histogram = Histogram::default();
        for us in [0, 1_000, 1_001, 2_000_000, 2_000_001, 120_000_000, 120_000_001] {
            histogram.add(Duration::from_micros(us));
        }
        let up_to =
            |ms| histogram.cumulative().find(|&(bound, _)| bound == Duration::from_millis(ms)).unwrap().1;
        assert_eq!([1, 2, 1_000, 2_000, 3_000, 90_000, 120_000].map(up_to), [2, 3, 3, 4, 5, 5, 6]);
        assert_eq!((histogram.count(), histogram.sum()), (7, Duration::from_micros(244_002_003)));
    }

    #[test]
    fn merged_histograms_contain_all_durations() {
        let of = |durations_ms: &[u64]| {
            let mut histogram = Histogram::default();
            for &ms in durations_ms {
                histogram.add(Duration::from_millis(ms));
            }
            histogram
        };
        let mut both = of(&[1, 150_000]);
        both.merge(&of(&[3, 700]));
        assert_eq!(both, of(&[1, 3, 700, 150_000]));
    }
}
