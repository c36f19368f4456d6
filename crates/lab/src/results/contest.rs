//! Mechanisms under the same conditions, ordered by a metric as far as the seeds show an order.

use super::conditions::Conditions;
use super::number::significant;
use super::{Better, CellResult, Estimate, Metric, Ratio, headline};
use crate::lists::{grouped, listed};

/// The most conditions that have a sentence each.
const MOST_LINES: usize = 8;

/// The least distance of an interval from 1 that counts. Less may come from the rounding of numbers.
const ROUNDING: f64 = 1e-9;

/// The mechanisms under the same conditions, ordered by one metric.
///
/// A seed gives every mechanism the same losses and delays, so mechanisms are compared seed by seed. One is ahead if the whole
/// 95 % confidence interval of the ratio of their figures is on one side of 1.
#[derive(Clone, Debug)]
pub struct Contest<'a> {
    /// The metric that is compared.
    pub metric: Metric,
    /// The mechanisms, the best mean first. Those without a value in some seed come last.
    pub placings: Vec<Placing<'a>>,
}

/// The place of a mechanism in a contest.
#[derive(Clone, Copy, Debug)]
pub struct Placing<'a> {
    /// The mechanism with its runs.
    pub result: &'a CellResult,
    /// The mean and its interval; `None` if some seed has no value.
    pub estimate: Option<Estimate>,
    /// The ratio of this figure to that of the best; `None` for the best itself, and if it is not known.
    pub ratio: Option<Ratio>,
    /// Whether the seeds show that it is behind the best.
    pub is_behind: bool,
}

impl<'a> Contest<'a> {
    /// Compares cells of the same conditions; `None` if none has a value in every seed, or if the metric is neither good nor
    /// bad. Simulated and live cells are not compared: those of the first cell's mode are.
    pub fn of(metric: Metric, cells: impl IntoIterator<Item = &'a CellResult>) -> Option<Self> {
        let sign = match metric.better() {
            Better::Lower => 1.0,
            Better::Higher => -1.0,
            Better::Neither => return None,
        };
        let mut cells = cells.into_iter().peekable();
        let mode = &cells.peek()?.cell.mode;
        let alike = cells.filter(|cell| cell.cell.mode == *mode);
        let mut all: Vec<_> = alike.map(|cell| (metric.estimate_in_all(&cell.runs), cell)).collect();
        let rank = |estimate: &Option<Estimate>| estimate.map_or(f64::INFINITY, |it| it.mean * sign);
        all.sort_by(|a, b| rank(&a.0).total_cmp(&rank(&b.0)));
        let (Some(_), best) = *all.first()? else { return None };
        let placing = |(estimate, result): (Option<Estimate>, &'a CellResult)| {
            let ratio = (!std::ptr::eq(result, best)).then(|| ratio(metric, result, best)).flatten();
            let is_behind = ratio.and_then(|ratio| ratio.interval).is_some_and(|(low, high)| {
                if metric.better() == Better::Lower { low > 1.0 + ROUNDING } else { high < 1.0 - ROUNDING }
            });
            Placing { result, estimate, ratio, is_behind }
        };
        Some(Self { metric, placings: all.into_iter().map(placing).collect() })
    }

    /// Compares the mechanisms under each condition, in the order of the conditions.
    pub fn all(metric: Metric, results: &'a [CellResult]) -> Vec<Self> {
        let groups = grouped(results, |a, b| a.cell.same_conditions(&b.cell));
        groups.into_iter().filter_map(|group| Self::of(metric, group)).collect()
    }

    /// Returns the best, and those that the seeds do not show to be behind it.
    pub fn leaders(&self) -> impl Iterator<Item = &Placing<'a>> {
        self.placings.iter().filter(|placing| !placing.is_behind && placing.estimate.is_some())
    }

    /// Returns those behind the best, the farthest last.
    pub fn behind(&self) -> impl DoubleEndedIterator<Item = &Placing<'a>> {
        self.placings.iter().filter(|placing| placing.is_behind)
    }

    /// Returns whether the seeds show that any mechanism is behind the best.
    pub fn is_decided(&self) -> bool {
        self.behind().next().is_some()
    }

    /// Returns a sentence on what the seeds show; `None` if fewer than two mechanisms have the figure.
    pub fn sentence(&self) -> Option<String> {
        let metric = self.metric;
        let known = self.placings.iter().filter(|placing| placing.estimate.is_some()).count();
        let best = self.placings.first().filter(|_| known > 1)?;
        let title = metric.title();
        let extreme = if metric.better() == Better::Lower { "lowest" } else { "highest" };
        let mean = best.estimate.map_or(f64::NAN, |estimate| estimate.mean);
        let figure = format!("{} {}", significant(mean, metric.digits()), metric.unit());
        let (name, figure) = (best.name(), figure.trim_end());
        if !self.is_decided() {
            let all = if known == 2 { "both mechanisms".to_owned() } else { format!("{known} mechanisms") };
            return Some(format!(
                "{title}: the seeds do not tell {all} apart; {extreme} is {name} ({figure})."
            ));
        }
        let alike: Vec<&str> = self.leaders().skip(1).map(Placing::name).collect();
        let also = match alike.as_slice() {
            [] => String::new(),
            several => format!("; the seeds do not tell {} apart from it", listed(several, 6, "others")),
        };
        Some(format!("{title}: {extreme} with {name} ({figure}){also}."))
    }
}

