//! Distributions of completion times and delays.

use coapace_lab::results::Metric;
use coapace_run::measured::{Delays, quantile};

use super::super::axis::Axis;
use super::super::chart::{Body, Chart, Curve, Quartiles};
use super::super::rounded::rounded;
use super::super::view::{Conditioned, PooledCell};

/// The maximum number of points of a distribution's line.
const CDF_POINTS: usize = 240;

/// The quantiles that a row shows.
const ROW: [f64; 5] = [0.1, 0.25, 0.5, 0.75, 0.9];

/// The quantiles of the FCT that a row shows.
const FCT_ROW: [Metric; 5] =
    [Metric::FctP10, Metric::FctP25, Metric::MedianFct, Metric::FctP75, Metric::FctP90];

/// The room at the right of a row for a word about clients that gave up, as a share of the axis.
const ROOM_FOR_WORDS: f64 = 0.3;

/// Returns the chart of a group's completion times, a row for each mechanism; `None` if there are
/// none, measured or published.
pub(super) fn fct(group: &Conditioned) -> Option<Chart> {
    let row = |cell: &PooledCell| {
        let value = |metric| cell.summary.value(metric).map(rounded);
        let [finished, gave_up] = [Metric::ClientsFinished, Metric::ClientsGaveUp].map(|it| cell.clients(it));
        let published = cell.published_value(Metric::MedianFct);
        // A published value is shown even if no client finished.
        (finished > 0 || published.is_some()).then(|| Quartiles {
            m: cell.mechanism,
            q: FCT_ROW.map(value),
            mean: value(Metric::MeanFct),
            published,
            count: finished,
            gave_up,
        })
    };
    boxes(group, Metric::MedianFct, ["fct-quantiles", "Flow completion time", "FCT"], row)
}

/// Returns the chart of the delays of a group's messages, a row for each mechanism; `None` if no
/// mechanism has delays.
pub(super) fn delay(group: &Conditioned) -> Option<Chart> {
    let row = |cell: &PooledCell| {
        let delays = delays(cell)?;
        Some(Quartiles {
            m: cell.mechanism,
            q: ROW.map(|p| delays.quantile_s(p).map(rounded)),
            mean: delays.mean_s().map(rounded),
            published: None,
            count: delays.count,
            gave_up: 0,
        })
    };
    boxes(group, Metric::DelayP50, ["delay-quantiles", "Delay of messages", "delay"], row)
}

/// Returns the delays of all runs of a cell; `None` if it has no flows.
fn delays(cell: &PooledCell) -> Option<Delays> {
    let all = Delays::of(&cell.result.runs);
    (all.count > 0).then_some(all)
}

fn boxes(
    group: &Conditioned,
    metric: Metric,
    [name, title, quantity]: [&str; 3],
    row: impl Fn(&PooledCell) -> Option<Quartiles>,
) -> Option<Chart> {
    let rows: Vec<Quartiles> = group.cells.iter().filter_map(row).collect();
    if rows.is_empty() {
        return None;
    }
    let mut values: Vec<f64> =
        rows.iter().flat_map(|row| row.q.into_iter().chain([row.published]).flatten()).collect();
    let bound = group.bound_near(metric, &mut values);
    let x = Axis::around(format!("{quantity} in seconds"), "s", &values);
    let x = if rows.iter().any(|row| row.gave_up > 0) { x.with_room(ROOM_FOR_WORDS) } else { x };
    Some(Chart {
        name: name.into(),
        title: format!("{title}: 10, 25, 50, 75 and 90 %"),
        caption: group.title.into(),
        conditions: group.title.into(),
        x,
        y: Axis::names(),
        body: Body::Boxes { rows, bound: bound.map(rounded) },
    })
}

/// Returns the chart of the share of a group's clients that finished within a time.
pub(super) fn fct_cdf(group: &Conditioned) -> Option<Chart> {
    let points = |cell: &PooledCell| -> Vec<(f64, f64)> {
        let fct_s = cell.result.fct_s();
        let points = fct_s.len().min(CDF_POINTS);
        (0..=points)
            .map(|i| i as f64 / points.max(1) as f64)
            // The line ends at the first client that gave up: its time is infinite, and the quantile `None`.
            .map_while(|p| Some((quantile(&fct_s, p)?, p)))
            .collect()
    };
    let words = ["fct-cdf", "Clients that are done", "FCT in seconds", "clients that are done"];
    cdf(group, words, points)
}

/// Returns the chart of the share of a group's messages that arrived within a delay.
pub(super) fn delay_cdf(group: &Conditioned) -> Option<Chart> {
    let points = |cell: &PooledCell| {
        let cdf = delays(cell).as_ref().map(Delays::cdf).unwrap_or_default();
        // The last point always stays.
        // `step_by(0)` would panic; a cell without delays has no points.
        let step = cdf.len().div_ceil(CDF_POINTS).max(1);
        cdf.into_iter().rev().step_by(step).collect::<Vec<_>>().into_iter().rev().collect()
    };
    let words = ["delay-cdf", "Messages that have arrived", "delay in seconds", "arrived messages"];
    cdf(group, words, points)
}

fn cdf(
    group: &Conditioned,
    [name, title, x, y]: [&str; 4],
    points: impl Fn(&PooledCell) -> Vec<(f64, f64)>,
) -> Option<Chart> {
    let line = |cell: &PooledCell| {
        let (x, y): (Vec<_>, Vec<_>) =
            points(cell).into_iter().map(|(x, y)| (rounded(x), rounded(y))).unzip();
        (x.len() > 1).then(|| Curve { m: cell.mechanism, x, y, ..Curve::default() })
    };
    let lines: Vec<Curve> = group.cells.iter().filter_map(line).collect();
    if lines.is_empty() {
        return None;
    }
    let values: Vec<f64> = lines.iter().flat_map(|line| line.x.iter().copied()).collect();
    Some(Chart {
        name: name.into(),
        title: title.into(),
        caption: group.title.into(),
        conditions: group.title.into(),
        x: Axis::around(x, "s", &values),
        y: Axis::share(y),
        body: Body::Lines { lines },
    })
}
