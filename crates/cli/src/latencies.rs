//! A histogram of latencies.

use std::time::Duration;

use coapace_run::measured::Delays;

/// A histogram of durations in whole microseconds. Its size does not grow with their number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latencies(Delays);

impl Latencies {
    /// Counts a duration.
    pub(crate) fn add(&mut self, latency: Duration) {
        // 64 bits of microseconds are more than 500,000 years.
        self.0.add(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX));
    }

    /// Adds the counts of another histogram.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.0.merge(&other.0);
    }

    /// Returns the number of durations counted.
    pub(crate) fn len(&self) -> u64 {
        self.0.count
    }

    /// Returns the longest duration, zero if there is none.
    pub(crate) fn longest(&self) -> Duration {
        Duration::from_micros(self.0.max_us)
    }

    /// Returns the quantile for a `share` in (0,1]: the duration that this share of the counted durations do not
    /// exceed; zero without durations.
    pub(crate) fn quantile(&self, share: f64) -> Duration {
        Duration::from_secs_f64(self.0.quantile_s(share).unwrap_or(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_latencies_equal_those_of_the_sorted_durations() {
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
