//! Measured values over published ones.

use super::super::axis::{Axis, extent};
use super::super::chart::{Body, Chart, PublishedPoint};
use super::super::rounded::rounded;
use super::super::view::{View, metrics};

/// Returns a chart for each metric with more than one published value.
pub(super) fn charts(view: &View) -> Vec<Chart> {
    let compared = view.compared();
    let metrics = metrics(&compared);
    let chart = |metric: &coapace_lab::results::Metric| {
        let points: Vec<PublishedPoint> = (compared.iter())
            // Logarithmic axes have no place for 0.
            .filter(|compared| compared.value.metric == *metric && compared.value.published > 0.0)
            .filter_map(|compared| {
                Some(PublishedPoint {
                    m: compared.cell.mechanism,
                    conditions: compared.title.into(),
                    published: compared.value.published,
                    measured: rounded(compared.value.measured.filter(|measured| *measured > 0.0)?),
                })
            })
            .collect();
        // One point is better read in the table.
        if points.len() < 2 {
            return None;
        }
        let values: Vec<f64> = points.iter().flat_map(|point| [point.published, point.measured]).collect();
        let [low, high] = extent(&values);
        // Both axes have the same ends, so that equal values lie on the diagonal.
        let ends = [low / 1.25, high * 1.25];
        Some(Chart {
            name: format!("published-{}", super::slug(metric.title())),
            title: format!("Published and measured: {}", metric.title()),
            caption: if metrics.len() > 1 { metric.title().into() } else { String::new() },
            conditions: String::new(),
            x: Axis::logarithmic(format!("published {}", metric.axis()), metric.unit(), ends),
            y: Axis::logarithmic("measured", metric.unit(), ends),
            body: Body::Points { points },
        })
    };
    metrics.iter().filter_map(chart).collect()
}
