//! The columns of a table that fit the terminal.

use std::collections::BTreeSet;

use super::MECHANISM;
use super::style::{Look, estimated};
use crate::number::{percent, significant, significant_or_dash};
use crate::papers::{Published, References};
use crate::results::conditions::Conditions;
use crate::results::{CellResult, CellSummary, Metric, bound_of, headline};
use coapace_run::measured::Estimate;

/// The importance of columns that are never left out.
const ESSENTIAL: u8 = u8::MAX;

/// The width of the rank before the name of a mechanism, in characters.
pub(super) const PLACE: usize = 5;

/// The smallest and the largest width of a bar, in characters.
const BAR: [usize; 2] = [8, 24];

/// A terminal narrower than this many characters shows at most [`MOST`] columns of the table, so that the table is easy
/// to read.
const NARROW: usize = 100;
const MOST: usize = 6;

/// A column of a table in the terminal. A table that is too wide drops its least important columns first.
pub(super) struct TableColumn {
    pub(super) shows: Shows,
    pub(super) header: String,
    /// The text of the column for each result.
    pub(super) cells: Vec<String>,
    /// The importance of the column: the least important ones are left out first.
    worth: u8,
    pub(super) width: usize,
}

/// What a column shows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shows {
    /// A condition that varies between the cells.
    Condition,
    Mechanism,
    Metric(Metric),
    /// A bar for the main metric.
    Bar,
    /// A published value, or the distance from it.
    Published,
}

/// The columns of a table that fit its width.
pub(super) struct TableColumns<'a> {
    pub(super) all: Vec<TableColumn>,
    /// The headers of the columns that do not fit.
    pub(super) left_out: Vec<String>,
    results: &'a [CellResult],
    references: &'a References,
}

impl TableColumn {
    fn new(shows: Shows, header: &str, worth: u8, cells: impl Iterator<Item = String>) -> Self {
        let cells: Vec<String> = cells.collect();
        // In characters: `µ` and `±` have two bytes, and one column.
        let widths = cells.iter().map(|cell| cell.chars().count());
        let width = widths.max().unwrap_or(0).max(header.chars().count());
        Self { shows, header: header.to_owned(), cells, worth, width }
    }

    pub(super) fn metric(&self) -> Option<Metric> {
        if let Shows::Metric(metric) = self.shows { Some(metric) } else { None }
    }

    /// Returns whether ranks are shown before the names of mechanisms.
    pub(super) fn has_places(&self) -> bool {
        // `fitted` puts blanks before the header, to make room for ranks.
        self.shows == Shows::Mechanism && self.header.starts_with(' ')
    }

    /// Returns a text padded to the width of the column.
    pub(super) fn padded(&self, text: &str) -> String {
        let width = self.width;
        match self.shows {
            Shows::Condition | Shows::Mechanism | Shows::Bar => format!("{text:width$}"),
            Shows::Metric(_) | Shows::Published => format!("{text:>width$}"),
        }
    }
}

impl<'a> TableColumns<'a> {
    /// Chooses the columns that fit the width of `look`. The conditions in `varying` get columns.
    pub(super) fn fitted(
        results: &'a [CellResult],
        references: &'a References,
        varying: &Conditions,
        has_places: bool,
        look: Look,
    ) -> Self {
        let columns = |intervals| columns(results, references, varying, intervals);
        // First with all intervals, and then in steps with less, until the table fits.
        let mut fitted = Self { all: columns(true), left_out: Vec::new(), results, references };
        // Ranks stand before the names of mechanisms, in columns that are added at the end.
        let gutter = if has_places { PLACE } else { 0 };
        let most = if look.width < NARROW { MOST } else { usize::MAX };
        let is_too_wide = |all: &[TableColumn]| all.len() > most || gutter + width(all) > look.width;
        if is_too_wide(&fitted.all) {
            // The interval of the headline says how steady the runs are. The others are in the rows for programs.
            fitted.all = columns(false);
        }
        while is_too_wide(&fitted.all)
            && let Some(cheapest) = (0..fitted.all.len()).min_by_key(|&place| fitted.all[place].worth)
            && fitted.all[cheapest].worth < ESSENTIAL
        {
            let column = fitted.all.remove(cheapest);
            fitted.left_out.extend(Some(column.header).filter(|header| !header.is_empty()));
        }
        // Bars take the room that is left, because long bars are read better.
        let left = look.width.saturating_sub(gutter + width(&fitted.all));
        if let Some(bar) = fitted.all.iter_mut().find(|column| column.shows == Shows::Bar) {
            bar.width = bar.width.saturating_add(left).min(BAR[1]);
        }
        if let Some(mechanism) =
            fitted.all.iter_mut().find(|column| has_places && column.shows == Shows::Mechanism)
        {
            mechanism.width += PLACE;
            mechanism.header = " ".repeat(PLACE) + &mechanism.header;
        }
        fitted
    }

    /// Returns, as text, the best value that any mechanism can reach for the metric of this column under the conditions
    /// of the cell; `None` if it is unknown.
    pub(super) fn bound(&self, column: &TableColumn, result: &CellResult) -> Option<String> {
        let metric = column.metric()?;
        let bound = bound_of(self.references.bounds(&result.cell), metric)?;
        Some(significant(bound.value, metric.digits()))
    }

    /// Returns the index of a cell among the results.
    pub(super) fn row_of(&self, cell: &CellResult) -> usize {
        self.results.iter().position(|result| std::ptr::eq(result, cell)).unwrap_or(0)
    }

