//! Confidence intervals of the means of a few runs.

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
            student_t(count - 1) * (squares / (n - 1.0) / n).sqrt()
        });
        Some(Self { mean, half_width })
    }
}

/// Returns the quantile 0.975 of Student's t for so many degrees of freedom, to four significant digits.
pub(super) fn student_t(freedom: u32) -> f64 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, t) in
            [(1, 12.706), (2, 4.303), (8, 2.306), (9, 2.262), (19, 2.093), (30, 2.042), (1000, 1.962)]
        {
            assert!((student_t(freedom) - t).abs() < 6e-4, "{freedom}: {}", student_t(freedom));
        }
    }

    #[test]
    fn the_interval_of_a_mean_is_that_of_the_textbook() {
        // The mean is 3 and the deviation 1.5811 of five values: 2.7764 · 1.5811 / √5.
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((estimate.mean - 3.0).abs() < 1e-12);
        assert!((estimate.half_width.unwrap() - 1.9632).abs() < 1e-3);
    }

    #[test]
    fn one_value_has_a_mean_and_no_interval() {
        assert_eq!(Estimate::of(&[7.0]), Some(Estimate { mean: 7.0, half_width: None }));
        assert_eq!(Estimate::of(&[]), None);
    }
}
