//! Tests of differences: how likely chance alone is to make one, and which of many count.

use std::f64::consts::FRAC_2_PI;

/// The probability with which chance alone may show any difference among those that are compared together.
pub const LEVEL: f64 = 0.05;

/// The share of a mean by which values may differ through the rounding of numbers alone.
const ROUNDING: f64 = 1e-9;

/// Returns the probability that chance alone makes the figures of pairs differ at least as much as they do (paired t test, two
/// sides), from 0 to 1. The logarithms of the ratios are tested, or the differences if a figure is zero. Returns `None` with
/// less than two pairs.
pub(super) fn by_chance(pairs: &[(f64, f64)]) -> Option<f64> {
    let logarithm = |&(first, second): &(f64, f64)| {
        let ratio = first / second;
        (ratio > 0.0 && ratio.is_finite()).then(|| ratio.ln())
    };
    let logarithms = pairs.iter().map(logarithm).collect::<Option<Vec<_>>>();
    let scale = if logarithms.is_some() { 1.0 } else { pairs.iter().map(|pair| pair.0.max(pair.1)).sum() };
    let values = logarithms.unwrap_or_else(|| pairs.iter().map(|pair| pair.0 - pair.1).collect());
    let freedom = u32::try_from(values.len()).ok()?.checked_sub(1).filter(|&freedom| freedom > 0)?;
    let n = f64::from(freedom) + 1.0;
    let mean = values.iter().sum::<f64>() / n;
    if mean.abs() <= ROUNDING * scale {
        return Some(1.0);
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares / f64::from(freedom) / n).sqrt();
    Some(beyond(mean.abs() / error, freedom))
}

/// Returns the probability that Student's t is beyond ±`t`, for so many degrees of freedom (Abramowitz and Stegun 1964, 26.7.3 and
/// 26.7.4).
fn beyond(t: f64, freedom: u32) -> f64 {
    let theta = (t / f64::from(freedom).sqrt()).atan();
    let (sine, cosine) = theta.sin_cos();
    // The terms are those of a power series in cos². The first is cos θ for odd degrees of freedom, and 1 for even ones.
    let is_odd = freedom % 2 == 1;
    let (mut term, first) = if is_odd { (cosine, 2_u32) } else { (1.0, 1) };
    let mut sum = if freedom == 1 { 0.0 } else { term };
    for number in (first..freedom.saturating_sub(2)).step_by(2) {
        term *= cosine * cosine * f64::from(number) / f64::from(number + 1);
        sum += term;
    }
    let within = if is_odd { FRAC_2_PI * (theta + sine * sum) } else { sine * sum };
    (1.0 - within).clamp(0.0, 1.0)
}

/// Returns which of several comparisons show a difference at the [`LEVEL`] for all of them together (S. Holm, A simple sequentially
/// rejective multiple test procedure, Scandinavian Journal of Statistics 6, 1979). A comparison without a probability shows none.
pub(super) fn holm(by_chance: &[Option<f64>]) -> Vec<bool> {
    let mut order: Vec<(f64, usize)> =
        by_chance.iter().enumerate().filter_map(|(place, p)| Some(((*p)?, place))).collect();
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
    fn a_twentieth_is_beyond_the_quantile_of_student() {
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
    fn pairs_are_tested_by_their_ratios_or_by_their_differences_where_one_is_zero() {
        assert_eq!(by_chance(&[(1.0, 2.0)]), None);
        assert_eq!(by_chance(&[(2.0, 2.0), (3.0, 3.0)]), Some(1.0));
        assert!(by_chance(&[(2.0, 1.0), (4.0, 2.0), (6.0, 3.0)]).unwrap() < 1e-6, "each is twice the other");
        assert!(by_chance(&[(9.0, 0.0), (12.0, 0.0), (10.0, 0.0)]).unwrap() < 0.01);
        assert!(by_chance(&[(0.0, 1.0), (9.0, 0.0)]).unwrap() > 0.3);
    }

    #[test]
    fn the_more_is_compared_the_less_likely_chance_has_to_be() {
        assert_eq!(holm(&[Some(0.04)]), [true]);
        assert_eq!(holm(&[Some(0.04), Some(0.03)]), [false, false]);
        assert_eq!(holm(&[Some(0.04), Some(0.02), None]), [true, true, false]);
        assert_eq!(holm(&[Some(0.5), Some(0.001), Some(0.02)]), [false, true, true]);
    }
}
