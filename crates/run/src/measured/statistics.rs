//! Means with confidence intervals, quantiles, and Jain's fairness index.

/// A mean and its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half of the width of the 95 % confidence interval (Student's t); `None` for a single value.
    pub half_width: Option<f64>,
}

impl Estimate {
    /// Estimates the mean of independent values; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let count = u32::try_from(values.len()).ok().filter(|&count| count > 0)?;
        let n = f64::from(count);
        let mean = values.iter().sum::<f64>() / n;
        let half_width = (count > 1).then(|| {
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            // n − 1, because the mean was computed from the same values.
            student_t(count - 1) * (squares / (n - 1.0) / n).sqrt()
        });
        Some(Self { mean, half_width })
    }
}

/// Returns the quantile 0.975 of Student's t distribution with `freedom` degrees of freedom, to four significant
/// digits.
pub fn student_t(freedom: u32) -> f64 {
    const FIRST: [f64; 8] = [12.706, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060];
    if let Some(t) = (freedom as usize).checked_sub(1).and_then(|place| FIRST.get(place)) {
        return *t;
    }
    // The first four terms of Abramowitz and Stegun 1964, 26.7.5, in the normal quantile.
    let (z, n) = (1.959_964_f64, f64::from(freedom.max(1)));
    let odd = |coefficients: &[f64]| {
        coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * z * z + coefficient) * z
    };
    z + odd(&[1.0, 1.0]) / (4.0 * n)
        + odd(&[3.0, 16.0, 5.0]) / (96.0 * n.powi(2))
        + odd(&[-15.0, 17.0, 19.0, 3.0]) / (384.0 * n.powi(3))
        + odd(&[-945.0, -1920.0, 1482.0, 776.0, 79.0]) / (92_160.0 * n.powi(4))
}

/// Returns the quantile `p` from 0 to 1 of values in ascending order.
///
/// It is interpolated linearly between the two nearest ranks: rank `p (n - 1)`, counted from 0 (type 7 of Hyndman and Fan
/// 1996; the default of R and NumPy). Returns `None` without values, or if the quantile falls on an infinite one.
pub fn quantile(ascending: &[f64], p: f64) -> Option<f64> {
    let last = ascending.len().checked_sub(1)?;
    let rank = p.clamp(0.0, 1.0) * last as f64;
    #[allow(clippy::cast_sign_loss)] // clamped above
    let below = rank as usize;
    let low = ascending[below];
    let share = rank - below as f64;
    let value = match ascending.get(below + 1) {
        // On a rank exactly, the next value does not count. It may be infinite, and 0 · ∞ is not a number.
        Some(high) if share > 0.0 => low + (high - low) * share,
        _ => low,
    };
    value.is_finite().then_some(value)
}

/// Returns `part`/`whole`; `None` if `whole` is not above 0.
pub fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// Returns Jain's fairness index of the shares, `(Σx)² / (n Σx²)`: from 1/n, if one has everything, to 1, if all have the same
/// (Jain, Chiu, Hawe 1984). Returns `None` if there are no shares or all are 0.
pub fn jain_index(shares: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (count, sum, squares) = shares
        .into_iter()
        .fold((0_u32, 0.0, 0.0), |(count, sum, squares), x| (count + 1, sum + x, squares + x * x));
    ratio(sum * sum, f64::from(count) * squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_student_equal_the_tables() {
        for (freedom, t) in
            [(1, 12.706), (2, 4.303), (8, 2.306), (9, 2.262), (19, 2.093), (30, 2.042), (1000, 1.962)]
        {
            assert!((student_t(freedom) - t).abs() < 6e-4, "{freedom}: {}", student_t(freedom));
        }
    }

    #[test]
    fn the_interval_of_a_mean_equals_a_textbook_example() {
        // The mean is 3 and the deviation 1.5811 of five values: 2.7764 · 1.5811 / √5.
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((estimate.mean - 3.0).abs() < 1e-12);
        assert!((estimate.half_width.unwrap() - 1.9632).abs() < 1e-3);
    }

    #[test]
    fn a_single_value_has_a_mean_and_no_interval() {
        assert_eq!(Estimate::of(&[7.0]), Some(Estimate { mean: 7.0, half_width: None }));
        assert_eq!(Estimate::of(&[]), None);
    }

    #[track_caller]
    fn assert_near(measured: Option<f64>, expected: f64) {
        assert!((measured.unwrap() - expected).abs() < 1e-12, "{measured:?} is not {expected}");
    }

    #[test]
    fn quantiles_equal_numpy() {
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.5), Some(2.0));
        assert_eq!(quantile(&[1.0, 2.0], 0.25), Some(1.25));
        // The expected values come from `numpy.quantile([1, 2, 4, 8, 16, 32], [.1, .25, .5, .75, .9])`.
        let values = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
        for (p, expected) in [(0.1, 1.5), (0.25, 2.5), (0.5, 6.0), (0.75, 14.0), (0.9, 24.0)] {
            assert_near(quantile(&values, p), expected);
        }
        assert_near(quantile(&values, 0.0), 1.0);
        assert_near(quantile(&values, 1.0), 32.0);
    }

    #[test]
    fn a_single_value_is_every_quantile_and_no_values_have_none() {
        assert_near(quantile(&[7.0], 0.1), 7.0);
        assert_near(quantile(&[7.0], 0.9), 7.0);
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn a_quantile_among_clients_that_never_finish_is_unknown() {
        let values = [1.0, 2.0, 3.0, f64::INFINITY];
        assert_near(quantile(&values, 0.5), 2.5);
        assert_near(quantile(&values, 2.0 / 3.0), 3.0);
        assert_eq!(quantile(&values, 0.75), None);
        assert_eq!(quantile(&values, 1.0), None);
    }

    #[test]
    fn the_fairness_index_of_equal_shares_is_1() {
        assert_eq!(jain_index([3.0; 7]), Some(1.0));
    }

    #[test]
    fn the_fairness_index_is_a_quarter_if_one_of_four_takes_everything() {
        assert_eq!(jain_index([0.0, 0.0, 8.0, 0.0]), Some(0.25));
    }

    #[test]
    fn the_fairness_index_is_undefined_without_clients_or_throughput() {
        assert_eq!(jain_index([]), None);
        assert_eq!(jain_index([0.0, 0.0]), None);
    }
}
