//! Ratios of values and their confidence intervals.

use super::{CellResult, Metric};
use crate::number::significant;
use coapace_run::measured::{Estimate, student_t};
use coapace_run::measured::{RunResult, Settling};

/// The ratio of the values of two mechanisms.
///
/// The ratio is the geometric mean over the seeds that both mechanisms ran. Each seed gives both the same losses and
/// delays, so they are compared seed by seed. The confidence interval (95 %, Student's t) is the interval of the mean
/// logarithm. If a value is zero, as the throughput of a collapsed network may be, the ratio is the ratio of the means,
/// with Fieller's interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedRatio {
    /// The mean ratio; infinite if the second value is zero in all pairs.
    pub mean: f64,
    /// Both ends of the interval; `None` with one seed. The upper end is infinite if the second value may be zero.
    pub interval: Option<(f64, f64)>,
}

impl PairedRatio {
    /// Returns the ratio of the value of `first` to the value of `second`, over the seeds that both ran; `None` if one of these
    /// runs has no value.
    pub fn by_seed(metric: Metric, first: &CellResult, second: &CellResult) -> Option<Self> {
        let pairs = first.pairs(second, |run| compared(metric, run));
        Self::of(&pairs.collect::<Option<Vec<_>>>()?)
    }

    /// Returns the ratio and its interval as texts. With one seed the interval is a dash.
    pub fn words(self) -> (String, String) {
        let number = |x: f64| if x == f64::INFINITY { "∞".to_owned() } else { significant(x, 3) };
        let interval = self
            .interval
            .map_or_else(|| "–".to_owned(), |(low, high)| format!("{}–{}", number(low), number(high)));
        (number(self.mean), interval)
    }

    /// Computes the ratio from pairs of values, none of them negative; `None` without pairs, or if all values are zero.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let logarithm = |&(first, second): &(f64, f64)| {
            let ratio = first / second;
            (ratio > 0.0 && ratio.is_finite()).then(|| ratio.ln())
        };
        // A zero on either side has no logarithm.
        let Some(logarithms) = pairs.iter().map(logarithm).collect::<Option<Vec<_>>>() else {
            return Self::of_means(pairs);
        };
        let Estimate { mean, half_width } = Estimate::of(&logarithms)?;
        let interval = half_width.map(|half| ((mean - half).exp(), (mean + half).exp()));
        Some(Self { mean: mean.exp(), interval })
    }

    /// Computes the ratio of the means with Fieller's interval: all ratios θ for which the mean of first − θ·second may be zero
    /// (E. C. Fieller, Some problems in interval estimation, Journal of the Royal Statistical Society B 16, 1954). Returns
    /// `None` without pairs, or if all values are zero.
    pub fn of_means(pairs: &[(f64, f64)]) -> Option<Self> {
        let count = u32::try_from(pairs.len()).ok().filter(|&count| count > 0)?;
        let n = f64::from(count);
        let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / n;
        let (first, second) = (mean(|pair| pair.0), mean(|pair| pair.1));
        if first <= 0.0 && second <= 0.0 {
            return None;
        }
        let interval = (count > 1).then(|| {
            // t² times the squared standard error of a mean, which is the sum of squares over (n − 1)·n.
            let scale = student_t(count - 1).powi(2) / (n - 1.0) / n;
            let spread = |product: &dyn Fn(f64, f64) -> f64| {
                scale * pairs.iter().map(|pair| product(pair.0 - first, pair.1 - second)).sum::<f64>()
            };
            // The interval is the solution of q·θ² − 2p·θ + r ≤ 0.
            let q = second * second - spread(&|_, below| below * below);
            let p = first * second - spread(&|above, below| above * below);
            let r = first * first - spread(&|above, _| above * above);
            // Negative through rounding, or where every ratio fits, which needs no root.
            let root = (p * p - q * r).max(0.0).sqrt();
            match (q > 0.0, r > 0.0) {
                (true, _) => (((p - root) / q).max(0.0), (p + root) / q),
                // The second mean may be zero and the first is not, so only the lower end is finite.
                (false, true) => (r / (p + root), f64::INFINITY),
                (false, false) => (0.0, f64::INFINITY),
            }
        });
        Some(Self { mean: first / second, interval })
    }
}

