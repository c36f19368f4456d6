//! The share of frames that links deliver.

use std::borrow::Cow;

/// The distribution of the share of frames that a link delivers, each from 0 to 1. The share is drawn for every frame and
/// receiver.
///
/// The distribution has quantiles at equal distances of probability, from the least share to the greatest. The share is uniform
/// between two neighbouring quantiles. Two quantiles are the bounds of a uniform distribution. One is a constant.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery(Cow<'static, [f64]>);

impl Delivery {
    /// Links deliver all frames.
    pub const ALL: Self = Self(Cow::Borrowed(&[1.0]));

    /// Returns the distribution with these quantiles; `None` if there are none, if they do not ascend, or if one is not a share.
    pub fn new(mut quantiles: Vec<f64>) -> Option<Self> {
        let shares = quantiles.iter().all(|share| (0.0..=1.0).contains(share));
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
        self.0[0] >= 1.0
    }

    /// Returns the share at probability `unit`, from 0 to 1, the latter excluded.
    pub(super) fn at(&self, unit: f64) -> f64 {
        let place = unit * (self.0.len() - 1) as f64;
        #[allow(clippy::cast_sign_loss)]
        match &self.0[place as usize..] {
            [least, most, ..] => least + (most - least) * place.fract(),
            [last] => *last,
            [] => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_uniform_between_quantiles_at_equal_distances() {
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
    fn what_does_not_ascend_or_is_no_share_is_no_distribution() {
        for quantiles in [&[][..], &[0.9, 0.8], &[0.5, 1.1], &[-0.1, 0.5], &[f64::NAN]] {
            assert_eq!(Delivery::new(quantiles.to_vec()), None, "{quantiles:?}");
        }
        assert_eq!(Delivery::new(vec![1.0, 1.0]), Some(Delivery::ALL));
    }
}
