//! Contests: mechanisms under the same conditions, ordered by a metric where differences are significant.

use super::significance::{by_chance, holm};
use super::{Better, CellResult, Metric, PairedRatio};
use coapace_run::measured::Estimate;

/// The largest ratio that counts as near the best.
pub(crate) const NEAR: f64 = 1.05;

/// The mechanisms under the same conditions, ordered by one metric.
///
/// Each seed gives every mechanism the same losses and delays, so mechanisms are compared seed by seed, by a paired t
/// test of the logarithms. Each mechanism is compared with the best one. With many mechanisms, some would differ from
/// the best one by chance alone, so the level of 5 % is for all of these comparisons together (Holm 1979).
#[derive(Clone, Debug)]
pub struct Contest<'a> {
    /// The metric by which mechanisms are compared.
    pub metric: Metric,
    /// The mechanisms, the best mean first. Mechanisms without a value in some seed come last.
    pub placings: Vec<Placing<'a>>,
}

/// The result of a mechanism in a contest.
#[derive(Clone, Copy, Debug)]
pub struct Placing<'a> {
    /// The mechanism with its runs.
    pub result: &'a CellResult,
    /// The mean and its interval; `None` if some seed has no value.
    pub estimate: Option<Estimate>,
    /// The ratio of this value to the best value; `None` for the best mechanism itself, and if the ratio is unknown.
    pub ratio: Option<PairedRatio>,
    /// Whether the mechanism is significantly worse than the best.
    pub is_behind: bool,
}

impl<'a> Contest<'a> {
    /// Compares cells with the same conditions. Returns `None` if none has a value in every seed, or if neither small
    /// nor large values of the metric are better. Only cells with the first cell's mode, simulated or live, are
    /// compared.
    pub fn of(metric: Metric, cells: impl IntoIterator<Item = &'a CellResult>) -> Option<Self> {
        let sign = match metric.better() {
            Better::Lower => 1.0,
            Better::Higher => -1.0,
            Better::Neither => return None,
        };
        let mut cells = cells.into_iter().peekable();
        // With the same seed, a run of another mode still has other events.
        let mode = &cells.peek()?.cell.mode;
        let alike = cells.filter(|cell| cell.cell.mode == *mode);
        let mut all: Vec<_> = alike.map(|cell| (metric.estimate_in_all(&cell.runs), cell)).collect();
        // Unknown values are infinite, so they come last whichever direction is better.
        let rank = |estimate: &Option<Estimate>| estimate.map_or(f64::INFINITY, |it| it.mean * sign);
        all.sort_by(|a, b| rank(&a.0).total_cmp(&rank(&b.0)));
        let (Some(_), best) = *all.first()? else { return None };
        let rivals = all.iter().map(|(_, result)| *result).filter(|result| !std::ptr::eq(*result, best));
        let pairs: Vec<Vec<(f64, f64)>> = rivals.map(|rival| pairs(metric, rival, best)).collect();
        // Only now, because Holm's levels depend on the number of comparisons.
        let shown = holm(&pairs.iter().map(|pairs| by_chance(pairs)).collect::<Vec<_>>());
        let mut compared = pairs.iter().map(|pairs| PairedRatio::of(pairs)).zip(shown);
        let placing = |(estimate, result): (Option<Estimate>, &'a CellResult)| {
            let (ratio, is_shown) =
                // The comparisons have the sequence of `all`, without the best.
                if std::ptr::eq(result, best) { (None, false) } else { compared.next().unwrap_or_default() };
            // Best is the best mean, and a rival may still be better seed by seed.
            let is_worse = ratio.is_some_and(|ratio| (ratio.mean - 1.0) * sign > 0.0);
            Placing { result, estimate, ratio, is_behind: is_shown && is_worse }
        };
        Some(Self { metric, placings: all.into_iter().map(placing).collect() })
    }

