//! The results as the page shows them: pooled once, with numbers for mechanisms.

use std::collections::BTreeSet;

use coapace_lab::coexistence::Matrix;
use coapace_lab::results::conditions::Conditions;
use coapace_lab::results::{self, CellResult, Judged, Metric, Summary, Verdict, bound_of, judged, verdicts};

use super::axis::extent;
use super::report::Report;
use super::style::{Style, styles};

pub(super) struct View<'a> {
    /// The mechanisms in the order of their first appearance. A mechanism's number is its place here.
    pub(super) mechanisms: Vec<&'a str>,
    /// The look of each mechanism.
    pub(super) styles: Vec<Style>,
    /// The conditions that all cells share, in words.
    pub(super) common: String,
    /// The groups that have cells.
    pub(super) groups: Vec<Conditioned<'a>>,
    /// The results of every pair of mechanisms, if there are any.
    pub(super) coexistence: Option<&'a Matrix>,
}

/// A group and its conditions.
pub(super) struct Conditioned<'a> {
    /// The conditions in which it differs from the other groups.
    pub(super) title: &'a str,
    pub(super) results: &'a [CellResult],
    /// The results, pooled.
    pub(super) cells: Vec<Measured<'a>>,
}

/// A cell and its pooled runs.
pub(super) struct Measured<'a> {
    /// The number of the mechanism.
    pub(super) mechanism: usize,
    /// The name of the mechanism.
    pub(super) name: &'a str,
    /// The cell with its single runs.
    pub(super) result: &'a CellResult,
    /// The pooled runs.
    pub(super) summary: Summary,
}

impl Measured<'_> {
    /// Returns the number of clients that a metric counts.
    pub(super) fn clients(&self, metric: Metric) -> u64 {
        #[allow(clippy::cast_sign_loss)] // a count
        let count = self.summary.count(metric) as u64;
        count
    }
}

impl Conditioned<'_> {
    /// Returns the bound of a metric under these conditions, if one is known.
    pub(super) fn bound(&self, metric: Metric) -> Option<f64> {
        bound_of(&self.results.first()?.bounds, metric).map(|bound| bound.value)
    }
}

/// Returns whether a bound is near enough to some of `values` to be drawn with them.
pub(super) fn is_near(bound: f64, values: &[f64]) -> bool {
    let [low, high] = extent(values);
    bound >= low / 4.0 && bound <= high * 4.0
}

impl<'a> View<'a> {
    /// Pools the runs of a report.
    pub(super) fn of(report: &'a Report) -> Self {
        let mut mechanisms: Vec<&str> = Vec::new();
        let mut groups = Vec::new();
        for group in report.groups.iter().filter(|group| !group.cells.is_empty()) {
            let mut cells = Vec::new();
            for result in &group.cells {
                let name = result.cell.label();
                let known = mechanisms.iter().position(|&mechanism| mechanism == name);
                let mechanism = known.unwrap_or_else(|| {
                    mechanisms.push(name);
                    mechanisms.len() - 1
                });
                cells.push(Measured { mechanism, name, result, summary: result.summary() });
            }
            groups.push(Conditioned { title: &group.title, results: &group.cells, cells });
        }
        let all = report.groups.iter().flat_map(|group| &group.cells);
        let common = Conditions::of(all.map(|result| &result.cell)).describe_common();
        let styles = styles(&mechanisms);
        Self { mechanisms, styles, common, groups, coexistence: report.coexistence.as_ref() }
    }

    /// Returns every cell with the title of its group.
    pub(super) fn cells(&self) -> impl Iterator<Item = (&'a str, &Measured<'a>)> {
        self.groups.iter().flat_map(|group| group.cells.iter().map(|cell| (group.title, cell)))
    }

    /// Returns the published figures beside the measured ones: first those without a measured one, then by falling relative
    /// error.
    pub(super) fn compared(&self) -> Vec<Compared<'a>> {
        self.compared_of(CellResult::compared)
    }

    /// Returns the published figures that stand in no table of a paper, in the order of [`compared`](Self::compared).
    pub(super) fn plain(&self) -> Vec<Compared<'a>> {
        self.compared_of(CellResult::plain)
    }

    fn compared_of(&self, figures: fn(&CellResult) -> Vec<results::Compared>) -> Vec<Compared<'a>> {
        let mut compared: Vec<_> = (self.cells())
            .flat_map(|(title, cell)| {
                let source = cell.result.published.as_ref().map_or("", |published| &published.source);
                let (mechanism, name) = (cell.mechanism, cell.name);
                let of = move |figure| Compared { title, mechanism, name, source, figure };
                figures(cell.result).into_iter().map(of)
            })
            .collect();
        let badness = |compared: &Compared| compared.error().map_or(f64::INFINITY, f64::abs);
        compared.sort_by(|a, b| badness(b).total_cmp(&badness(a)));
        compared
    }

    /// Returns the figures of papers' tables beside the measured ones, the worst first.
    pub(super) fn tabled(&self) -> Vec<Tabled<'a>> {
        let of = |(title, cell): (&'a str, &Measured<'a>)| {
            let (mechanism, own) = (cell.mechanism, std::slice::from_ref(cell.result));
            judged(own).into_iter().map(move |judged| Tabled { title, mechanism, judged })
        };
        let mut tabled: Vec<_> = self.cells().flat_map(of).collect();
        tabled.sort_by(|a, b| a.judged.worst_first(&b.judged));
        tabled
    }

    /// Returns every published order beside what was measured, with the title of its group, the worst first.
    pub(super) fn verdicts(&self) -> Vec<(&'a str, Verdict<'a>)> {
        let of = |group: &Conditioned<'a>| {
            let title = group.title;
            verdicts(group.results).into_iter().map(move |verdict| (title, verdict))
        };
        let mut verdicts: Vec<_> = self.groups.iter().flat_map(of).collect();
        verdicts.sort_by(|(_, a), (_, b)| a.worst_first(b));
        verdicts
    }
}

/// A figure of a paper's table and the measured one.
pub(super) struct Tabled<'a> {
    /// The title of the group.
    pub(super) title: &'a str,
    /// The number of the mechanism.
    pub(super) mechanism: usize,
    /// Both figures, and the table.
    pub(super) judged: Judged<'a>,
}

/// A published figure and the measured one.
pub(super) struct Compared<'a> {
    /// The title of the group.
    pub(super) title: &'a str,
    /// The number of the mechanism.
    pub(super) mechanism: usize,
    /// The name of the mechanism.
    pub(super) name: &'a str,
    /// The place where the figure is printed.
    pub(super) source: &'a str,
    /// Both figures.
    pub(super) figure: results::Compared,
}

impl Compared<'_> {
    /// Returns the relative error of the measured figure; `None` if nothing was measured.
    pub(super) fn error(&self) -> Option<f64> {
        self.figure.relative_error()
    }
}

/// Returns the metrics among published figures, each once.
pub(super) fn metrics(compared: &[Compared]) -> Vec<Metric> {
    let metrics: BTreeSet<Metric> = compared.iter().map(|compared| compared.figure.metric).collect();
    metrics.into_iter().collect()
}
