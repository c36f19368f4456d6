//! Quantiles.

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
        Some(high) if share > 0.0 => low + (high - low) * share,
        _ => low,
    };
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_near(measured: Option<f64>, expected: f64) {
        assert!((measured.unwrap() - expected).abs() < 1e-12, "{measured:?} is not {expected}");
    }

    #[test]
    fn quantiles_are_those_of_numpy() {
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
    fn one_value_is_every_quantile_and_nothing_has_none() {
        assert_near(quantile(&[7.0], 0.1), 7.0);
        assert_near(quantile(&[7.0], 0.9), 7.0);
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn a_quantile_among_those_that_never_finish_is_unknown() {
        let values = [1.0, 2.0, 3.0, f64::INFINITY];
        assert_near(quantile(&values, 0.5), 2.5);
        assert_near(quantile(&values, 2.0 / 3.0), 3.0);
        assert_eq!(quantile(&values, 0.75), None);
        assert_eq!(quantile(&values, 1.0), None);
    }
}
