//! Rounding of the numbers of charts.

/// Rounds to five significant digits: more than a chart can show, in half the bytes.
pub(super) fn rounded(x: f64) -> f64 {
    format!("{x:.4e}").parse().unwrap_or(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_report_are_rounded_to_five_digits() {
        assert!((rounded(1234.5678) - 1234.6).abs() < 1e-9);
        assert!((rounded(0.000_123_456_7) - 0.000_123_46).abs() < 1e-12);
        assert!(rounded(0.0).abs() < f64::EPSILON);
    }
}
