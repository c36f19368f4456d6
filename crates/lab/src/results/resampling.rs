//! Means of a few runs that are drawn from many: what chance makes of a figure of as few runs.

use coapace_sim::Luck;

use super::{Metric, RunResult};

/// The number of means that are drawn.
const DRAWS: u32 = 10_000;

/// Returns the share of the means of `few` of these runs, drawn with replacement, that are below `value`; equal ones count half.
/// Runs without the metric are left out. Returns `None` if no run has it, or if `few` is 0.
///
/// The draws are the same for every call.
pub(super) fn quantile_of(value: f64, metric: Metric, runs: &[RunResult], few: u32) -> Option<f64> {
    let values: Vec<f64> = runs.iter().filter_map(|run| metric.of_run(run)).collect();
    if values.is_empty() || few == 0 {
        return None;
    }
    let luck = Luck::new(1).stream("resampling");
    let below = |draw: u32| {
        let one = |place: u32| values[luck.below(values.len() as u64, draw.into(), place.into(), 0) as usize];
        let mean = (0..few).map(one).sum::<f64>() / f64::from(few);
        f64::from(u8::from(mean < value)).midpoint(u8::from(mean <= value).into())
    };
    Some((0..DRAWS).map(below).sum::<f64>() / f64::from(DRAWS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_the_quantile_that_means_of_as_few_runs_have() {
        // Means of two of 0 and 1 are 0, 1/2 and 1 with the probabilities 1/4, 1/2 and 1/4.
        let runs = [0.0, 1.0].map(|throughput| RunResult { seed: 1, throughput, ..RunResult::default() });
        let quantile = |value| quantile_of(value, Metric::Throughput, &runs, 2).unwrap();
        for (value, expected) in [(-1.0, 0.0), (0.0, 0.125), (0.4, 0.25), (0.5, 0.5), (0.6, 0.75), (2.0, 1.0)]
        {
            // Four standard deviations of the share of 10,000 draws.
            assert!((quantile(value) - expected).abs() < 0.02, "{value}: {}", quantile(value));
        }
        assert_eq!(quantile_of(1.0, Metric::Throughput, &[], 2), None);
        assert_eq!(quantile_of(1.0, Metric::SettlingTime, &runs, 2), None);
    }
}
