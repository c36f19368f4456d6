//! Heat maps of pairs of mechanisms.

use super::super::axis::Axis;
use super::super::chart::{Body, Chart};
use super::super::pairs::{PairFigure, Pairs};
use super::super::view::View;

/// Makes the chart of a figure of pairs, if the page has pairs.
pub(super) fn chart(view: &View, measure: PairFigure) -> Option<Chart> {
    let (name, title) = match measure {
        PairFigure::Share => {
            ("coexistence-share", "Throughput beside another mechanism, in % of a fair share")
        }
        PairFigure::Kept => {
            ("coexistence-kept", "Throughput beside another mechanism, in % of that among its own kind")
        }
    };
    Some(Chart {
        name: name.into(),
        title: title.into(),
        caption: String::new(),
        conditions: String::new(),
        x: Axis::names(),
        y: Axis::names(),
        body: Body::Squares(Pairs::of(view, measure)?),
    })
}
