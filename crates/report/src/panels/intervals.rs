//! Means with their confidence intervals, and spurious and needed retransmissions.

use coapace_lab::lists::{capitalised, joined};
use coapace_lab::results::Metric;

use super::super::axis::Axis;
use super::super::chart::{Bar, Body, Chart, Interval};
use super::super::measure::{PageMetric, measures};
use super::super::rounded::rounded;
use super::super::view::{Conditioned, PooledCell, View};

/// The maximum number of groups for which each group has its own charts of intervals, because nobody looks at hundreds
/// of charts. If a page has more groups, the charts over knobs and the table show the values.
const MOST_GROUPS: usize = 6;

/// Returns a chart for each metric in each group; none if there are more than [`MOST_GROUPS`] groups, or only one
/// mechanism.
pub(super) fn charts(view: &View) -> Vec<Chart> {
    // With one mechanism there is nothing to compare.
    if view.groups.len() > MOST_GROUPS || view.mechanisms.len() < 2 {
        return Vec::new();
    }
    let measures = measures(view);
    let of_group = |group| measures.iter().filter_map(move |measure| chart(measure, group));
    view.groups.iter().flat_map(of_group).collect()
}

fn chart(measure: &PageMetric, group: &Conditioned) -> Option<Chart> {
    let row = |cell: &PooledCell| {
        // One seed has no interval, and the mark alone is drawn.
        let measured = measure.estimate(cell).map(|estimate| {
            let half = estimate.half_width.unwrap_or(0.0);
            [-half, 0.0, half].map(|distance| rounded(estimate.mean + distance))
        });
        let published = cell.published_value(measure.metric);
        (measured.is_some() || published.is_some()).then_some(Interval {
            m: cell.mechanism,
            measured,
            published,
        })
    };
    let rows: Vec<Interval> = group.cells.iter().filter_map(row).collect();
    if rows.is_empty() {
        return None;
    }
    // An interval that reaches below 0 does not make the axis longer.
    let ends = |row: &Interval| {
        let measured = row.measured.map(|[low, mean, high]| [low.max(0.0), mean, high]);
        measured.into_iter().flatten().chain(row.published)
    };
    let mut values: Vec<f64> = rows.iter().flat_map(ends).collect();
    // A bound far from all values is left out, so that it does not squeeze them.
    let bound = group.bound_near(measure.metric, &mut values);
    let title = capitalised(measure.metric.title());
    let seeds = group.cells.iter().map(|cell| cell.result.runs.len()).max().unwrap_or(0);
    let x = Axis::around(measure.metric.axis(), measure.metric.unit(), &values);
    let caption = joined(&title, group.title);
    let title = if seeds > 1 { format!("{title}: mean of {seeds} seeds, 95 % interval") } else { title };
    Some(Chart {
        name: measure.stem.into(),
        title,
        caption,
        conditions: group.title.into(),
        x,
        y: Axis::names(),
        body: Body::Intervals { rows, bound: bound.map(rounded) },
    })
}

/// Makes the chart of a group's spurious and needed retransmissions, if there are any.
pub(super) fn retransmissions(group: &Conditioned) -> Option<Chart> {
    let row = |cell: &PooledCell| {
        let [all, spurious] =
            [Metric::Retransmissions, Metric::Spurious].map(|metric| cell.summary.count(metric));
        let amounts = [rounded(spurious), rounded((all - spurious).max(0.0))];
        (cell.summary.runs > 0).then_some(Bar { m: cell.mechanism, amounts })
    };
    let rows: Vec<Bar> = group.cells.iter().filter_map(row).collect();
    let totals: Vec<f64> = rows.iter().map(|row| row.amounts.iter().sum()).collect();
    (totals.iter().sum::<f64>() > 0.0).then(|| Chart {
        name: "retransmissions-spurious-and-needed".into(),
        title: "Retransmissions: spurious (dark) and needed (pale)".into(),
        caption: group.title.into(),
        conditions: group.title.into(),
        // Room for the share beside the longest bar.
        x: Axis::from_zero("retransmissions per client", "per client", &totals).with_room(0.1),
        y: Axis::names(),
        body: Body::Bars { parts: ["spurious", "needed"], rows },
    })
}
