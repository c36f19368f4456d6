//! The numbers behind the charts, as the page's script reads them.

use serde::Serialize;

use super::coexistence::{Measure, Pairs};
use super::sweep::{self, Sweep};
use super::view::{Conditioned, Measured, View, metrics};
use crate::results::{Metric, Series, quantile};

/// The most points of a distribution's line.
const CDF_POINTS: usize = 240;

/// All charts of a page.
#[derive(Serialize)]
pub(super) struct Charts<'a> {
    mechanisms: &'a [&'a str],
    panels: Vec<Panel<'a>>,
    #[serde(skip)]
    sections: Vec<Section>,
}

/// Charts of one kind, one for each group that has something to show.
pub(super) struct Section {
    /// The kind's name.
    pub(super) kind: &'static str,
    /// Number, title and height in pixels of each chart.
    pub(super) panels: Vec<(usize, String, usize)>,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Panel<'a> {
    Pairs(Pairs),
    Sweep(Sweep),
    Published { axis: String, unit: &'static str, points: Vec<Point<'a>> },
    Fct { rows: Vec<FctRow> },
    Cdf { lines: Vec<Line<'a>> },
    Retransmissions { rows: Vec<RetransmissionRow> },
    Rto { lines: Vec<Line<'a>> },
    Queue { lines: Vec<Line<'a>> },
}

/// `m` is the number of the mechanism in all of these; times are in seconds.
#[derive(Serialize)]
struct Point<'a> {
    m: usize,
    title: &'a str,
    published: f64,
    measured: f64,
}

#[derive(Serialize)]
struct FctRow {
    m: usize,
    q: [Option<f64>; 5],
    mean: Option<f64>,
    published: Option<f64>,
    finished: u64,
    gave_up: u64,
}

#[derive(Serialize)]
struct RetransmissionRow {
    m: usize,
    needed: f64,
    unnecessary: f64,
}

#[derive(Serialize)]
struct Line<'a> {
    m: usize,
    name: &'a str,
    x: Vec<f64>,
    y: Vec<f64>,
}

impl<'a> Charts<'a> {
    /// Of a page.
    pub(super) fn of(view: &'a View<'a>) -> Self {
        let mut charts = Self { mechanisms: &view.mechanisms, panels: Vec::new(), sections: Vec::new() };
        charts.section("share", pairs(view, Measure::Share));
        charts.section("kept", pairs(view, Measure::Kept));
        charts.section("published", published(view));
        charts.section(
            "sweep",
            sweep::of(view).into_iter().map(|(title, sweep)| (title, Panel::Sweep(sweep), 400)),
        );
        charts.section("fct", view.groups.iter().filter_map(fct));
        charts.section("cdf", view.groups.iter().filter_map(cdf));
        charts.section("retransmissions", view.groups.iter().filter_map(retransmissions));
        charts.section("rto", view.groups.iter().filter_map(rto));
        charts.section("queue", view.groups.iter().flat_map(queues));
        charts
    }

    fn section(&mut self, kind: &'static str, panels: impl IntoIterator<Item = (String, Panel<'a>, usize)>) {
        let mut section = Section { kind, panels: Vec::new() };
        for (title, panel, height) in panels {
            section.panels.push((self.panels.len(), title, height));
            self.panels.push(panel);
        }
        self.sections.push(section);
    }

    /// The charts of one kind; `None` if no group has any.
    pub(super) fn get(&self, kind: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.kind == kind && !section.panels.is_empty())
    }
}

fn pairs<'a>(view: &View<'a>, measure: Measure) -> Option<(String, Panel<'a>, usize)> {
    let pairs = Pairs::of(view, measure)?;
    let height = pairs.height();
    Some((String::new(), Panel::Pairs(pairs), height))
}

/// A chart for each metric.
fn published<'a>(view: &View<'a>) -> Vec<(String, Panel<'a>, usize)> {
    let compared = view.compared();
    let metrics = metrics(&compared);
    let panel = |&metric: &Metric| {
        let points: Vec<_> = (compared.iter())
            .filter(|compared| compared.figure.metric == metric && compared.figure.published > 0.0)
            .filter_map(|compared| {
                Some(Point {
                    m: compared.mechanism,
                    title: compared.title,
                    published: compared.figure.published,
                    measured: rounded(compared.figure.measured.filter(|measured| *measured > 0.0)?),
                })
            })
            .collect();
        let title = if metrics.len() > 1 { metric.title() } else { "" };
        let panel = Panel::Published { axis: metric.axis(), unit: metric.unit(), points };
        (title.to_owned(), panel, 520)
    };
    let panels = metrics.iter().map(panel);
    panels
        .filter(|(_, panel, _)| matches!(panel, Panel::Published { points, .. } if points.len() > 1))
        .collect()
}

