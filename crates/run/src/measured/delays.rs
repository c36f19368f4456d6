//! Distributions of delays, counted in buckets, in bounded memory. The buckets are so fine that quantiles are known to
//! 0.1 %.

use serde::{Deserialize, Serialize};

use super::RunResult;

/// A distribution of delays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delays {
    /// The number of delays.
    pub count: u64,
    /// The sum of the delays, in microseconds.
    pub sum_us: u64,
    /// The longest delay, in microseconds.
    pub max_us: u64,
    /// The buckets that are not empty, in ascending order, each with its number of delays. Below 2048 µs each
    /// microsecond is a bucket. Above, each power of two has 1024 buckets of equal width.
    buckets: Vec<(u16, u64)>,
}

/// The binary logarithm of the number of buckets from one power of two to the next.
const FINENESS: u32 = 10;

fn bucket(us: u64) -> u16 {
    let shift = us.max(1).ilog2().saturating_sub(FINENESS);
    // At most 53 · 1,024 + 2,047, which fits 16 bits.
    ((shift << FINENESS) as u64 + (us >> shift)) as u16
}

/// Returns the least delay of a bucket, in microseconds.
fn least_us(bucket: u16) -> u64 {
    let shift = u32::from(bucket >> FINENESS).saturating_sub(1);
    (u64::from(bucket) - u64::from(shift << FINENESS)) << shift
}

impl Delays {
    /// Returns the distribution of the delays of all flows in these runs.
    pub fn of(runs: &[RunResult]) -> Self {
        let mut all = Self::default();
        runs.iter().flat_map(|run| &run.flows).for_each(|flow| all.merge(&flow.delays));
        all
    }

    /// Adds a delay of `us` microseconds.
    pub fn add(&mut self, us: u64) {
        self.count += 1;
        self.sum_us = self.sum_us.saturating_add(us);
        self.max_us = self.max_us.max(us);
        let bucket = bucket(us);
        match self.buckets.binary_search_by_key(&bucket, |(bucket, _)| *bucket) {
            Ok(place) => self.buckets[place].1 += 1,
            Err(place) => self.buckets.insert(place, (bucket, 1)),
        }
    }

    /// Adds all delays of the distribution `other`.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum_us = self.sum_us.saturating_add(other.sum_us);
        self.max_us = self.max_us.max(other.max_us);
        // Both are ascending, so one pass merges them. Inserting each bucket would move the others.
        let room = self.buckets.len() + other.buckets.len();
        let own = std::mem::replace(&mut self.buckets, Vec::with_capacity(room));
        let mut own = own.into_iter().peekable();
        for &(bucket, count) in &other.buckets {
            while let Some(less) = own.next_if(|own| own.0 < bucket) {
                self.buckets.push(less);
            }
            let equal = own.next_if(|own| own.0 == bucket).map_or(0, |own| own.1);
            self.buckets.push((bucket, equal + count));
        }
        self.buckets.extend(own);
    }

    /// Returns the mean delay in seconds; `None` without delays.
    pub fn mean_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_us as f64 / self.count as f64 / 1e6)
    }

    /// Returns the delay at quantile `p` (0 to 1) in seconds, interpolated within its bucket; `None` without delays.
    pub fn quantile_s(&self, p: f64) -> Option<f64> {
        let rank = p.clamp(0.0, 1.0) * self.count.saturating_sub(1) as f64;
        let mut before = 0;
        let (bucket, count) = *self.buckets.iter().find(|(_, count)| {
            before += count;
            before as f64 > rank
        })?;
        // The delays of a bucket are taken to lie in it at equal distances.
        let share = (rank - (before - count) as f64 + 0.5) / count as f64;
        let (least, next) = (least_us(bucket) as f64, least_us(bucket + 1) as f64);
        // A bucket of one microsecond holds equal delays, so nothing is interpolated.
        let us = if next - least > 1.0 { least + (next - least) * share.min(1.0) } else { least };
        Some(us.min(self.max_us as f64) / 1e6)
    }

    /// Returns the cumulative distribution: delays in seconds, ascending, each with the share of delays that are no
    /// longer than it.
    pub fn cdf(&self) -> Vec<(f64, f64)> {
        let mut sum = 0;
        let point = |&(bucket, count): &(u16, u64)| {
            sum += count;
            // The upper end of the bucket, because all its delays are shorter.
            (least_us(bucket + 1) as f64 / 1e6, sum as f64 / self.count as f64)
        };
        self.buckets.iter().map(point).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_of_delays_is_at_most_a_thousandth_of_its_delays_wide() {
        for us in (0..3_000).chain([1_000, 65_535, 65_536, 2_000_000, 3_600_000_000, u64::MAX / 2]) {
            let own = bucket(us);
            let (least, next) = (least_us(own), least_us(own + 1));
            assert!((least..next).contains(&us), "{us}: {least}..{next}");
            assert!(next - least <= (us / 1024).max(1), "{us}: {least}..{next}");
        }
    }

    #[test]
    fn quantiles_distinguish_delays_a_few_milliseconds_apart() {
        let mut delays = Delays::default();
        (0..100).for_each(|place| delays.add(600_000 + place * 100));
        let [p50, p90] = [0.5, 0.9].map(|p| delays.quantile_s(p).unwrap());
        assert!((p50 - 0.604_95).abs() < 3e-4 && (p90 - 0.608_91).abs() < 3e-4, "{p50} {p90}");
    }

    #[test]
    fn merged_distributions_of_delays_contain_all_delays() {
        let of = |delays: &[u64]| {
            let mut all = Delays::default();
            for &us in delays {
                all.add(us);
            }
            all
        };
        for (one, other) in [
            (&[][..], &[5, 7][..]),
            (&[5, 9, 1 << 30], &[]),
            (&[5, 7, 7, 90_000], &[1, 7, 8, 90_010, 1 << 40]),
        ] {
            let mut merged = of(one);
            merged.merge(&of(other));
            assert_eq!(merged, of(&[one, other].concat()));
        }
    }

    #[test]
    fn mean_and_quantiles_of_delays_agree_with_the_added_values() {
        let (mut delays, mut others) = (Delays::default(), Delays::default());
        for ms in 1..=1_000 {
            if ms % 3 == 0 { delays.add(ms * 1_000) } else { others.add(ms * 1_000) }
        }
        delays.merge(&others);
        assert!((delays.mean_s().unwrap() - 0.5005).abs() < 1e-9);
        for p in [0.1, 0.5, 0.9, 0.99] {
            assert!((delays.quantile_s(p).unwrap() / p - 1.0).abs() < 0.002, "{p}");
        }
        let cdf = delays.cdf();
        assert!(cdf.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1));
        assert!((cdf.last().unwrap().1 - 1.0).abs() < 1e-12);
        assert_eq!((Delays::default().mean_s(), Delays::default().quantile_s(0.5)), (None, None));
    }
}
