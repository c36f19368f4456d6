//! Tests of significance: the probability of a difference by chance, and which of many differences count.

use std::f64::consts::FRAC_2_PI;

/// The level of significance: the probability that any of several comparisons shows a difference by chance alone.
pub const LEVEL: f64 = 0.05;

/// The share of a mean by which values may differ merely through rounding.
const ROUNDING: f64 = 1e-9;

/// Returns the p-value of a paired t test, two-sided: the probability that by chance alone the values of pairs would
/// differ at least as much as these. The logarithms of the ratios are tested, or the differences if a value is zero.
/// Returns `None` with fewer than two pairs.
pub(super) fn by_chance(pairs: &[(f64, f64)]) -> Option<f64> {
    let logarithm = |&(first, second): &(f64, f64)| {
        let ratio = first / second;
        (ratio > 0.0 && ratio.is_finite()).then(|| ratio.ln())
    };
    let logarithms = pairs.iter().map(logarithm).collect::<Option<Vec<_>>>();
    let scale = if logarithms.is_some() { 1.0 } else { pairs.iter().map(|pair| pair.0.max(pair.1)).sum() };
    let values = logarithms.unwrap_or_else(|| pairs.iter().map(|pair| pair.0 - pair.1).collect());
    // One pair has no spread, so nothing can be tested.
    let freedom = u32::try_from(values.len()).ok()?.checked_sub(1).filter(|&freedom| freedom > 0)?;
    let n = f64::from(freedom) + 1.0;
    let mean = values.iter().sum::<f64>() / n;
    // Equal values differ by rounding in sums, and their t would be huge.
    if mean.abs() <= ROUNDING * scale {
        return Some(1.0);
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    // 0 if all pairs differ equally: t is then infinite, and the probability 0.
    let error = (squares / f64::from(freedom) / n).sqrt();
    Some(beyond(mean.abs() / error, freedom))
}

/// Returns the probability that Student's t is beyond ±`t`, for this number of degrees of freedom (Abramowitz and Stegun 1964,
/// 26.7.3 and 26.7.4).
fn beyond(t: f64, freedom: u32) -> f64 {
    let theta = (t / f64::from(freedom).sqrt()).atan();
    let (sine, cosine) = theta.sin_cos();
    // A power series in cos². The first term is cos θ for odd degrees of freedom, and 1 for even ones.
    let is_odd = freedom % 2 == 1;
    let (mut term, first) = if is_odd { (cosine, 2_u32) } else { (1.0, 1) };
    let mut sum = if freedom == 1 { 0.0 } else { term };
    // The last factor is (ν − 3)/(ν − 2) for odd ν and even ν alike.
    for number in (first..freedom.saturating_sub(2)).step_by(2) {
        term *= cosine * cosine * f64::from(number) / f64::from(number + 1);
        sum += term;
    }
    let within = if is_odd { FRAC_2_PI * (theta + sine * sum) } else { sine * sum };
    (1.0 - within).clamp(0.0, 1.0)
}

/// Returns which of several comparisons are significant at the [`LEVEL`] for all of them together (S. Holm, A simple
/// sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6, 1979). A comparison without a
/// probability is not significant.
pub(super) fn holm(by_chance: &[Option<f64>]) -> Vec<bool> {
    let mut order: Vec<(f64, usize)> =
        by_chance.iter().enumerate().filter_map(|(place, p)| Some(((*p)?, place))).collect();
    // The smallest probability is held against the strictest level.
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut shown = vec![false; by_chance.len()];
    for (done, (p, place)) in order.iter().enumerate() {
        if p * (order.len() - done) as f64 > LEVEL {
            break;
        }
        shown[*place] = true;
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use coapace_run::measured::student_t;

    #[test]
    fn the_5_percent_limit_is_the_quantile_of_students_distribution() {
        for freedom in 1..=40 {
            assert!((beyond(student_t(freedom), freedom) - 0.05).abs() < 2e-4, "{freedom}");
        }
        // From scipy.stats.t.sf(3, n) * 2.
        for (freedom, p) in [(1, 0.204_833), (2, 0.095_466), (5, 0.030_099), (10, 0.013_344), (19, 0.007_362)]
        {
            assert!((beyond(3.0, freedom) - p).abs() < 1e-5, "{freedom}: {}", beyond(3.0, freedom));
        }
        assert!(beyond(f64::INFINITY, 3) < 1e-12 && (beyond(0.0, 4) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn pairs_are_tested_by_ratios_or_by_differences_if_a_value_is_zero() {
        assert_eq!(by_chance(&[(1.0, 2.0)]), None);
        assert_eq!(by_chance(&[(2.0, 2.0), (3.0, 3.0)]), Some(1.0));
        assert!(by_chance(&[(2.0, 1.0), (4.0, 2.0), (6.0, 3.0)]).unwrap() < 1e-6, "each is twice the other");
        assert!(by_chance(&[(9.0, 0.0), (12.0, 0.0), (10.0, 0.0)]).unwrap() < 0.01);
        assert!(by_chance(&[(0.0, 1.0), (9.0, 0.0)]).unwrap() > 0.3);
    }

    #[test]
    fn more_comparisons_require_smaller_p_values() {
        assert_eq!(holm(&[Some(0.04)]), [true]);
        assert_eq!(holm(&[Some(0.04), Some(0.03)]), [false, false]);
        assert_eq!(holm(&[Some(0.04), Some(0.02), None]), [true, true, false]);
        assert_eq!(holm(&[Some(0.5), Some(0.001), Some(0.02)]), [false, true, true]);
    }
}
