//! A histogram of latencies.

use std::time::Duration;

/// Counts durations in buckets of whole microseconds. There are 64 buckets to each doubling, so a quantile exceeds
/// the exact one by 1.6 % at most.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latencies {
    counts: Vec<u64>,
    total: u64,
    longest: Duration,
}

/// Buckets to each doubling.
const SPLIT: u32 = 64;

impl Latencies {
    /// Counts a duration.
    pub(crate) fn add(&mut self, latency: Duration) {
        let place = bucket(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX));
        if place >= self.counts.len() {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += 1;
        self.total += 1;
        self.longest = self.longest.max(latency);
    }

    /// Adds the counts of another histogram.
    pub(crate) fn merge(&mut self, other: &Self) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.total += other.total;
        self.longest = self.longest.max(other.longest);
    }

    /// Returns the number of durations counted.
    pub(crate) fn len(&self) -> u64 {
        self.total
    }

    /// Returns the longest duration, zero if there is none.
    pub(crate) fn longest(&self) -> Duration {
        self.longest
    }

    /// Returns the duration that a `share` of all, in (0,1], does not exceed; zero if there is none.
    pub(crate) fn quantile(&self, share: f64) -> Duration {
        let rank = share * self.total as f64;
        let mut seen = 0;
        for (place, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen > 0 && seen as f64 >= rank {
                return Duration::from_micros(last_of(place)).min(self.longest);
            }
        }
        self.longest
    }
}

fn bucket(us: u64) -> usize {
    let shift = us.max(1).ilog2().saturating_sub(SPLIT.ilog2());
    (u64::from(shift * SPLIT) + (us >> shift)) as usize
}

/// Returns the longest duration that a bucket stands for, in microseconds.
fn last_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket / u64::from(SPLIT)).saturating_sub(1);
    let first = (bucket - shift * u64::from(SPLIT)) << shift;
    first + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_lies_in_its_bucket_and_the_bucket_is_narrow() {
        let durations = (0..5_000).chain((12..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1]));
        for us in durations.chain([u64::MAX]) {
            let last = last_of(bucket(us));
            assert!(us <= last && last - us <= us / 64, "{us} {last}");
            assert!(us == 0 || bucket(us - 1) <= bucket(us), "{us}");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_durations() {
        let mut latencies = Latencies::default();
        assert_eq!((latencies.len(), latencies.quantile(0.5)), (0, Duration::ZERO));
        let mut upper = Latencies::default();
        (1..=50).for_each(|us| latencies.add(Duration::from_micros(us)));
        (51..=100).for_each(|us| upper.add(Duration::from_micros(us)));
        latencies.merge(&upper);
        for (share, us) in [(0.001, 1), (0.5, 50), (0.95, 95), (1.0, 100)] {
            assert_eq!(latencies.quantile(share), Duration::from_micros(us));
        }
        assert_eq!((latencies.len(), latencies.longest()), (100, Duration::from_micros(100)));
    }
}
