//! The results as the page sees them: summed up once, mechanisms numbered.

use std::collections::BTreeSet;

use coapace_lab::coexistence::Matrix;
use coapace_lab::results::conditions::Conditions;
use coapace_lab::results::{self, CellResult, Judged, Metric, Summary, Verdict, judged, verdicts};

use super::report::Report;
use super::style::{Style, styles};

/// The results of a page.
pub(super) struct View<'a> {
    /// Mechanisms in the order of their first appearance: elsewhere they are numbers.
    pub(super) mechanisms: Vec<&'a str>,
    /// How each of them looks.
    pub(super) styles: Vec<Style>,
    /// The conditions that all cells share, in words.
    pub(super) common: String,
    /// The groups that have cells.
    pub(super) groups: Vec<Conditioned<'a>>,
    /// Every two mechanisms together.
    pub(super) coexistence: Option<&'a Matrix>,
}

/// A group.
pub(super) struct Conditioned<'a> {
    /// The conditions in which it differs from the others.
    pub(super) title: &'a str,
    /// Its results.
    pub(super) results: &'a [CellResult],
    /// The same, summed up.
    pub(super) cells: Vec<Measured<'a>>,
}

/// A cell.
pub(super) struct Measured<'a> {
    /// The number of its mechanism.
    pub(super) mechanism: usize,
    /// The mechanism's name.
    pub(super) name: &'a str,
    /// Its runs.
    pub(super) result: &'a CellResult,
    /// Its runs, pooled.
    pub(super) summary: Summary,
}

impl<'a> View<'a> {
    /// Sums up a report.
    pub(super) fn of(report: &'a Report) -> Self {
        let mut mechanisms: Vec<&str> = Vec::new();
        let mut groups = Vec::new();
        for group in report.groups.iter().filter(|group| !group.cells.is_empty()) {
            let mut cells = Vec::new();
            for result in &group.cells {
                let name = result.cell.mechanism.as_str();
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

    /// Published figures, the worst met first: those whose own figure is unknown, then by relative error.
    pub(super) fn compared(&self) -> Vec<Compared<'a>> {
        let mut compared: Vec<_> = (self.cells())
            .flat_map(|(title, cell)| {
                let source = cell.result.published.as_ref().map_or("", |published| &published.source);
                let (mechanism, name) = (cell.mechanism, cell.name);
                let published = cell.result.published.as_ref();
                let of = move |figure: results::Compared| {
                    let tabled = published.is_some_and(|it| it.tables.contains_key(&figure.metric));
                    Compared { title, mechanism, name, source, figure, tabled }
                };
                cell.result.compared().into_iter().map(of)
            })
            .collect();
        let badness = |compared: &Compared| compared.error().map_or(f64::INFINITY, f64::abs);
        compared.sort_by(|a, b| badness(b).total_cmp(&badness(a)));
        compared
    }

    /// Those that stand in no table of a paper.
    pub(super) fn plain(&self) -> Vec<Compared<'a>> {
        let mut compared = self.compared();
        compared.retain(|compared| !compared.tabled);
        compared
    }

    /// Those of a paper's tables, the worst met first.
    pub(super) fn tabled(&self) -> Vec<Tabled<'a>> {
        let of = |group: &Conditioned<'a>| {
            let (title, names) = (group.title, &self.mechanisms);
            let tabled = judged(group.results).into_iter().map(move |judged| {
                let own = judged.result.cell.mechanism.as_str();
                let mechanism = names.iter().position(|&name| name == own).unwrap_or_default();
                Tabled { title, mechanism, judged }
            });
            tabled.collect::<Vec<_>>()
        };
        let mut tabled: Vec<_> = self.groups.iter().flat_map(of).collect();
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
    /// The group's title.
    pub(super) title: &'a str,
    /// The number of the mechanism.
    pub(super) mechanism: usize,
    /// Both figures and the table.
    pub(super) judged: Judged<'a>,
}

/// A published figure and the measured one.
pub(super) struct Compared<'a> {
    /// The group's title.
    pub(super) title: &'a str,
    /// The number of the mechanism.
    pub(super) mechanism: usize,
    /// Its name.
    pub(super) name: &'a str,
    /// Where the figure is printed.
    pub(super) source: &'a str,
    /// Both.
    pub(super) figure: results::Compared,
    /// Whether a table of the paper says how near it is to be met.
    pub(super) tabled: bool,
}

impl Compared<'_> {
    /// Returns the relative error of the measured figure.
    pub(super) fn error(&self) -> Option<f64> {
        self.figure.relative_error()
    }
}

/// Returns the metrics among published figures, each once.
pub(super) fn metrics(compared: &[Compared]) -> Vec<Metric> {
    let metrics: BTreeSet<Metric> = compared.iter().map(|compared| compared.figure.metric).collect();
    metrics.into_iter().collect()
}
