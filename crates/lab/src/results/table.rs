//! Results as a table for the terminal.

mod figures;
mod live;
mod orders;
mod parts;
mod style;

use std::collections::BTreeSet;

use comfy_table::Table;

use super::conditions::Conditions;
use super::number::{percent, significant, significant_or_dash};
use super::{BOUNDS, CellResult, Metric, Published, Summary, bound_of, contest, headline};
use crate::lists::grouped;
use style::{aligned, estimated};

/// A column. A table that is too wide loses its least important columns first.
struct Column {
    shows: Shows,
    header: String,
    cells: Vec<String>,
    /// The importance.
    worth: u8,
}

/// The content of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shows {
    /// A condition in which the cells differ.
    Condition,
    Mechanism,
    Metric(Metric),
    /// A published figure, or the distance from it.
    Published,
}

/// The importance of columns that are never left out.
const ESSENTIAL: u8 = u8::MAX;

/// The header of the column of mechanisms.
const MECHANISM: &str = "mechanism";

/// Returns an aligned table of `results`, a row for each cell. Common conditions stand above the table, and an explanation of
/// the columns below.
///
/// The table fits into `width` columns. Without a width, it fits into the terminal. Without a terminal, it is as wide as
/// necessary. A table that is too wide leaves out columns and names them below. Cells are not broken, and there are no
/// colours.
pub fn terminal_table(results: &[CellResult], width: Option<u16>) -> String {
    if results.is_empty() {
        return "no results\n".into();
    }
    let conditions = Conditions::of(results.iter().map(|result| &result.cell));
    let mut columns = columns(results, &conditions);

    let bound = width.or_else(|| Table::new().width()).map_or(usize::MAX, usize::from);
    let mut left_out = Vec::new();
    while columns.iter().map(Column::width).sum::<usize>() > bound
        && let Some(cheapest) = (0..columns.len()).min_by_key(|&place| columns[place].worth)
        && columns[cheapest].worth < ESSENTIAL
    {
        left_out.push(columns.remove(cheapest).header);
    }
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut has_bounds = false;
    for (row, result) in results.iter().enumerate() {
        rows.push(columns.iter().map(|column| column.cells[row].clone()).collect());
        // The bounds stand below the last mechanism of their conditions.
        let is_last = results.get(row + 1).is_none_or(|next| !next.cell.same_conditions(&result.cell));
        if is_last && columns.iter().any(|column| column.bound(result).is_some()) {
            has_bounds = true;
            let cell = |column: &Column| match column.shows {
                Shows::Mechanism => "bound".to_owned(),
                Shows::Condition => column.cells[row].clone(),
                Shows::Metric(_) | Shows::Published => column.bound(result).unwrap_or_default(),
            };
            rows.push(columns.iter().map(cell).collect());
        }
    }

    let common = conditions.describe_common();
    let gap = if common.is_empty() { "" } else { "\n\n" };
    let missing = match left_out.as_slice() {
        [] => String::new(),
        headers => format!("Left out for want of width: {}.\n", headers.join(", ")),
    };
    let bounds = if has_bounds { format!("{BOUNDS}\n") } else { String::new() };
    let shown: Vec<Metric> = columns.iter().filter_map(Column::metric).collect();
    let header = columns.iter().map(|column| column.header.clone());
    let is_number = |place: usize| !matches!(columns[place].shows, Shows::Condition | Shows::Mechanism);
    let sections = [
        contest::sentences(results),
        live::table(results),
        parts::flows(results),
        parts::populations(results),
        figures::table(results),
        orders::table(results),
    ];
    format!(
        "{common}{gap}{}\n\n{}\n{bounds}{missing}{}",
        aligned(header, rows, is_number),
        legend(results, &shown),
        sections.concat()
    )
}

/// Returns the units of the metrics in the table, and the meaning of ±.
fn legend(results: &[CellResult], shown: &[Metric]) -> String {
    let phrase = |metrics: Vec<&Metric>| {
        let headers = metrics.iter().map(|metric| metric.header()).collect::<Vec<_>>().join(", ");
        match metrics[0].unit() {
            "" => format!("{headers} from 0 to 1"),
            unit if unit.starts_with("per ") => format!("{headers} {unit}"),
            unit => format!("{headers} in {unit}"),
        }
    };
    let units = grouped(shown, |a, b| a.unit() == b.unit());
    let units = units.into_iter().map(phrase).collect::<Vec<_>>().join("; ");
    let several = results.iter().any(|result| result.runs.len() > 1);
    let interval = if several { " ±: half of the 95 % confidence interval over the seeds." } else { "" };
    format!("{units}.{interval}")
}

impl Column {
    fn new(shows: Shows, header: &str, worth: u8, cells: impl Iterator<Item = String>) -> Self {
        Self { shows, header: header.to_owned(), cells: cells.collect(), worth }
    }

    fn metric(&self) -> Option<Metric> {
        if let Shows::Metric(metric) = self.shows { Some(metric) } else { None }
    }

    /// Returns the bound of its metric in a cell.
    fn bound(&self, result: &CellResult) -> Option<String> {
        let metric = self.metric()?;
        Some(significant(bound_of(&result.bounds, metric)?.value, metric.digits()))
    }

    /// Returns the width with a blank on either side.
    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| cell.chars().count()).max();
        self.header.chars().count().max(cells.unwrap_or(0)) + 2
    }
}

