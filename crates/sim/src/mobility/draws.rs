//! The random numbers of a moving node, one after the other. No other node's movement depends on them.

use crate::Stream;

pub(super) struct MovementDraws {
    stream: Stream,
    node: u64,
    drawn: u64,
}

impl MovementDraws {
    pub(super) fn new(stream: Stream, node: u64) -> Self {
        Self { stream, node, drawn: 0 }
    }

    /// Returns a number from 0 to below 1.
    pub(super) fn unit(&mut self) -> f64 {
        self.drawn += 1;
        self.stream.unit(self.node, self.drawn, 0)
    }

    /// Returns a whole number in 0..`bound`, uniformly.
    pub(super) fn below(&mut self, bound: u32) -> usize {
        self.drawn += 1;
        self.stream.below(u64::from(bound), self.node, self.drawn, 0) as usize
    }

    /// Returns a number between two bounds, uniformly.
    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Returns a number of the normal distribution with mean 0 and deviation 1 (G. E. P. Box and M. E. Muller 1958).
    pub(super) fn normal(&mut self) -> f64 {
        // 1 − u is never 0.
        let radius = (-2.0 * libm::log(1.0 - self.unit())).sqrt();
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Luck;

    #[test]
    fn normal_random_draws_have_mean_0_and_standard_deviation_1() {
        let mut draws = MovementDraws::new(Luck::new(1).stream("normal"), 0);
        let numbers: Vec<f64> = (0..100_000).map(|_| draws.normal()).collect();
        let mean = numbers.iter().sum::<f64>() / 1e5;
        let variance = numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / 1e5;
        // Five standard errors: 5/√100,000 of the mean, and √2 times as much of the variance.
        assert!(mean.abs() < 0.016, "{mean}");
        assert!((variance - 1.0).abs() < 0.023, "{variance}");
    }
}
