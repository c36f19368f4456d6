//! Charts of values over a knob, which is a setting of the scenario. A line connects the results that differ in the
//! value of one knob and in nothing else.

use coapace_lab::lists::{capitalised, grouped, joined};
use coapace_lab::results::conditions::{Conditions, numbers};
use coapace_run::measured::Estimate;

use super::axis::{Axis, extent};
use super::chart::{Body, Chart, Curve, slug};
use super::measure::{PageMetric, measures};
use super::rounded::rounded;
use super::view::{PooledCell, View};

/// The fewest values of a knob that make a line.
const FEWEST: usize = 2;

/// Returns a chart of each metric over each knob that varies, under each combination of the other conditions.
pub(super) fn charts(view: &View) -> Vec<Chart> {
    let cells: Vec<&PooledCell> = view.cells().map(|(_, cell)| cell).collect();
    let conditions = Conditions::of(cells.iter().map(|cell| &cell.result.cell));
    let measures = measures(view);
    let mut charts = Vec::new();
    for (place, knob) in conditions.varying.iter().enumerate() {
        // Cells that share every other condition lie on the same lines.
        let others = cells.iter().map(|&cell| {
            let mut others = conditions.values(&cell.result.cell);
            // `values` is sorted like `varying`, so the knob's own value is at its place.
            others.remove(place);
            (others, cell)
        });
        for alike in grouped(others, |a, b| a.0 == b.0) {
            let cells: Vec<&PooledCell> = alike.iter().map(|(_, cell)| *cell).collect();
            // A knob whose values are words has no axis.
            let Some((values, unit)) = numbers(knob, cells.iter().map(|cell| &cell.result.cell)) else {
                continue;
            };
            let others = conditions.describe_without(knob, &cells[0].result.cell);
            let over = if unit.is_empty() { knob.clone() } else { format!("{knob} in {unit}") };
            for measure in &measures {
                let lines = lines(measure, &values, &cells);
                // A value that no cell has, such as delays without flows.
                if lines.is_empty() {
                    continue;
                }
                let title = capitalised(measure.metric.title());
                charts.push(Chart {
                    caption: joined(&title, &others),
                    name: format!("{}-over-{}", measure.stem, slug(knob)),
                    title: format!("{title} over {knob}: mean of the seeds, 95 % interval"),
                    conditions: others.clone(),
                    x: knob_axis(&over, &unit, &lines),
                    y: value_axis(measure, &lines),
                    body: Body::Lines { lines },
                });
            }
        }
    }
    charts
}

/// Returns an axis for the values of a knob. It is logarithmic if a logarithmic scale spaces the values more evenly.
fn knob_axis(title: &str, unit: &str, lines: &[Curve]) -> Axis {
    let mut xs: Vec<f64> = lines.iter().flat_map(|line| line.x.iter().copied()).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let (Some(&first), Some(&last)) = (xs.first(), xs.last()) else { return Axis::default() };
    // The widest gap as a share of the axis: the smaller it is, the more even the spacing.
    let widest = |of: fn(f64) -> f64| {
        let gaps = xs.windows(2).map(|pair| of(pair[1]) - of(pair[0]));
        gaps.fold(0.0, f64::max) / (of(last) - of(first))
    };
    // 0 has no logarithm, and the spacing of two values is the same on both axes.
    let log = first > 0.0 && xs.len() > 2 && widest(f64::ln) < widest(|x| x);
    let mut axis = if log {
        Axis::logarithmic(title, unit, [first, last])
    } else {
        // Room for the marks of the first and the last point.
        let room = (last - first) * 0.04;
        Axis::linear(title, unit, [first - room, last + room])
    };
    // Seven values or fewer are the ticks themselves.
    if xs.len() <= 7 {
        axis.ticks = xs;
    }
    axis
}

/// Returns an axis for the values of a chart. It begins at 0, unless the lines are so far apart that a logarithmic axis shows
/// more.
fn value_axis(measure: &PageMetric, lines: &[Curve]) -> Axis {
    let values: Vec<f64> = lines.iter().flat_map(|line| line.y.iter().copied()).collect();
    let [low, high] = extent(&values);
    if low > 0.0 && high / low > 10.0 {
        return Axis::logarithmic(measure.metric.axis(), measure.metric.unit(), [low, high]);
    }
    let ends: Vec<f64> = lines.iter().flat_map(|line| line.high.iter().chain(&line.y).copied()).collect();
    // An interval of two seeds may be ten times its mean. It is cut off, since the lines would look flat otherwise.
    let ends: Vec<f64> = ends.into_iter().map(|end| end.min(high * 2.0)).collect();
    Axis::from_zero(measure.metric.axis(), measure.metric.unit(), &ends)
}