impl<'a> Placing<'a> {
    /// Returns the name of the mechanism.
    pub fn name(&self) -> &'a str {
        self.result.cell.label()
    }
}

/// Returns the ratio of the figure of `first` to that of `second`, over the seeds in which both have one.
fn ratio(metric: Metric, first: &CellResult, second: &CellResult) -> Option<Ratio> {
    Ratio::of(&first.pairs(second, |run| metric.of_run(run)).flatten().collect::<Vec<_>>())
}

/// Returns a line for each condition and metric on the best mechanism; empty if no condition has two mechanisms.
pub(super) fn sentences(results: &[CellResult]) -> String {
    let headline = headline(results);
    let metrics = if headline == Metric::Delay { vec![Metric::Pdr, headline] } else { vec![headline] };
    let conditions = Conditions::of(results.iter().map(|result| &result.cell));
    let contests = |metric: &Metric| Contest::all(*metric, results);
    let contests: Vec<Contest> = metrics.iter().flat_map(contests).collect();
    let line = |contest: &Contest| {
        let place = conditions.describe(&contest.placings.first()?.result.cell);
        let gap = if place.is_empty() { "" } else { ": " };
        Some(format!("{place}{gap}{}\n", contest.sentence()?))
    };
    let all: Vec<String> = contests.iter().filter_map(line).collect();
    let lines = all.iter().take(MOST_LINES).map(String::as_str).collect::<String>();
    match all.len() {
        0 => String::new(),
        count if count > MOST_LINES => format!("\n{lines}… and {} more.\n", count - MOST_LINES),
        _ => format!("\n{lines}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cell, RunResult};
    use super::*;

    fn result(mechanism: &str, clients: u32, medians: &[f64]) -> CellResult {
        let run =
            |(seed, &fct): (u64, &f64)| RunResult { seed, fct_s: vec![Some(fct)], ..RunResult::default() };
        CellResult {
            cell: Cell { mechanism: mechanism.into(), clients, ..Cell::default() },
            runs: (1..).zip(medians).map(run).collect(),
            bounds: Vec::new(),
            published: None,
        }
    }

    #[test]
    fn an_order_is_told_only_where_the_intervals_carry_it() {
        let results = [
            result("default", 1, &[20.0, 21.0, 22.0]),
            result("a", 1, &[10.0, 11.0, 12.0]),
            result("b", 1, &[10.1, 11.1, 12.3]),
            result("alone", 2, &[1.0, 2.0, 3.0]),
        ];
        let text = sentences(&results);
        assert_eq!(
            text,
            "\n1 client: median FCT: lowest with a (11.00 s); the seeds do not tell b apart from it.\n"
        );
        let one_seed: Vec<_> =
            ["a", "b"].map(|name| result(name, 1, &[if name == "a" { 1.0 } else { 9.0 }])).into();
        assert_eq!(
            sentences(&one_seed),
            "\nmedian FCT: the seeds do not tell both mechanisms apart; lowest is a (1.000 s).\n"
        );
    }

    #[test]
    fn seeds_are_paired() {
        // Each seed is 1 % slower with b, and the seeds differ by much more than 1 %.
        let seconds = [100.0, 200.0, 300.0, 400.0];
        let slower = seconds.map(|s| s * 1.01 + s % 7.0 * 1e-3);
        let results = [result("a", 1, &seconds), result("b", 1, &slower)];
        let contest = &Contest::all(Metric::MedianFct, &results)[0];
        let counts = (contest.leaders().count(), contest.behind().count());
        assert_eq!((contest.placings[0].name(), counts), ("a", (1, 1)));
    }

    #[test]
    fn many_conditions_are_cut_short() {
        let results: Vec<_> =
            (1..=20).flat_map(|clients| ["a", "b"].map(|name| result(name, clients, &[1.0, 2.0]))).collect();
        let text = sentences(&results);
        assert!(text.ends_with("… and 12 more.\n") && text.lines().count() == MOST_LINES + 2, "{text}");
        assert_eq!(sentences(&results[..1]), "");
    }
}
