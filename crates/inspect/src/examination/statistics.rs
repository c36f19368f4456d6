//! The statistics used by verdicts.

use coapace_run::measured::quantile;

/// Returns the smallest and the largest value; `None` without values.
pub(crate) fn range(values: &[f64]) -> Option<(f64, f64)> {
    values.iter().fold(None, |range, &value| {
        let (low, high) = range.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    })
}

/// Returns the median; `None` without values.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile(&sorted, 0.5)
}

/// Returns the Kolmogorov–Smirnov distance of the values from the uniform distribution over `low` to `high`.
pub(crate) fn distance_from_uniform(values: &[f64], low: f64, high: f64) -> f64 {
    let mut sorted: Vec<f64> =
        values.iter().map(|value| ((value - low) / (high - low)).clamp(0.0, 1.0)).collect();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let steps = sorted.iter().enumerate();
    steps.fold(0.0, |worst, (place, &u)| {
        // The sample's distribution jumps at each value, so both sides of the jump are compared.
        f64::max(worst, f64::max(u - place as f64 / count, (place + 1) as f64 / count - u))
    })
}

/// Returns the critical Kolmogorov–Smirnov distance at 1 %: `count` values of the assumed distribution have a larger
/// distance from it in 1 of 100 cases. It is the asymptotic value of Kolmogorov's distribution with the correction of
/// Stephens (1970), good to 1 % from 5 values on.
pub(crate) fn critical_distance(count: usize) -> f64 {
    let root = (count as f64).sqrt();
    1.628 / (root + 0.12 + 0.11 / root)
}

/// Returns the probability that `count` values drawn uniformly from an interval lie within `share` of its width.
pub(crate) fn chance_of_narrow(count: usize, share: f64) -> f64 {
    // The range r of n uniform values has the density n (n − 1) rⁿ⁻² (1 − r), here integrated from 0 to `share`.
    let n = count as f64;
    n * share.powf(n - 1.0) - (n - 1.0) * share.powf(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_values_have_a_small_distance_from_the_uniform_distribution_and_equal_ones_a_large_one() {
        let even: Vec<f64> = (0..40).map(|n| 2.0 + (f64::from(n) + 0.5) / 40.0).collect();
        assert!(distance_from_uniform(&even, 2.0, 3.0) < critical_distance(40));
        assert!(distance_from_uniform(&[2.0; 8], 2.0, 3.0) > critical_distance(8));
        let half: Vec<f64> = even.iter().map(|value| 2.0 + (value - 2.0) / 2.0).collect();
        assert!(distance_from_uniform(&half, 2.0, 3.0) > critical_distance(40));
    }

    #[test]
    fn a_narrow_range_of_uniform_values_has_a_low_probability() {
        assert!((chance_of_narrow(2, 1.0) - 1.0).abs() < 1e-12);
        assert!((chance_of_narrow(2, 0.1) - 0.19).abs() < 1e-12);
        assert!(chance_of_narrow(6, 0.1) < 1e-4);
    }

    #[test]
    fn the_median_of_an_even_number_of_values_is_the_mean_of_the_middle_two() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(range(&[2.0, 1.0]), Some((1.0, 2.0)));
    }
}