/// Returns a line for each mechanism with points at [`FEWEST`] or more values of the knob. A cell in which a seed lacks
/// the value makes no point.
fn lines(measure: &PageMetric, values: &[f64], cells: &[&PooledCell]) -> Vec<Curve> {
    let mut points: Vec<_> = (cells.iter().zip(values))
        .filter_map(|(cell, &value)| Some((cell.mechanism, value, measure.estimate(cell)?)))
        .collect();
    // By mechanism first, because `chunk_by` groups only neighbours.
    points.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    (points.chunk_by(|a, b| a.0 == b.0))
        .filter(|points| points.len() >= FEWEST)
        .map(|points| {
            let end = |sign: f64, it: &Estimate| rounded(it.mean + sign * it.half_width.unwrap_or(0.0));
            let ends = |sign: f64| points.iter().map(|(_, _, it)| end(sign, it)).collect();
            Curve {
                m: points[0].0,
                x: points.iter().map(|(_, value, _)| rounded(*value)).collect(),
                y: points.iter().map(|(_, _, it)| rounded(it.mean)).collect(),
                low: ends(-1.0),
                high: ends(1.0),
                marks: true,
                ..Curve::default()
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CellGroup, Report};
    use coapace_lab::results::{Cell, CellResult};
    use coapace_run::measured::RunResult;

    /// Makes a cell of two seeds, one of which completes one exchange a second more than `throughput`, the other one fewer.
    fn result(mechanism: &str, clients: u32, loss: &str, throughput: f64) -> CellResult {
        let run = |seed, throughput| RunResult { seed, throughput, ..RunResult::default() };
        let cell = Cell {
            mechanism: mechanism.into(),
            clients,
            knobs: [("loss".to_owned(), loss.to_owned())].into(),
            ..Cell::default()
        };
        CellResult { cell, runs: vec![run(1, throughput - 1.0), run(2, throughput + 1.0)] }
    }

    /// Returns the charts over knobs of these results. Their clients go on until the run ends.
    fn sweeps(results: Vec<CellResult>) -> Vec<(Chart, Vec<Curve>)> {
        let report = Report { groups: CellGroup::by_conditions(results), ..Report::default() };
        let charts = charts(&View::of(&report)).into_iter();
        let throughput = charts.filter(|chart| chart.name.starts_with("throughput-"));
        throughput
            .map(|mut chart| {
                let lines = Body::Lines { lines: Vec::new() };
                let Body::Lines { lines } = std::mem::replace(&mut chart.body, lines) else {
                    panic!("lines")
                };
                (chart, lines)
            })
            .collect()
    }

    #[test]
    fn results_that_differ_in_one_numeric_knob_form_a_line() {
        let mut results: Vec<_> =
            [(60, 9.0), (20, 3.0), (40, 6.0)].map(|(clients, y)| result("a", clients, "20 %", y)).into();
        results.extend([2, 4, 8].map(|loss| result("a", 60, &format!("{loss} %"), 20.0 - f64::from(loss))));
        results.extend([result("b", 40, "20 %", 5.0), result("b", 60, "20 %", 5.0)]);
        let sweeps = sweeps(results);
        let titles: Vec<_> = sweeps.iter().map(|(chart, _)| (&*chart.conditions, &*chart.x.title)).collect();
        assert_eq!(titles[0], ("loss 20 %", "clients"));
        assert_eq!(titles[1], ("60 clients", "loss in %, logarithmic"));
        let ((over_clients, lines), (_, over_loss)) = (&sweeps[0], &sweeps[1]);
        assert_eq!(over_clients.y.title, "throughput in exchanges/s");
        assert_eq!(over_clients.name, "throughput-over-clients");
        assert_eq!(lines.len(), 2, "`b` was measured at two numbers of clients");
        let line = &lines[0];
        assert_eq!((&line.x, &line.y), (&vec![20.0, 40.0, 60.0], &vec![3.0, 6.0, 9.0]));
        // The two values lie 1 above and 1 below the mean: Student's t is 12.706, the deviation √2, and the divisor √2.
        assert!((line.high[0] - 3.0 - 12.706).abs() < 1e-3 && (3.0 - line.low[0] - 12.706).abs() < 1e-3);
        assert_eq!(over_loss[0].x, [2.0, 4.0, 8.0, 20.0]);
    }

    #[test]
    fn a_knob_with_values_that_are_not_numbers_has_no_axis() {
        let words = ["none", "low", "high"].map(|loss| result("a", 60, loss, 5.0));
        assert!(sweeps(words.into()).is_empty());
        let units = ["70 ms", "80 ms", "1 s"].map(|delay| result("a", 60, delay, 5.0));
        assert!(sweeps(units.into()).is_empty(), "the units differ");
    }

    #[test]
    fn a_seed_without_a_value_removes_its_point_from_the_line() {
        let mut results: Vec<_> = [1, 2, 4, 8].map(|clients| result("a", clients, "", 5.0)).into();
        results[3].runs.clear();
        let sweeps = sweeps(results);
        assert_eq!(sweeps[0].1[0].x, [1.0, 2.0, 4.0]);
    }
}
