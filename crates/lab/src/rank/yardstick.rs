//! The baseline of a cell: the best published value, and the ratios of other values to it.

use crate::results::{Better, CellResult, Metric, PairedRatio};
use coapace_run::measured::RunResult;

/// The best value of one metric among published mechanisms under the same conditions: the smallest geometric mean over
/// the seeds, or the largest if larger values are better. If a published mechanism has a value of zero, as the
/// throughput of a collapsed network may be, arithmetic means are compared.
#[derive(Clone, Copy, Debug)]
pub struct Yardstick<'a> {
    /// The metric.
    pub metric: Metric,
    /// The mechanism with the best value, with its runs.
    pub best: &'a CellResult,
    /// Whether means are geometric.
    is_geometric: bool,
}

impl<'a> Yardstick<'a> {
    /// Returns the best of `published` cells with equal conditions. Returns `None` if none has a value in every seed,
    /// if no exchange or transfer was completed, or if neither small nor large values of the metric are better.
    pub fn of(metric: Metric, published: impl IntoIterator<Item = &'a CellResult>) -> Option<Self> {
        let all: Vec<(Vec<f64>, &CellResult)> =
            published.into_iter().filter_map(|cell| Some((values(metric, cell)?, cell))).collect();
        // One zero makes a geometric mean zero, or worse, undefined.
        let is_geometric = all.iter().flat_map(|(values, _)| values).all(|value| *value > 0.0);
        let center = |values: &[f64]| {
            let sum: f64 =
                if is_geometric { values.iter().map(|it| it.ln()).sum() } else { values.iter().sum() };
            sum / values.len() as f64
        };
        let ranked = all.iter().map(|(values, cell)| (center(values), *cell));
        // The first of equal ones is the best.
        let (value, best) = match metric.better() {
            Better::Lower => ranked.reduce(|a, b| if b.0 < a.0 { b } else { a }),
            Better::Higher => ranked.reduce(|a, b| if b.0 > a.0 { b } else { a }),
            Better::Neither => None,
        }?;
        // If nobody completed anything, no ratio means anything.
        let is_nothing = metric.better() == Better::Higher && !is_geometric && value <= 0.0;
        (!is_nothing).then_some(Self { metric, best, is_geometric })
    }

    /// Returns how many times worse the value of `cell` is than the best, seed by seed, with its 95 % interval: see
    /// [`PairedRatio`]. The ratio is infinite, without an interval, if some seed of `cell` has no value.
    pub fn ratio(&self, cell: &CellResult) -> PairedRatio {
        let pairs = cell.pairs(self.best, |run| of_run(self.metric, run)).collect::<Option<Vec<_>>>();
        let Some(mut pairs) = pairs.filter(|pairs| !pairs.is_empty()) else {
            return PairedRatio { mean: f64::INFINITY, interval: None };
        };
        if self.metric.better() == Better::Higher {
            for pair in &mut pairs {
                // Turned over, so that more than 1 is worse for every metric.
                *pair = (pair.1, pair.0);
            }
        }
        // The same kind of mean as in `of`, or a rival might beat the best by another way of counting.
        let ratio = if self.is_geometric { PairedRatio::of(&pairs) } else { PairedRatio::of_means(&pairs) };
        // Without a ratio, both values are 0 and less is better: they are alike.
        ratio.unwrap_or(PairedRatio { mean: 1.0, interval: None })
    }
}

/// Returns the value of every seed; `None` if some seed has none.
fn values(metric: Metric, cell: &CellResult) -> Option<Vec<f64>> {
    let values = cell.runs.iter().map(|run| of_run(metric, run)).collect::<Option<Vec<_>>>()?;
    (!values.is_empty()).then_some(values)
}

