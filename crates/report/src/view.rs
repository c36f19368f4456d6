//! The results as the page shows them: pooled once, with numbers for mechanisms.

use std::collections::BTreeSet;

use coapace_lab::coexistence::Matrix;
use coapace_lab::lists::distinct;
use coapace_lab::papers::{Compared, Judged, OrderVerdict, Published, References, judged, verdicts};
use coapace_lab::results::conditions::Conditions;
use coapace_lab::results::{Bound, Cell, CellResult, CellSummary, Metric, bound_of};

use super::axis::extent;
use super::group::CellGroup;
use super::report::Report;

pub(super) struct View<'a> {
    /// The mechanisms, sorted by their first appearance. A mechanism's number is its index here.
    pub(super) mechanisms: Vec<&'a str>,
    /// The conditions that all cells share, in words.
    pub(super) common: String,
    /// The published results and the bounds that the results are compared with.
    pub(super) references: &'a References,
    /// The groups that have cells.
    pub(super) groups: Vec<Conditioned<'a>>,
    /// The results of every pair of mechanisms, if there are any.
    pub(super) coexistence: Option<&'a Matrix>,
}

/// A group and its conditions.
pub(super) struct Conditioned<'a> {
    /// The conditions in which the group differs from the other groups.
    pub(super) title: &'a str,
    pub(super) results: &'a [CellResult],
    /// The bounds that follow from the scenario alone.
    pub(super) bounds: &'a [Bound],
    /// The cells of the group, each with its runs pooled.
    pub(super) cells: Vec<PooledCell<'a>>,
}

/// A cell and its pooled runs.
pub(super) struct PooledCell<'a> {
    /// The number of the mechanism.
    pub(super) mechanism: usize,
    /// The name of the mechanism.
    pub(super) name: &'a str,
    /// The cell with its single runs.
    pub(super) result: &'a CellResult,
    /// The published values and rankings, if there are any.
    pub(super) published: Option<&'a Published>,
    /// The pooled runs.
    pub(super) summary: CellSummary,
}

impl PooledCell<'_> {
    /// Returns the published value of a metric, if there is one.
    pub(super) fn published_value(&self, metric: Metric) -> Option<f64> {
        self.published?.get(metric)
    }

    /// Returns the number of clients that a metric counts.
    pub(super) fn clients(&self, metric: Metric) -> u64 {
        #[allow(clippy::cast_sign_loss)] // a count
        let count = self.summary.count(metric) as u64;
        count
    }
}

impl Conditioned<'_> {
    /// Returns the bound of a metric under these conditions, if it is known and near enough to `values` to be drawn with them.
    /// The bound is added to `values`.
    pub(super) fn bound_near(&self, metric: Metric, values: &mut Vec<f64>) -> Option<f64> {
        let bound = bound_of(self.bounds, metric)?.value;
        let [low, high] = extent(values);
        // A farther bound would squeeze the values into a corner of the chart.
        let bound = (low / 4.0..=high * 4.0).contains(&bound).then_some(bound);
        values.extend(bound);
        bound
    }
}