    pub(super) fn has_bars(&self) -> bool {
        self.all.iter().any(|column| column.shows == Shows::Bar)
    }

    /// Returns a line of text of the table.
    pub(super) fn line(&self, text: impl Fn(&TableColumn) -> String) -> String {
        let cells: Vec<String> = self.all.iter().map(text).collect();
        cells.join("  ").trim_end().to_owned()
    }

    pub(super) fn width(&self) -> usize {
        width(&self.all)
    }
}

/// Returns the width of a line with these columns.
fn width(all: &[TableColumn]) -> usize {
    // Two blanks between columns.
    all.iter().map(|column| column.width + 2).sum::<usize>().saturating_sub(2)
}

fn columns(
    results: &[CellResult],
    references: &References,
    conditions: &Conditions,
    intervals: bool,
) -> Vec<TableColumn> {
    let summaries: Vec<_> = results.iter().map(CellResult::summary).collect();
    let mut columns = Vec::new();
    for (place, name) in conditions.varying.iter().enumerate() {
        let cells = results.iter().map(|result| conditions.values(&result.cell)[place].clone());
        columns.push(TableColumn::new(Shows::Condition, name, ESSENTIAL, cells));
    }
    let cells = results.iter().map(|result| result.cell.label().to_owned());
    columns.push(TableColumn::new(Shows::Mechanism, MECHANISM, ESSENTIAL, cells));

    // The headline metric can never be left out, as the bar and the order of rows depend on it.
    let headline = headline(results);
    // The headline metric comes first, then what it hides, and the others follow in the order of the table of measures.
    let beside = |metric: &Metric| match metric {
        _ if *metric == headline => 0,
        Metric::ClientsGaveUp | Metric::GivenUp => 1,
        Metric::MeanFct | Metric::FctP90 | Metric::FctMax => 2,
        _ => 3,
    };
    let mut metrics = Metric::ALL.to_vec();
    metrics.sort_by_key(beside);
    for metric in metrics {
        // Metrics without a header are in the rows for programs alone.
        if metric.header().is_empty() || !is_shown(metric, headline, &summaries) {
            continue;
        }
        let cell = |summary: &CellSummary| {
            let estimate = summary.estimate(metric);
            // Intervals are wide, so a narrow terminal keeps only the interval of the headline.
            let kept = |half_width: &f64| half_width.is_finite() && (intervals || metric == headline);
            estimated(metric, estimate.map(|it| Estimate { half_width: it.half_width.filter(kept), ..it }))
        };
        let worth = if metric == headline { ESSENTIAL } else { metric.worth() };
        columns.push(TableColumn::new(
            Shows::Metric(metric),
            metric.header(),
            worth,
            summaries.iter().map(cell),
        ));
        // One bar alone compares with nothing.
        if metric == headline && results.len() > 1 {
            // 19 is between the published values and their errors in `published_columns`.
            let bar = TableColumn::new(Shows::Bar, "", 19, results.iter().map(|_| String::new()));
            columns.push(TableColumn { width: BAR[0], ..bar });
        }
    }
    columns.extend(published_columns(results, references));
    columns
}

fn published_columns(results: &[CellResult], references: &References) -> Vec<TableColumn> {
    let published = published(results, references);
    let has_plain = |result: &CellResult| {
        references.published(&result.cell).is_some_and(|it| it.plain().next().is_some())
    };
    let known = results.iter().filter(|result| has_plain(result)).count();
    // Where few mechanisms have a published value, it says less than what they cost.
    let [value, error]: [u8; 2] = if 2 * known >= results.len() { [18, 20] } else { [8, 9] };
    let mut columns = Vec::new();
    for &metric in &published {
        let name = if published.len() == 1 { String::new() } else { format!(" {}", metric.title()) };
        let cells =
            results.iter().map(|result| significant_or_dash(references.value(&result.cell, metric), 4));
        columns.push(TableColumn::new(Shows::Published, &format!("published{name}"), value, cells));
    }
    if !published.is_empty() {
        let header = if published.len() == 1 { "error" } else { "largest error" };
        let cell = |result: &CellResult| {
            let error = if has_plain(result) { references.relative_error(result) } else { None };
            error.map_or_else(|| "–".into(), percent)
        };
        columns.push(TableColumn::new(Shows::Published, header, error, results.iter().map(cell)));
    }
    columns
}

/// Returns whether the metric gets a column: some cell has a value, and other columns are not more informative. If
/// clients finish, their FCT is more informative than the rate of exchanges, and the number of clients that gave up is
/// more informative than the number of exchanges given up.
fn is_shown(metric: Metric, headline: Metric, summaries: &[CellSummary]) -> bool {
    let mut known = summaries.iter().filter_map(|summary| summary.value(metric));
    match metric {
        Metric::Throughput | Metric::GivenUp if headline == Metric::MedianFct => false,
        metric if metric.is_rare() => known.any(|value| value > 0.0),
        _ => known.next().is_some(),
    }
}

/// Returns the metrics with published values that are not judged by the factor of a paper's table. Values in such
/// tables are listed below the results.
fn published(results: &[CellResult], references: &References) -> Vec<Metric> {
    let published = results.iter().filter_map(|result| references.published(&result.cell));
    let metrics: BTreeSet<Metric> = published.flat_map(Published::plain).collect();
    metrics.into_iter().collect()
}
