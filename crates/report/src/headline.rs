//! The results in a few sentences.

use coapace_lab::number::percent;
use coapace_lab::output::{Conclusion, gave_up};
use coapace_lab::papers::tally;
use coapace_lab::results::{CellResult, Metric};

use super::measure::measures;
use super::view::{View, metrics};

/// The relative error up to which a published value counts as met.
pub(super) const MET: f64 = coapace_lab::papers::Compared::MET;

/// Returns plain sentences, computed from the results. Clients that gave up come first, because they show how far the other
/// values can be trusted.
pub(super) fn headline(view: &View) -> Vec<String> {
    if view.groups.is_empty() {
        return vec!["There are no results.".into()];
    }
    if let Some(matrix) = view.coexistence {
        return matrix.sentences();
    }
    let results: Vec<&CellResult> = view.cells().map(|(_, cell)| cell.result).collect();
    let published = [gave_up(&results), reproduction(view), tables(view), orders(view)];
    published.into_iter().flatten().chain(conclusions(view, &results)).collect()
}

/// Returns sentences about the first main metric, and for flows also about the packet delivery ratio, because only
/// messages that arrived have a delay. The table of [stakes](super::tables::stakes) has the other main metrics.
fn conclusions(view: &View, results: &[&CellResult]) -> Vec<String> {
    let mut leading =
        measures(view).into_iter().filter(|measure| measure.leads).map(|measure| measure.metric);
    let first = leading.next();
    let delivery = leading.find(|metric| *metric == Metric::Pdr);
    let metrics = delivery.into_iter().chain(first);
    let conclusions = metrics.filter_map(|metric| Conclusion::of(metric, results));
    conclusions.flat_map(|conclusion| conclusion.sentences()).collect()
}

/// Returns a sentence on how many published values are met; `None` if no value was published outside of tables.
fn reproduction(view: &View) -> Option<String> {
    let compared = view.plain();
    let worst = compared.first()?;
    let met = compared.iter().filter(|compared| compared.value.is_met()).count();
    let all = compared.len();
    let metrics = metrics(&compared);
    let values = if metrics == [Metric::MedianFct] { "medians" } else { "values" };
    let verb = if met == 1 { "is" } else { "are" };
    let start = format!("{met} of {all} published {values} {verb} met within {:.0} %", MET * 100.0);
    let place = place(worst.title);
    Some(match worst.error() {
        Some(error) => format!("{start}; farthest off is {}{place}, at {}.", worst.cell.name, percent(error)),
        // Completion times are missing only where clients gave up; another value has several possible reasons.
        None if worst.value.metric == Metric::MedianFct => {
            format!("{start}; {}{place} has no median, for too many clients gave up.", worst.cell.name)
        }
        None => format!("{start}; {}{place} has no {}.", worst.cell.name, worst.value.metric.title()),
    })
}

/// Returns a sentence on how many values of published tables are within the factor of their table; `None` if there are none.
fn tables(view: &View) -> Option<String> {
    let tabled = view.tabled();
    let within = tabled.iter().filter(|one| one.judged.within()).count();
    (!tabled.is_empty()).then(|| {
        format!(
            "{within} of {} values of published tables are within the factors that their tables allow.",
            tabled.len()
        )
    })
}

/// Returns a sentence on how many published rankings were confirmed; `None` if none was published.
fn orders(view: &View) -> Option<String> {
    let verdicts: Vec<_> = view.verdicts().into_iter().map(|(_, verdict)| verdict).collect();
    (!verdicts.is_empty()).then(|| format!("Published orders: {}.", tally(&verdicts)))
}

