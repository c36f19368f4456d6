//! Heat maps of pairs of mechanisms.

use super::super::axis::Axis;
use super::super::chart::{Body, Chart};
use super::super::pairs::{PairFigure, Pairs};
use super::super::view::View;

/// Makes the chart of the shares of the throughput, if the page has pairs.
pub(super) fn share(view: &View) -> Option<(String, Chart)> {
    chart(view, PairFigure::Share, "share", "Throughput beside another mechanism, in % of a fair share")
}

/// Makes the chart of the throughput in each pair beside that without the other mechanism, if the page has pairs.
pub(super) fn kept(view: &View) -> Option<(String, Chart)> {
    chart(
        view,
        PairFigure::Kept,
        "kept",
        "Throughput beside another mechanism, in % of that among its own kind",
    )
}

fn chart(view: &View, measure: PairFigure, name: &str, title: &str) -> Option<(String, Chart)> {
    let pairs = Pairs::of(view, measure)?;
    let chart = Chart {
        name: format!("coexistence-{name}"),
        title: title.into(),
        conditions: String::new(),
        x: Axis::names(),
        y: Axis::names(),
        body: Body::Squares(pairs),
    };
    Some((String::new(), chart))
}