impl<'a> View<'a> {
    /// Pools the runs of a report.
    pub(super) fn of(report: &'a Report) -> Self {
        let cells = || report.groups.iter().flat_map(|group| &group.cells).map(|result| &result.cell);
        let mechanisms = distinct(cells().map(Cell::label));
        let references = &report.references;
        let measured = |result: &'a CellResult| {
            let name = result.cell.label();
            // Always found, because the list was made from these cells.
            let mechanism = mechanisms.iter().position(|known| *known == name).unwrap_or(0);
            let published = references.published(&result.cell);
            PooledCell { mechanism, name, result, published, summary: result.summary() }
        };
        // Cells of a group differ in the mechanism alone, and bounds do not depend on it.
        let conditioned = |group: &'a CellGroup| {
            let cells = group.cells.iter().map(measured).collect();
            let bounds = group.cells.first().map_or(&[][..], |first| references.bounds(&first.cell));
            Conditioned { title: &group.title, results: &group.cells, bounds, cells }
        };
        let groups = report.groups.iter().filter(|group| !group.cells.is_empty()).map(conditioned).collect();
        let common = Conditions::of(cells()).describe_common();
        Self { mechanisms, common, references, groups, coexistence: report.coexistence.as_ref() }
    }

    /// Returns every cell with the title of its group.
    pub(super) fn cells(&self) -> impl Iterator<Item = (&'a str, &PooledCell<'a>)> {
        self.groups.iter().flat_map(|group| group.cells.iter().map(|cell| (group.title, cell)))
    }

    /// Returns the published values beside the measured ones: first the values that were not measured, then by falling
    /// relative error.
    pub(super) fn compared(&self) -> Vec<ComparisonRow<'_>> {
        self.compared_of(References::compared)
    }

    /// Returns the published values that are not from a table of a paper, sorted as in [`compared`](Self::compared).
    pub(super) fn plain(&self) -> Vec<ComparisonRow<'_>> {
        self.compared_of(References::plain)
    }

    fn compared_of(&self, values: fn(&References, &CellResult) -> Vec<Compared>) -> Vec<ComparisonRow<'_>> {
        let mut compared: Vec<_> = (self.cells())
            .flat_map(|(title, cell)| {
                let values = values(self.references, cell.result).into_iter();
                values.map(move |value| ComparisonRow { title, cell, value })
            })
            .collect();
        // A value that was not measured is worse than any error.
        let badness = |compared: &ComparisonRow| compared.error().map_or(f64::INFINITY, f64::abs);
        compared.sort_by(|a, b| badness(b).total_cmp(&badness(a)));
        compared
    }

    /// Returns the values from papers' tables beside the measured ones, the worst first.
    pub(super) fn tabled(&self) -> Vec<Tabled<'a>> {
        let of = |(title, cell): (&'a str, &PooledCell<'a>)| {
            // One cell at a time, so that each value has the title of its group.
            let (mechanism, own) = (cell.mechanism, std::slice::from_ref(cell.result));
            judged(own, self.references).into_iter().map(move |judged| Tabled { title, mechanism, judged })
        };
        let mut tabled: Vec<_> = self.cells().flat_map(of).collect();
        tabled.sort_by(|a, b| a.judged.worst_first(&b.judged));
        tabled
    }

    /// Returns every published ranking beside the measured values, with the title of its group, the worst first.
    pub(super) fn verdicts(&self) -> Vec<(&'a str, OrderVerdict<'a>)> {
        let of = |group: &Conditioned<'a>| {
            let title = group.title;
            verdicts(group.results, self.references).into_iter().map(move |verdict| (title, verdict))
        };
        let mut verdicts: Vec<_> = self.groups.iter().flat_map(of).collect();
        verdicts.sort_by(|(_, a), (_, b)| a.worst_first(b));
        verdicts
    }
}

/// A value from a paper's table and the measured one.
pub(super) struct Tabled<'a> {
    /// The title of the group.
    pub(super) title: &'a str,
    /// The number of the mechanism.
    pub(super) mechanism: usize,
    /// The published and the measured value, and their table.
    pub(super) judged: Judged<'a>,
}

/// A published value and the measured one.
pub(super) struct ComparisonRow<'a> {
    /// The title of the group.
    pub(super) title: &'a str,
    pub(super) cell: &'a PooledCell<'a>,
    /// The published and the measured value.
    pub(super) value: Compared,
}

impl ComparisonRow<'_> {
    /// Returns where the value was published; empty if the source is unknown.
    pub(super) fn source(&self) -> &str {
        self.cell.published.map_or("", |published| &published.source)
    }

    /// Returns the relative error of the measured value; `None` if nothing was measured.
    pub(super) fn error(&self) -> Option<f64> {
        self.value.relative_error()
    }
}

/// Returns the metrics of published values, each once.
pub(super) fn metrics(compared: &[ComparisonRow]) -> Vec<Metric> {
    let metrics: BTreeSet<Metric> = compared.iter().map(|compared| compared.value.metric).collect();
    metrics.into_iter().collect()
}
