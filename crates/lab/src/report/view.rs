//! The results as the page sees them: summed up once, mechanisms numbered.

use super::Report;
use crate::coexistence::Matrix;
use crate::results::conditions::Conditions;
use crate::results::{CellResult, Summary};

/// The results of a page.
pub(super) struct View<'a> {
    /// Mechanisms in the order of their first appearance: the number of one chooses its colour.
    pub(super) mechanisms: Vec<&'a str>,
    /// What all cells share, in words.
    pub(super) common: String,
    /// The groups that have cells.
    pub(super) groups: Vec<Conditioned<'a>>,
    /// Every two mechanisms together.
    pub(super) coexistence: Option<&'a Matrix>,
}

/// A group.
pub(super) struct Conditioned<'a> {
    /// What sets it apart.
    pub(super) title: &'a str,
    /// Its cells.
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
    /// Of a report.
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
            groups.push(Conditioned { title: &group.title, cells });
        }
        let all = report.groups.iter().flat_map(|group| &group.cells);
        let common = Conditions::of(all.map(|result| &result.cell)).describe_common();
        Self { mechanisms, common, groups, coexistence: report.coexistence.as_ref() }
    }

    /// Every cell with the title of its group.
    pub(super) fn cells(&self) -> impl Iterator<Item = (&'a str, &Measured<'a>)> {
        self.groups.iter().flat_map(|group| group.cells.iter().map(|cell| (group.title, cell)))
    }

    /// Whether any cell has clients with an end to reach; without results, as if.
    pub(super) fn has_fct(&self) -> bool {
        let mut runs = self.cells().filter(|(_, cell)| cell.summary.runs > 0).peekable();
        runs.peek().is_none() || runs.any(|(_, cell)| cell.result.has_fct())
    }

    /// Cells with a published median, the worst met first: those whose own median is unknown, then by relative error.
    pub(super) fn compared(&self) -> Vec<Compared<'a>> {
        let mut compared: Vec<_> = (self.cells())
            .filter_map(|(title, cell)| {
                let published = cell.result.published.as_ref()?;
                Some(Compared {
                    title,
                    mechanism: cell.mechanism,
                    name: cell.name,
                    published_s: published.median_fct_s,
                    source: &published.source,
                    measured_s: cell.summary.fct.median,
                    error: cell.result.relative_error(),
                })
            })
            .collect();
        let badness = |compared: &Compared| compared.error.map_or(f64::INFINITY, f64::abs);
        compared.sort_by(|a, b| badness(b).total_cmp(&badness(a)));
        compared
    }
}

/// A published median and the measured one.
pub(super) struct Compared<'a> {
    /// The group's title.
    pub(super) title: &'a str,
    /// The number of the mechanism.
    pub(super) mechanism: usize,
    /// Its name.
    pub(super) name: &'a str,
    /// The published median FCT in seconds.
    pub(super) published_s: f64,
    /// Where it is printed.
    pub(super) source: &'a str,
    /// The measured median FCT in seconds.
    pub(super) measured_s: Option<f64>,
    /// The relative error of the latter.
    pub(super) error: Option<f64>,
}