fn columns(results: &[CellResult], conditions: &Conditions) -> Vec<Column> {
    let summaries: Vec<_> = results.iter().map(CellResult::summary).collect();
    let mut columns = Vec::new();
    for (place, name) in conditions.varying.iter().enumerate() {
        let cells = results.iter().map(|result| conditions.values(&result.cell)[place].clone());
        columns.push(Column::new(Shows::Condition, name, ESSENTIAL, cells));
    }
    let cells = results.iter().map(|result| result.cell.label().to_owned());
    columns.push(Column::new(Shows::Mechanism, MECHANISM, ESSENTIAL, cells));

    let headline = headline(results);
    // The headline metric comes first, then what it hides, and the others follow in the order of the table of measures.
    let beside_median = [Metric::MeanFct, Metric::FctP90, Metric::FctMax];
    let mut metrics = Metric::ALL.to_vec();
    metrics.sort_by_key(|metric| (*metric != headline, !beside_median.contains(metric)));
    for metric in metrics {
        if metric.header().is_empty() || !is_shown(metric, headline, &summaries) {
            continue;
        }
        let cell = |summary: &Summary| estimated(metric, summary.estimate(metric));
        let worth = if metric == headline { ESSENTIAL } else { metric.worth() };
        columns.push(Column::new(Shows::Metric(metric), metric.header(), worth, summaries.iter().map(cell)));
    }
    let published = published(results);
    for &metric in &published {
        let name = if published.len() == 1 { String::new() } else { format!(" {}", metric.title()) };
        let cells = results.iter().map(|result| significant_or_dash(result.published_figure(metric), 4));
        columns.push(Column::new(Shows::Published, &format!("published{name}"), 8, cells));
    }
    if !published.is_empty() {
        let header = if published.len() == 1 { "error" } else { "largest error" };
        let plain =
            |result: &CellResult| result.published.as_ref().is_some_and(|it| it.plain().next().is_some());
        let cell = |result: &CellResult| {
            let error = if plain(result) { result.relative_error() } else { None };
            error.map_or_else(|| "–".into(), percent)
        };
        columns.push(Column::new(Shows::Published, header, 9, results.iter().map(cell)));
    }
    columns
}

/// Returns whether any cell has the metric and it is worth showing. Where clients finish, their FCT says more than the rate of
/// exchanges.
fn is_shown(metric: Metric, headline: Metric, summaries: &[Summary]) -> bool {
    let mut known = summaries.iter().filter_map(|summary| summary.value(metric));
    match metric {
        Metric::Throughput if headline == Metric::MedianFct => false,
        metric if metric.is_rare() => known.any(|value| value > 0.0),
        _ => known.next().is_some(),
    }
}

/// Returns the metrics with published figures outside of a paper's tables. Figures of tables are listed below.
fn published(results: &[CellResult]) -> Vec<Metric> {
    let published = results.iter().filter_map(|result| result.published.as_ref());
    let metrics: BTreeSet<Metric> = published.flat_map(Published::plain).collect();
    metrics.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::super::cell::tests::sample;
    use super::super::summary::tests::mixed;
    use super::*;

    fn two() -> [CellResult; 2] {
        let mut other = sample();
        other.cell.mechanism = "default".into();
        other.published = None;
        [sample(), other]
    }

    #[test]
    fn what_cells_share_stands_above_the_table() {
        let text = terminal_table(&two(), Some(200));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[0],
            "bottleneck · continuous workload · 2 clients · buffer 2500 · delay_ms 200 · errors none"
        );
        assert!(lines[2].trim_start().starts_with("mechanism"), "{text}");
        assert_eq!(lines.len(), 8, "without a median in some seed nobody is ahead: {text}");
        assert!(text.contains("Jain") && !text.contains("Left out"), "{text}");
        assert!(
            lines[4].contains("cocoa:preset=draft-3,weak=1/4") && lines[4].contains("−5.6\u{a0}%"),
            "{text}"
        );
        assert!(lines[5].contains("default") && lines[5].contains('–'), "{text}");
    }

    #[test]
    fn a_narrow_terminal_leaves_columns_out_and_says_so_but_breaks_no_cell() {
        let text = terminal_table(&two(), Some(80));
        assert!(text.lines().skip(2).take(4).all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("cocoa:preset=draft-3,weak=1/4") && text.contains("published"), "{text}");
        assert!(text.contains("Left out for want of width: Jain, goodput"), "{text}");

        let text = terminal_table(&two(), Some(10));
        assert!(text.contains("cocoa:preset=draft-3,weak=1/4") && text.contains("median FCT"), "{text}");
    }

    #[test]
    fn where_nobody_has_an_end_to_reach_the_throughput_stands_in_the_place_of_the_fct() {
        let mut endless = two();
        for run in endless.iter_mut().flat_map(|result| &mut result.runs) {
            run.fct_s.clear();
        }
        let text = terminal_table(&endless, Some(80));
        assert!(text.contains("throughput") && text.contains("2.000"), "{text}");
        assert!(!text.contains("FCT"), "{text}");
    }

    #[test]
    fn the_populations_of_a_mix_stand_below_the_table() {
        let mut mix = sample();
        mix.cell.mechanism = "a+b".into();
        mix.runs = vec![mixed(1), mixed(2)];
        let text = terminal_table(&[mix, sample()], Some(80));
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert!(
            rows.contains(&vec!["a+b", "a", "2", "75.0", "%", "1.12", "10.0", "0.500", "1.000"]),
            "{text}"
        );
        assert!(rows.contains(&vec!["a+b", "b", "1", "25.0", "%", "0.75", "0", "0.500", "1.000"]), "{text}");
        assert!(
            !terminal_table(&two(), Some(80)).contains("Share of"),
            "results without a mix have no such table"
        );
    }

    #[test]
    fn no_results_are_said_to_be_none() {
        assert_eq!(terminal_table(&[], Some(80)), "no results\n");
    }
}