/// Returns the value of a run for a ratio. A run whose delay did not settle counts with the whole time in which it
/// could have settled. So the mean is the restricted mean of survival analysis, and no mechanism gains from runs that
/// do not settle. Rankings [count a longer time](crate::rank::of_run), because they measure risk and do not estimate a
/// published time.
fn compared(metric: Metric, run: &RunResult) -> Option<f64> {
    match metric {
        Metric::SettlingTime => run.settling.map(Settling::restricted_s),
        _ => metric.of_run(run),
    }
}

/// Returns the value of a cell as its ratios use it: the [estimate](Metric::estimate) of the metric, except that a
/// settling time also counts runs that did not settle.
pub(crate) fn compared_value(metric: Metric, runs: &[RunResult]) -> Option<f64> {
    if metric == Metric::SettlingTime {
        // The mean has the runs that did not settle, like the ratios.
        let times: Vec<_> = runs.iter().filter_map(|run| compared(metric, run)).collect();
        return Estimate::of(&times).map(|times| times.mean);
    }
    metric.estimate(runs).map(|value| value.mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_ratio_is_geometric_unless_a_value_is_zero() {
        let PairedRatio { mean, interval } = PairedRatio::of(&[(2.0, 1.0), (8.0, 1.0)]).unwrap();
        assert!((mean - 4.0).abs() < 1e-9);
        let (low, high) = interval.unwrap();
        assert!((low * high - 16.0).abs() < 1e-6, "the ends are equally far from the mean, as factors");
        assert_eq!(
            PairedRatio::of(&[(3.0, 2.0)]),
            Some(PairedRatio { mean: (1.5f64).ln().exp(), interval: None })
        );
    }

    #[test]
    fn the_interval_of_a_ratio_of_means_contains_the_ratios_consistent_with_the_pairs() {
        let pairs = [(9.0, 2.0), (12.0, 3.0), (0.0, 1.0), (11.0, 2.5), (8.0, 2.0)];
        let PairedRatio { mean, interval } = PairedRatio::of(&pairs).unwrap();
        assert!((mean - 40.0 / 10.5).abs() < 1e-9);
        let (low, high) = interval.unwrap();
        let refuted = |theta: f64| {
            let differences: Vec<_> = pairs.iter().map(|(first, second)| first - theta * second).collect();
            let Estimate { mean, half_width } = Estimate::of(&differences).unwrap();
            mean.abs() > half_width.unwrap()
        };
        assert!(refuted(low - 1e-6) && !refuted(low + 1e-6), "{low}");
        assert!(!refuted(high - 1e-6) && refuted(high + 1e-6), "{high}");
    }

    #[test]
    fn a_ratio_has_no_upper_limit_if_the_denominator_may_be_zero() {
        let pairs = [(9.0, 0.0), (12.0, 0.1), (10.0, 0.0), (11.0, 2.0)];
        let (low, high) = PairedRatio::of(&pairs).unwrap().interval.unwrap();
        assert!(high.is_infinite());
        let differences: Vec<_> = pairs.iter().map(|(first, second)| first - low * second).collect();
        let Estimate { mean, half_width } = Estimate::of(&differences).unwrap();
        assert!((mean.abs() - half_width.unwrap()).abs() < 1e-6, "{low}");
        let none = PairedRatio::of(&[(9.0, 0.0), (12.0, 0.0), (10.0, 0.0)]).unwrap();
        assert!(none.mean.is_infinite());
        assert_eq!(none.interval, Some((f64::INFINITY, f64::INFINITY)));
    }

    #[test]
    fn a_ratio_is_unknown_if_both_values_may_be_zero() {
        let PairedRatio { interval, .. } = PairedRatio::of(&[(9.0, 0.0), (0.0, 0.1)]).unwrap();
        assert_eq!(interval, Some((0.0, f64::INFINITY)));
        assert_eq!(PairedRatio::of(&[(0.0, 0.0), (0.0, 0.0)]), None);
        assert_eq!(PairedRatio::of(&[]), None);
    }
}
