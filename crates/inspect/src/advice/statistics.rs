//! Confidence intervals of shares, and rank correlation.

/// Returns the 95 % interval of a share if it was observed in `count` of `of` cases (Wilson 1927).
pub fn wilson(count: f64, of: f64) -> (f64, f64) {
    const Z: f64 = 1.96;
    if of <= 0.0 {
        return (0.0, 1.0);
    }
    let share = count / of;
    let centre = share + Z * Z / (2.0 * of);
    let half = Z * (share * (1.0 - share) / of + Z * Z / (4.0 * of * of)).sqrt();
    let scale = 1.0 + Z * Z / of;
    // Rounding may put an end beyond 0 or 1.
    (((centre - half) / scale).max(0.0), ((centre + half) / scale).min(1.0))
}

/// Returns Kendall's τ-b of two series (Kendall 1945): 1 if both are ranked equally, −1 if one is the reverse of the
/// other. Two numbers of one series are tied if they differ by at most the share `tie` of the larger one. Returns
/// `None` if all numbers of a series are tied.
///
/// # Panics
/// Panics if one series is shorter than the other.
pub fn kendall_tau_b(one: &[f64], other: &[f64], tie: f64) -> Option<f64> {
    assert_eq!(one.len(), other.len(), "one value of each");
    let sign = |a: f64, b: f64| {
        let is_tied = (a - b).abs() <= tie * a.abs().max(b.abs());
        if is_tied { 0 } else { i32::from(a > b) * 2 - 1 }
    };
    let (mut agreement, mut in_one, mut in_other) = (0i32, 0i32, 0i32);
    for first in 0..one.len() {
        for second in first + 1..one.len() {
            let (a, b) = (sign(one[first], one[second]), sign(other[first], other[second]));
            agreement += a * b;
            in_one += a.abs();
            in_other += b.abs();
        }
    }
    let scale = (f64::from(in_one) * f64::from(in_other)).sqrt();
    (scale > 0.0).then(|| f64::from(agreement) / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_share_is_wilsons() {
        let (low, high) = wilson(10.0, 100.0);
        assert!((low - 0.0552).abs() < 1e-3 && (high - 0.1744).abs() < 1e-3, "{low} {high}");
        assert_eq!(wilson(0.0, 0.0), (0.0, 1.0));
    }

    #[test]
    fn kendalls_tau_is_one_for_equal_rankings_and_ignores_ties() {
        assert_eq!(kendall_tau_b(&[1.0, 2.0, 3.0], &[10.0, 20.0, 30.0], 0.0), Some(1.0));
        assert_eq!(kendall_tau_b(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0], 0.0), Some(-1.0));
        assert_eq!(kendall_tau_b(&[1.0, 1.01], &[2.0, 3.0], 0.02), None);
        // Two pairs agree, and the third is tied in one series: 2 / √(2 · 3).
        let tied = kendall_tau_b(&[1.0, 1.01, 3.0], &[1.0, 2.0, 3.0], 0.02).unwrap();
        assert!((tied - 2.0 / 6f64.sqrt()).abs() < 1e-12);
    }
}
