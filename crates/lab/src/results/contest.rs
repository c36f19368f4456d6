//! Which mechanism is best under the same conditions, as far as the seeds can tell.

use super::conditions::Conditions;
use super::number::significant;
use super::{Better, CellResult, Metric, Ratio};

/// The most conditions that are told one by one.
const MOST_LINES: usize = 8;

/// The mechanisms under the same conditions, by one metric.
#[derive(Clone, Debug)]
pub struct Contest<'a> {
    /// The metric that is compared.
    pub metric: Metric,
    /// The mechanism with the best value.
    pub best: &'a CellResult,
    /// Mechanisms that the seeds do not tell apart from it: the 95 % interval of the ratio, seed by seed, includes 1.
    pub alike: Vec<&'a CellResult>,
    /// Mechanisms that are worse.
    pub worse: Vec<&'a CellResult>,
}

impl<'a> Contest<'a> {
    /// Compares cells of the same conditions; `None` if fewer than two have the metric, or if it is neither good nor bad.
    pub fn of(metric: Metric, cells: &[&'a CellResult]) -> Option<Self> {
        let value = |cell: &CellResult| metric.estimate(&cell.runs).map(|estimate| estimate.mean);
        let mut known: Vec<(f64, &'a CellResult)> =
            cells.iter().filter_map(|cell| Some((value(cell)?, *cell))).collect();
        match metric.better() {
            Better::Lower => known.sort_by(|a, b| a.0.total_cmp(&b.0)),
            Better::Higher => known.sort_by(|a, b| b.0.total_cmp(&a.0)),
            Better::Neither => return None,
        }
        let ((_, best), others) = known.split_first()?;
        if others.is_empty() {
            return None;
        }
        let is_alike =
            |other: &&CellResult| !Ratio::by_seed(metric, other, best).is_some_and(|ratio| ratio.is_clear());
        let (alike, worse) = others.iter().map(|(_, other)| *other).partition(is_alike);
        Some(Self { metric, best, alike, worse })
    }

    /// Compares all mechanisms that ran under the same conditions, in the order of the conditions.
    pub fn all(metric: Metric, results: &'a [CellResult]) -> Vec<Self> {
        let mut groups: Vec<Vec<&CellResult>> = Vec::new();
        for result in results {
            match groups.iter_mut().find(|group| group[0].cell.same_conditions(&result.cell)) {
                Some(group) => group.push(result),
                None => groups.push(vec![result]),
            }
        }
        groups.iter().filter_map(|group| Self::of(metric, group)).collect()
    }

    /// Says in a sentence what the seeds tell.
    pub fn sentence(&self) -> String {
        let Self { metric, best, alike, worse } = self;
        let title = metric.title();
        let extreme = if metric.better() == Better::Lower { "lowest" } else { "highest" };
        let name = |cell: &&CellResult| cell.cell.mechanism.clone();
        let figure = |cell: &CellResult| {
            let value = metric.estimate(&cell.runs).map_or(f64::NAN, |estimate| estimate.mean);
            format!("{} {}", significant(value, metric.digits()), metric.unit()).trim_end().to_owned()
        };
        if worse.is_empty() {
            let all = if alike.len() == 1 {
                "both mechanisms".to_owned()
            } else {
                format!("{} mechanisms", alike.len() + 1)
            };
            return format!(
                "{title}: the seeds do not tell {all} apart; {extreme} is {} ({}).",
                name(best),
                figure(best)
            );
        }
        let also = match alike.as_slice() {
            [] => String::new(),
            several => {
                format!(
                    "; the seeds do not tell {} apart from it",
                    listed(&several.iter().map(name).collect::<Vec<_>>())
                )
            }
        };
        format!("{title}: {extreme} with {} ({}){also}.", name(best), figure(best))
    }
}

/// Lists names: `a`, `a and b`, `a, b and c`; of many, the first two and how many others.
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [several @ .., last] if names.len() <= 6 => format!("{} and {last}", several.join(", ")),
        [first, second, ..] => format!("{first}, {second} and {} others", names.len() - 2),
    }
}

/// Says who is best, a line for each condition and metric; nothing where nobody is compared.
pub(super) fn sentences(results: &[CellResult]) -> String {
    let headline = Metric::headline(results);
    let metrics = if headline == Metric::Delay { vec![Metric::Pdr, headline] } else { vec![headline] };
    let conditions = Conditions::of(results.iter().map(|result| &result.cell));
    let contests = |metric: &Metric| Contest::all(*metric, results);
    let contests: Vec<Contest> = metrics.iter().flat_map(contests).collect();
    let line = |contest: &Contest| {
        let place = conditions.describe(&contest.best.cell);
        let gap = if place.is_empty() { "" } else { ": " };
        format!("{place}{gap}{}\n", contest.sentence())
    };
    let lines: String = contests.iter().take(MOST_LINES).map(line).collect();
    match contests.len() {
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
        // Each seed is 1 % slower with b, and the seeds differ by much more than that.
        let seconds = [100.0, 200.0, 300.0, 400.0];
        let slower = seconds.map(|s| s * 1.01 + s % 7.0 * 1e-3);
        let results = [result("a", 1, &seconds), result("b", 1, &slower)];
        let contest = &Contest::all(Metric::MedianFct, &results)[0];
        assert_eq!(
            (contest.best.cell.mechanism.as_str(), contest.alike.len(), contest.worse.len()),
            ("a", 0, 1)
        );
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
