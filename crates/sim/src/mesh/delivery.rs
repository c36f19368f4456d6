//! The share of frames that links deliver.

use std::borrow::Cow;

/// The distribution of the share of frames that a link delivers. For every frame and receiver a share from 0 to 1 is
/// drawn, which is the probability that the frame arrives.
///
/// The distribution is given by quantiles at equal steps of probability, from the least share to the greatest. Between
/// two neighbouring quantiles it is uniform. Two quantiles are thus the bounds of a uniform distribution, and a single
/// one is a constant.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery(Cow<'static, [f64]>);

impl Delivery {
    /// Links deliver all frames.
    pub const ALL: Self = Self(Cow::Borrowed(&[1.0]));

    /// Returns the distribution with these quantiles. Returns `None` if there are none, if they do not ascend, or if
    /// any is outside 0 to 1.
    pub fn new(mut quantiles: Vec<f64>) -> Option<Self> {
        let shares = quantiles.iter().all(|share| (0.0..=1.0).contains(share));
        // All shares are equal, so one quantile says the same, and `is_all` sees it.
        if quantiles.first() == quantiles.last() {
            quantiles.truncate(1);
        }
        (shares && quantiles.is_sorted() && !quantiles.is_empty()).then_some(Self(quantiles.into()))
    }

    /// Returns the quantiles, the least first.
    pub fn quantiles(&self) -> &[f64] {
        &self.0
    }

    /// Returns whether every frame is delivered.
    pub(super) fn is_all(&self) -> bool {
        // The quantiles ascend, so the least one decides.
        self.0[0] >= 1.0
    }

    /// Returns the quantile at probability `unit`, which is from 0 to below 1.
    pub(super) fn at(&self, unit: f64) -> f64 {
        let place = unit * (self.0.len() - 1) as f64;
        #[allow(clippy::cast_sign_loss)]
        match &self.0[place as usize..] {
            [least, most, ..] => least + (most - least) * place.fract(),
            // A constant share, or a `place` that was rounded up to the last quantile.
            [last] => *last,
            [] => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delivery_shares_of_links_are_uniform_between_equidistant_quantiles() {
        let at = |quantiles: &[f64], unit| Delivery::new(quantiles.to_vec()).unwrap().at(unit);
        for (quantiles, unit, share) in [
            (&[0.75][..], 0.9, 0.75),
            (&[0.75, 1.0], 0.5, 0.875),
            (&[0.5, 0.9, 1.0], 0.25, 0.7),
            (&[0.5, 0.9, 1.0], 0.5, 0.9),
            (&[0.5, 0.9, 1.0], 0.75, 0.95),
            (&[0.5, 0.9, 0.9], 0.75, 0.9),
        ] {
            assert!((at(quantiles, unit) - share).abs() < 1e-12, "{quantiles:?} {unit}");
        }
    }

    #[test]
    fn quantiles_of_link_delivery_must_ascend_from_0_to_1() {
        for quantiles in [&[][..], &[0.9, 0.8], &[0.5, 1.1], &[-0.1, 0.5], &[f64::NAN]] {
            assert_eq!(Delivery::new(quantiles.to_vec()), None, "{quantiles:?}");
        }
        assert_eq!(Delivery::new(vec![1.0, 1.0]), Some(Delivery::ALL));
    }
}
