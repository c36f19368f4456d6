//! RTO, transfers and queues over time, in the run with the lowest seed.

use coapace_lab::lists::{distinct, joined};
use coapace_run::measured::{RunResult, Series};

use super::super::axis::Axis;
use super::super::chart::{Body, Chart, Curve};
use super::super::rounded::rounded;
use super::super::view::{Conditioned, PooledCell};

/// Returns the chart of a group's RTOs over time; `None` if no run has recorded any.
pub(super) fn rto(group: &Conditioned) -> Option<Chart> {
    let axis = |values: &[f64]| Axis::around("RTO in seconds", "s", values);
    lines(group, ["rto-over-time", "RTO"], axis, |run| &run.rto)
}

/// Returns the chart of the bytes of transfers that have arrived.
pub(super) fn arrived(group: &Conditioned) -> Option<Chart> {
    let axis = |values: &[f64]| Axis::from_zero("bytes that have arrived", "B", values);
    lines(group, ["arrived-over-time", "Bytes of bodies"], axis, |run| &run.arrived)
}

/// Returns the chart of the windows of transfers over time; `None` if no run has recorded any.
pub(super) fn windows(group: &Conditioned) -> Option<Chart> {
    let axis = |values: &[f64]| Axis::from_zero("window in blocks", "blocks", values);
    lines(group, ["window-over-time", "Window"], axis, |run| &run.windows)
}

/// Returns the chart of the blocks that transfers have sent or requested: a line for the first time, and a dot for each
/// repetition.
pub(super) fn blocks(group: &Conditioned) -> Option<Chart> {
    let axis = |values: &[f64]| Axis::from_zero("number of the block; dots: again", "blocks", values);
    let first = |cell| {
        // A departure is a moment, and not a level that lasts until the next one.
        first_series(cell, |run| &run.departed)
            .map(move |series| Curve { steps: false, ..line(cell, series) })
    };
    let again = |cell| {
        first_series(cell, |run| &run.departed_again).map(move |series| Curve {
            of: joined(&series.name, "again"),
            steps: false,
            dots: true,
            ..line(cell, series)
        })
    };
    let lines = group.cells.iter().flat_map(|cell| first(cell).chain(again(cell))).collect();
    chart(group, ["blocks-over-time", "Blocks"], axis, lines)
}

/// Returns the chart of the series that `of` selects. `names` are its name and its title, and `axis` makes the axis of the values.
fn lines(group: &Conditioned, names: [&str; 2], axis: fn(&[f64]) -> Axis, of: Of) -> Option<Chart> {
    let of_cell = |cell| first_series(cell, of).map(move |series| line(cell, series));
    chart(group, names, axis, group.cells.iter().flat_map(of_cell).collect())
}

/// Returns the chart of some lines over time; `None` without lines.
fn chart(
    group: &Conditioned,
    [name, title]: [&str; 2],
    axis: fn(&[f64]) -> Axis,
    lines: Vec<Curve>,
) -> Option<Chart> {
    if lines.is_empty() {
        return None;
    }
    let column = |of: fn(&Curve) -> &Vec<f64>| lines.iter().flat_map(of).copied().collect::<Vec<f64>>();
    Some(Chart {
        name: name.into(),
        title: format!("{title} over time, lowest seed"),
        caption: group.title.into(),
        conditions: group.title.into(),
        x: Axis::from_zero("time in seconds", "s", &column(|line| &line.x)),
        y: axis(&column(|line| &line.y)),
        body: Body::Lines { lines },
    })
}

/// Returns the charts of a group's queues, one for each hop.
pub(super) fn queues(group: &Conditioned) -> Vec<Chart> {
    let queues = group.cells.iter().flat_map(|cell| first_series(cell, |run| &run.queues));
    let hops: Vec<&str> = distinct(queues.map(|series| series.name.as_str()));
    let chart = |hop: &str| {
        let of_hop = |cell| first_series(cell, |run| &run.queues).filter(|series| series.name == hop);
        let mut lines: Vec<Curve> =
            group.cells.iter().flat_map(|cell| of_hop(cell).map(|series| line(cell, series))).collect();
        let ends: Vec<f64> = lines.iter().filter_map(|line| line.x.last().copied()).collect();
        let highest = lines.iter().flat_map(|line| &line.y).copied().fold(0.0, f64::max);
        // One unit for all lines of a chart, by the highest: 30 kB and 40000 B are hard to compare.
        let (unit, by) = match highest {
            _ if highest >= 1e6 => ("MB", 1e6),
            _ if highest >= 1e4 => ("kB", 1e3),
            _ => ("B", 1.0),
        };
        lines.iter_mut().flat_map(|line| &mut line.y).for_each(|y| *y = rounded(*y / by));
        let name = if hop.is_empty() { "queue".to_owned() } else { format!("queue-{}", super::slug(hop)) };
        Chart {
            name,
            title: if hop.is_empty() {
                "Queue over time, lowest seed".into()
            } else {
                format!("Queue {hop} over time, lowest seed")
            },
            caption: joined(group.title, hop),
            conditions: group.title.into(),
            // Runs of mechanisms end at different times, and the longest one must fit.
            x: Axis::linear("time in seconds", "s", [0.0, ends.into_iter().fold(0.0, f64::max)]),
            y: Axis::from_zero(format!("queue in {unit}"), unit, &[highest / by]),
            body: Body::Strips { lines },
        }
    };
    hops.into_iter().map(chart).collect()
}

/// A function that returns some series of a run.
type Of = fn(&RunResult) -> &Vec<Series>;

/// Returns the series to draw: the series that `of` selects from the cell's run with the lowest seed, except empty
/// ones.
fn first_series<'a>(cell: &PooledCell<'a>, of: Of) -> impl Iterator<Item = &'a Series> {
    let series = cell.result.first_run().map(of).map_or(&[][..], Vec::as_slice);
    series.iter().filter(|series| !series.points.is_empty())
}

fn line(cell: &PooledCell, series: &Series) -> Curve {
    let (x, y) = series.points.iter().map(|&(t_s, value)| (rounded(t_s), rounded(value))).unzip();
    Curve { m: cell.mechanism, of: series.name.clone(), x, y, steps: true, ..Curve::default() }
}