fn place(title: &str) -> String {
    // Inside a sentence commas separate the conditions, and not the dots of a heading.
    if title.is_empty() { String::new() } else { format!(" ({})", title.replace(" · ", ", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CellGroup, Report};
    use coapace_lab::papers::{Published, References};
    use coapace_lab::results::Cell;
    use coapace_run::measured::{FlowResult, RunResult};

    /// Makes a cell with a run of one client for each of these completion times.
    fn result(mechanism: &str, clients: u32, fct_s: &[f64], spurious: u64) -> CellResult {
        let run = |(seed, fct_s): (u64, &f64)| RunResult {
            seed,
            fct_s: vec![Some(*fct_s)],
            spurious,
            goodput_bps: 960.0,
            ..RunResult::default()
        };
        let cell = Cell { mechanism: mechanism.into(), clients, ..Cell::default() };
        CellResult { cell, runs: (1..).zip(fct_s).map(run).collect() }
    }

    fn said(results: Vec<CellResult>) -> String {
        said_beside(results, References::default())
    }

    /// Returns the sentences where a median of 33 s is published for each mechanism.
    fn said_with_medians(results: Vec<CellResult>) -> String {
        let mut references = References::default();
        for result in &results {
            references.publish(&result.cell, Published::value(Metric::MedianFct, 33.0, ""));
        }
        said_beside(results, references)
    }

    fn said_beside(results: Vec<CellResult>, references: References) -> String {
        let groups = CellGroup::by_conditions(results);
        let report = Report { groups, references, ..Report::default() };
        headline(&View::of(&report)).join(" ")
    }

    const LONG: [f64; 4] = [118.0, 116.0, 114.0, 116.0];
    const SHORT: [f64; 4] = [68.0, 67.0, 66.0, 67.0];
    /// About as long as [`SHORT`]: longer with some seeds, shorter with others.
    const ALIKE: [f64; 4] = [67.5, 67.6, 65.8, 67.3];

    #[test]
    fn the_headline_of_a_report_is_the_conclusion_on_the_first_metric() {
        let text = said(vec![result("default", 1, &LONG, 40), result("fasor", 1, &SHORT, 1)]);
        assert_eq!(
            text,
            "Lowest median FCT: fasor, 67.00\u{a0}s. No other is within 5 % of it; default is the farthest, with 1.73 times that."
        );
        let text = said(vec![result("default", 1, &SHORT, 0), result("fasor", 1, &ALIKE, 0)]);
        assert!(
            text.starts_with("Both published mechanisms tie by their median FCT over these seeds")
                && text.contains("hardly matters"),
            "{text}"
        );
    }

    /// Makes runs with one flow whose messages take about this many milliseconds, a run for each number.
    fn flowing(mechanism: &str, delays_ms: &[u64]) -> CellResult {
        let mut result = result(mechanism, 1, &[0.0; 4], 0);
        for (run, ms) in result.runs.iter_mut().zip(delays_ms) {
            run.fct_s.clear();
            run.duration_s = 10.0;
            let mut flow =
                FlowResult { offered: 20, reached: 20, message_bytes: 50, ..FlowResult::default() };
            (0..20).for_each(|i| flow.delays.add((ms + i) * 1_000));
            run.flows = vec![flow];
        }
        result
    }

    #[test]
    fn the_headline_for_flows_gives_delivery_and_delay() {
        let text = said(vec![flowing("default", &[116, 117, 115, 116]), flowing("fasor", &[67, 68, 66, 67])]);
        assert!(text.starts_with("Both published mechanisms tie by their packet delivery"), "{text}");
        assert!(text.contains(" Lowest delay: fasor, 0.076"), "{text}");
    }

    #[test]
    fn the_headline_names_the_published_median_with_the_largest_error() {
        let text = said_with_medians(vec![result("default", 1, &[33.0], 0), result("cocoa", 1, &[44.0], 0)]);
        assert!(
            text.starts_with(
                "1 of 2 published medians is met within 5 %; farthest off is cocoa, at +33.3\u{a0}%."
            ),
            "{text}"
        );
    }

    #[test]
    fn the_headline_mentions_clients_that_gave_up() {
        let mut results = vec![result("default", 1, &[1.0, 2.0, 3.0, 4.0], 0)];
        results[0].runs[0].fct_s.push(None);
        results[0].runs[0].fct_s.push(Some(2.0));
        let text = said_with_medians(results);
        assert!(
            text.starts_with("1 of 6 clients gave up: 1 with default (17 %). "),
            "they come first: {text}"
        );
    }
}