/// Returns the mean of a metric over the seeds; `None` if some seed has no value.
pub(super) fn mean(metric: Metric, cell: &CellResult) -> Option<f64> {
    let values = values(metric, cell)?;
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the value of a run for a ranking, in which failures never improve a value. A run in which a client gave up
/// has no mean FCT. A run that did not settle counts with its whole measured time, including the time before the event,
/// which is more than any settling time. Published rankings use the [time in which it could have
/// settled](coapace_run::measured::Settling::observed_s).
pub fn of_run(metric: Metric, run: &RunResult) -> Option<f64> {
    match metric {
        // The mean is over clients that finished, so giving up would lower it.
        Metric::MeanFct if run.fct_s.iter().any(Option::is_none) => None,
        Metric::SettlingTime => run.settling.map(|settling| settling.time_s.unwrap_or(run.duration_s)),
        _ => metric.of_run(run),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Cell;
    use coapace_run::measured::Settling;

    fn cell(mechanism: &str, fct_s: &[Option<f64>], throughput: f64) -> CellResult {
        let run = |(seed, &fct): (u64, &Option<f64>)| RunResult {
            seed,
            fct_s: vec![fct, fct],
            throughput,
            ..RunResult::default()
        };
        CellResult {
            cell: Cell { mechanism: mechanism.into(), ..Cell::default() },
            runs: (1..).zip(fct_s).map(run).collect(),
        }
    }

    #[test]
    fn a_ratio_says_how_many_times_worse_for_metrics_in_either_direction() {
        let fast = cell("fast", &[Some(10.0), Some(20.0)], 4.0);
        let slow = cell("slow", &[Some(15.0), Some(30.0)], 2.0);
        let yardstick = Yardstick::of(Metric::MedianFct, [&slow, &fast]).unwrap();
        assert_eq!(yardstick.best.cell.mechanism, "fast");
        let ratio = yardstick.ratio(&slow);
        assert!((ratio.mean - 1.5).abs() < 1e-12);
        let (low, high) = ratio.interval.unwrap();
        assert!((low - 1.5).abs() < 1e-6 && (high - 1.5).abs() < 1e-6, "each seed has the same ratio");
        assert!((yardstick.ratio(&fast).mean - 1.0).abs() < 1e-12);
        let throughput = Yardstick::of(Metric::Throughput, [&slow, &fast]).unwrap();
        assert!((throughput.ratio(&slow).mean - 2.0).abs() < 1e-12);
    }

    #[test]
    fn a_mechanism_without_a_value_in_some_seed_is_infinitely_worse_and_never_the_baseline() {
        let whole = cell("whole", &[Some(50.0), Some(50.0)], 1.0);
        let gave_up = cell("gave up", &[Some(1.0), None], 1.0);
        for metric in [Metric::MedianFct, Metric::MeanFct, Metric::FctP90, Metric::FctMax] {
            let yardstick = Yardstick::of(metric, [&gave_up, &whole]).unwrap();
            assert_eq!(yardstick.best.cell.mechanism, "whole", "{metric}");
            assert_eq!(yardstick.ratio(&gave_up), PairedRatio { mean: f64::INFINITY, interval: None });
        }
        assert!(Yardstick::of(Metric::MedianFct, [&gave_up]).is_none());
    }

    #[test]
    fn means_are_compared_if_a_published_mechanism_has_zero_in_some_seed() {
        let [mut some, mut none] = ["some", "none"].map(|name| cell(name, &[None; 3], 0.0));
        for (run, throughput) in some.runs.iter_mut().zip([3.0, 4.0, 5.0]) {
            run.throughput = throughput;
        }
        none.runs[0].throughput = 2.0;
        let yardstick = Yardstick::of(Metric::Throughput, [&none, &some]).unwrap();
        assert_eq!(yardstick.best.cell.mechanism, "some");
        assert!((yardstick.ratio(&none).mean - 6.0).abs() < 1e-12, "4 by 2/3");
    }

    #[test]
    fn a_cell_in_which_no_mechanism_succeeds_has_no_baseline() {
        let none = cell("none", &[None], 0.0);
        assert!(Yardstick::of(Metric::Throughput, [&none]).is_none());
        assert!(Yardstick::of(Metric::Frames, [&none]).is_none(), "frames are neither good nor bad");
    }

    #[test]
    fn a_run_that_did_not_settle_counts_with_its_whole_measured_time() {
        let mut run = RunResult { duration_s: 300.0, ..RunResult::default() };
        assert_eq!(of_run(Metric::SettlingTime, &run), None, "there was no event");
        run.settling = Some(Settling { event_s: 180.0, ..Settling::default() });
        assert_eq!(of_run(Metric::SettlingTime, &run), Some(300.0));
        run.settling = Some(Settling { event_s: 180.0, time_s: Some(8.0), ..Settling::default() });
        assert_eq!(of_run(Metric::SettlingTime, &run), Some(8.0));
    }
}