fn fct<'a>(group: &'a Conditioned<'a>) -> Option<(String, Panel<'a>, usize)> {
    let rows: Vec<_> = (group.cells.iter())
        .filter(|cell| cell.summary.clients_finished > 0)
        .map(|cell| {
            let fct = cell.summary.fct;
            FctRow {
                m: cell.mechanism,
                q: [fct.p10, fct.p25, fct.median, fct.p75, fct.p90].map(|q| q.map(rounded)),
                mean: cell.summary.mean_fct_s.map(rounded),
                published: cell
                    .result
                    .published
                    .as_ref()
                    .and_then(|published| published.get(Metric::MedianFct)),
                finished: cell.summary.clients_finished,
                gave_up: cell.summary.clients_gave_up,
            }
        })
        .collect();
    let height = 70 + 36 * rows.len();
    (!rows.is_empty()).then(|| (group.title.into(), Panel::Fct { rows }, height))
}

fn cdf<'a>(group: &'a Conditioned<'a>) -> Option<(String, Panel<'a>, usize)> {
    let lines: Vec<_> = (group.cells.iter())
        .filter_map(|cell| {
            let fct_s = cell.result.fct_s();
            let points = fct_s.len().min(CDF_POINTS);
            let (x, y) = (0..=points)
                .map(|i| i as f64 / points.max(1) as f64)
                .map_while(|p| Some((rounded(quantile(&fct_s, p)?), rounded(p))))
                .unzip::<_, _, Vec<_>, Vec<_>>();
            (x.len() > 1).then_some(Line { m: cell.mechanism, name: "", x, y })
        })
        .collect();
    (!lines.is_empty()).then(|| (group.title.into(), Panel::Cdf { lines }, 340))
}

fn retransmissions<'a>(group: &'a Conditioned<'a>) -> Option<(String, Panel<'a>, usize)> {
    let rows: Vec<_> = (group.cells.iter())
        .filter(|cell| cell.summary.runs > 0)
        .map(|cell| {
            let (all, unnecessary) =
                (cell.summary.retransmissions_per_client, cell.summary.unnecessary_per_client);
            RetransmissionRow {
                m: cell.mechanism,
                needed: rounded((all - unnecessary).max(0.0)),
                unnecessary: rounded(unnecessary),
            }
        })
        .collect();
    let height = 70 + 32 * rows.len();
    (!rows.is_empty()).then(|| (group.title.into(), Panel::Retransmissions { rows }, height))
}

fn rto<'a>(group: &'a Conditioned<'a>) -> Option<(String, Panel<'a>, usize)> {
    let lines: Vec<_> = (group.cells.iter())
        .flat_map(|cell| first_series(cell, |run| &run.rto).map(|series| line(cell, series)))
        .collect();
    (!lines.is_empty()).then(|| (group.title.into(), Panel::Rto { lines }, 340))
}

/// A chart for each hop.
fn queues<'a>(group: &'a Conditioned<'a>) -> Vec<(String, Panel<'a>, usize)> {
    let mut hops: Vec<&str> = Vec::new();
    for series in group.cells.iter().flat_map(|cell| first_series(cell, |run| &run.queues)) {
        if !hops.contains(&series.name.as_str()) {
            hops.push(&series.name);
        }
    }
    let panel = |hop: &str| {
        let of_hop = |cell| first_series(cell, |run| &run.queues).filter(|series| series.name == hop);
        let lines: Vec<_> =
            group.cells.iter().flat_map(|cell| of_hop(cell).map(|series| line(cell, series))).collect();
        let gap = if group.title.is_empty() || hop.is_empty() { "" } else { " · " };
        let height = 70 + 46 * lines.len();
        (format!("{}{gap}{hop}", group.title), Panel::Queue { lines }, height)
    };
    hops.into_iter().map(panel).collect()
}

/// The series of a cell that are drawn: those of its first run that have points.
fn first_series<'a>(
    cell: &Measured<'a>,
    of: fn(&crate::results::RunResult) -> &Vec<Series>,
) -> impl Iterator<Item = &'a Series> {
    let series = cell.result.first_run().map(of).map_or(&[][..], Vec::as_slice);
    series.iter().filter(|series| !series.points.is_empty())
}

fn line<'a>(cell: &Measured<'a>, series: &'a Series) -> Line<'a> {
    let (x, y) = series.points.iter().map(|&(t_s, value)| (rounded(t_s), rounded(value))).unzip();
    Line { m: cell.mechanism, name: &series.name, x, y }
}

/// Five significant digits: more than a chart can show, and half the bytes.
pub(super) fn rounded(x: f64) -> f64 {
    format!("{x:.4e}").parse().unwrap_or(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_five_digits() {
        assert!((rounded(1234.5678) - 1234.6).abs() < 1e-9);
        assert!((rounded(0.000_123_456_7) - 0.000_123_46).abs() < 1e-12);
        assert!(rounded(0.0).abs() < f64::EPSILON);
    }
}
