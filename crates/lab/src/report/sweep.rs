//! Metrics over a knob: the lines of a chart wherever results differ in one number and in nothing else.

use serde::Serialize;

use super::charts::rounded;
use super::view::{Measured, View, metrics};
use crate::results::conditions::{Conditions, numbers};
use crate::results::{Estimate, Metric, Summary};

/// Fewer values of a knob than this are no line.
const FEWEST: usize = 3;

/// A metric over a knob.
#[derive(Serialize)]
pub(super) struct Sweep {
    /// What the axes say.
    x: String,
    y: String,
    /// The metric's unit, and the knob's.
    unit: &'static str,
    knob_unit: String,
    lines: Vec<Line>,
}

/// A mechanism, `m`: the values of the knob in rising order, the means over the seeds, and both ends of their 95 % intervals.
#[derive(Serialize)]
struct Line {
    m: usize,
    x: Vec<f64>,
    y: Vec<f64>,
    low: Vec<f64>,
    high: Vec<f64>,
}

/// The charts of a page with their titles.
pub(super) fn of(view: &View) -> Vec<(String, Sweep)> {
    let cells: Vec<&Measured> = view.cells().map(|(_, cell)| cell).collect();
    let conditions = Conditions::of(cells.iter().map(|cell| &cell.result.cell));
    let metrics = published(view);
    let mut sweeps = Vec::new();
    for (place, knob) in conditions.varying.iter().enumerate() {
        // What shares every other condition lies on the same lines.
        let mut alike: Vec<(Vec<String>, Vec<&Measured>)> = Vec::new();
        for &cell in &cells {
            let mut others = conditions.values(&cell.result.cell);
            others.remove(place);
            match alike.iter_mut().find(|(known, _)| *known == others) {
                Some((_, cells)) => cells.push(cell),
                None => alike.push((others, vec![cell])),
            }
        }
        for (_, cells) in &alike {
            let Some((values, unit)) = numbers(knob, cells.iter().map(|cell| &cell.result.cell)) else {
                continue;
            };
            let title = conditions.describe_without(knob, &cells[0].result.cell);
            for &metric in &metrics {
                let lines = lines(metric, &values, cells);
                if lines.is_empty() {
                    continue;
                }
                let x = if unit.is_empty() { knob.clone() } else { format!("{knob} in {unit}") };
                let sweep =
                    Sweep { x, y: metric.axis(), unit: metric.unit(), knob_unit: unit.clone(), lines };
                sweeps.push((title.clone(), sweep));
            }
        }
    }
    sweeps
}

/// The metrics that anything was published about; else the one that the page is about.
fn published(view: &View) -> Vec<Metric> {
    let mut all = metrics(&view.compared());
    all.extend(view.verdicts().iter().map(|(_, verdict)| verdict.order.metric));
    all.sort_unstable();
    all.dedup();
    if all.is_empty() {
        all.push(if view.has_fct() { Metric::MedianFct } else { Metric::Throughput });
    }
    all
}

/// A line for each mechanism that was measured at enough values. Where one seed is without a figure there is no point.
fn lines(metric: Metric, values: &[f64], cells: &[&Measured]) -> Vec<Line> {
    let mut points: Vec<(usize, f64, Estimate)> = (cells.iter().zip(values))
        .filter_map(|(cell, &value)| {
            let cell_result = cell.result;
            let of_run = |run| metric.of(&Summary::of(cell_result.cell.clients, std::slice::from_ref(run)));
            let figures: Option<Vec<f64>> = cell_result.runs.iter().map(of_run).collect();
            Some((cell.mechanism, value, Estimate::of(&figures?)?))
        })
        .collect();
    points.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    (points.chunk_by(|a, b| a.0 == b.0))
        .filter(|points| points.len() >= FEWEST)
        .map(|points| {
            let column = |of: &dyn Fn(f64, Estimate) -> f64| {
                points.iter().map(|&(_, value, estimate)| rounded(of(value, estimate))).collect()
            };
            let half = |estimate: Estimate| estimate.half_width.unwrap_or(0.0);
            Line {
                m: points[0].0,
                x: column(&|value, _| value),
                y: column(&|_, estimate| estimate.mean),
                low: column(&|_, estimate| estimate.mean - half(estimate)),
                high: column(&|_, estimate| estimate.mean + half(estimate)),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Group, Report};
    use crate::results::{Cell, CellResult, RunResult};

    /// Two seeds that complete so many exchanges a second, one more and one fewer.
    fn result(mechanism: &str, clients: u32, loss: &str, throughput: f64) -> CellResult {
        let run = |seed, throughput| RunResult { seed, throughput, ..RunResult::default() };
        let cell = Cell {
            mechanism: mechanism.into(),
            clients,
            knobs: [("loss".to_owned(), loss.to_owned())].into(),
            ..Cell::default()
        };
        CellResult { cell, runs: vec![run(1, throughput - 1.0), run(2, throughput + 1.0)], published: None }
    }

    /// The charts about these results, whose clients never stop.
    fn sweeps(results: Vec<CellResult>) -> Vec<(String, Sweep)> {
        let report = Report { groups: Group::by_conditions(results), ..Report::default() };
        of(&View::of(&report))
    }

    #[test]
    fn results_that_differ_in_one_number_lie_on_a_line_and_others_do_not() {
        let mut results: Vec<_> =
            [(60, 9.0), (20, 3.0), (40, 6.0)].map(|(clients, y)| result("a", clients, "20 %", y)).into();
        results.extend([2, 4, 8].map(|loss| result("a", 60, &format!("{loss} %"), 20.0 - f64::from(loss))));
        results.extend([result("b", 40, "20 %", 5.0), result("b", 60, "20 %", 5.0)]);
        let sweeps = sweeps(results);
        let titles: Vec<_> = sweeps.iter().map(|(title, sweep)| (title.as_str(), sweep.x.as_str())).collect();
        assert_eq!(titles, [("loss 20 %", "clients"), ("60 clients", "loss in %")]);
        let (over_clients, over_loss) = (&sweeps[0].1, &sweeps[1].1);
        assert_eq!(over_clients.y, "throughput in exchanges/s");
        assert_eq!(over_clients.lines.len(), 1, "b was measured twice only");
        let line = &over_clients.lines[0];
        assert_eq!((&line.x, &line.y), (&vec![20.0, 40.0, 60.0], &vec![3.0, 6.0, 9.0]));
        // Two values, 1 either side: 12.706 times the deviation √2 by √2.
        assert!((line.high[0] - 3.0 - 12.706).abs() < 1e-3 && (3.0 - line.low[0] - 12.706).abs() < 1e-3);
        assert_eq!(over_loss.lines[0].x, [2.0, 4.0, 8.0, 20.0]);
    }

    #[test]
    fn what_is_no_number_is_no_axis() {
        let words = ["none", "low", "high"].map(|loss| result("a", 60, loss, 5.0));
        assert!(sweeps(words.into()).is_empty());
        let units = ["70 ms", "80 ms", "1 s"].map(|delay| result("a", 60, delay, 5.0));
        assert!(sweeps(units.into()).is_empty(), "units that differ");
    }

    #[test]
    fn a_seed_without_a_figure_leaves_its_point_out() {
        let mut results: Vec<_> = [1, 2, 4, 8].map(|clients| result("a", clients, "", 5.0)).into();
        results[3].runs.clear();
        let sweeps = sweeps(results);
        assert_eq!(sweeps[0].1.lines[0].x, [1.0, 2.0, 4.0]);
    }
}