    /// Returns the mechanisms with a value in every seed.
    pub fn known(&self) -> impl Iterator<Item = &Placing<'a>> {
        self.placings.iter().filter(|placing| placing.estimate.is_some())
    }

    /// Returns how many mechanisms are at most 5 % worse than the best, including the best.
    pub fn near(&self) -> usize {
        self.known().filter(|placing| placing.worse(self.metric) <= NEAR).count()
    }

    /// Returns the mechanism that is the farthest behind the best, and the ratio of its value to the best; `None` if
    /// only one mechanism has a value.
    pub fn farthest(&self) -> Option<(&Placing<'a>, f64)> {
        let worse = |placing: &&Placing| placing.worse(self.metric);
        let far = self.known().max_by(|a, b| worse(a).total_cmp(&worse(b)))?;
        Some((far, far.ratio?.mean))
    }

    /// Returns the best, and the mechanisms that tie with it.
    pub fn leaders(&self) -> impl Iterator<Item = &Placing<'a>> {
        self.placings.iter().filter(|placing| !placing.is_behind && placing.estimate.is_some())
    }

    /// Returns the mechanisms behind the best, the farthest last.
    pub fn behind(&self) -> impl DoubleEndedIterator<Item = &Placing<'a>> {
        self.placings.iter().filter(|placing| placing.is_behind)
    }

    /// Returns whether any mechanism is significantly worse than the best.
    pub fn is_decided(&self) -> bool {
        self.behind().next().is_some()
    }
}

impl<'a> Placing<'a> {
    /// Returns how many times worse the mechanism is than the best, by this metric; at least 1.
    pub fn worse(&self, metric: Metric) -> f64 {
        let ratio = self.ratio.map_or(1.0, |ratio| ratio.mean);
        (if metric.better() == Better::Lower { ratio } else { 1.0 / ratio }).max(1.0)
    }

    /// Returns the name of the mechanism.
    pub fn name(&self) -> &'a str {
        self.result.cell.label()
    }
}

/// Returns the values of `first` and `second`, for each seed in which both have one.
fn pairs(metric: Metric, first: &CellResult, second: &CellResult) -> Vec<(f64, f64)> {
    first.pairs(second, |run| metric.of_run(run)).flatten().collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::Cell;
    use super::*;
    use coapace_run::measured::RunResult;

    /// Makes a cell with one run for each of these completion times of a client.
    pub(crate) fn result(mechanism: &str, clients: u32, medians: &[f64]) -> CellResult {
        let run = |(seed, &fct): (u64, &f64)| RunResult {
            seed,
            fct_s: vec![Some(fct)],
            exchanges: vec![1],
            ..RunResult::default()
        };
        CellResult {
            cell: Cell { mechanism: mechanism.into(), clients, ..Cell::default() },
            runs: (1..).zip(medians).map(run).collect(),
        }
    }

    fn contest(results: &[CellResult]) -> Contest<'_> {
        Contest::of(Metric::MedianFct, results).unwrap()
    }

    #[test]
    fn two_mechanisms_are_ordered_only_if_their_difference_is_significant() {
        let results = [
            result("default", 1, &[20.0, 21.0, 22.0]),
            result("a", 1, &[10.0, 11.0, 12.0]),
            result("b", 1, &[10.1, 11.1, 12.3]),
        ];
        let contest = contest(&results);
        assert_eq!(contest.leaders().map(Placing::name).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(contest.behind().map(Placing::name).collect::<Vec<_>>(), ["default"]);
        let one_seed = [result("a", 1, &[1.0]), result("b", 1, &[9.0])];
        assert!(!self::contest(&one_seed).is_decided());
    }

    #[test]
    fn mechanisms_are_compared_by_pairs_of_equal_seeds() {
        // Each seed is 1 % slower with b, and the seeds differ by much more than 1 %.
        let seconds = [100.0, 200.0, 300.0, 400.0];
        let slower = seconds.map(|s| s * 1.01 + s % 7.0 * 1e-3);
        let results = [result("a", 1, &seconds), result("b", 1, &slower)];
        let contest = contest(&results);
        let counts = (contest.leaders().count(), contest.behind().count());
        assert_eq!((contest.placings[0].name(), counts), ("a", (1, 1)));
    }

    #[test]
    fn comparisons_of_many_mechanisms_need_larger_differences() {
        // By itself, b differs from a with a probability of chance of 4 %.
        let (best, near) = ([10.0, 11.0, 12.0, 13.0], [10.2, 11.9, 12.5, 14.4]);
        let two = [result("a", 1, &best), result("b", 1, &near)];
        assert_eq!(contest(&two).behind().count(), 1);
        let others = (0..10).map(|number| result(&format!("c{number}"), 1, &near));
        let many: Vec<_> = two.into_iter().chain(others).collect();
        assert_eq!(contest(&many).behind().count(), 0, "one in twenty comparisons shows as much by chance");
    }
}
