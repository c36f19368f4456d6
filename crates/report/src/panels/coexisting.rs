//! Heat maps of pairs of mechanisms.

use super::super::axis::Axis;
use super::super::chart::{Body, Chart};
use super::super::pairs::{PairValue, Pairs};
use super::super::view::View;

/// Makes the heat map of one value of the pairs, if the page has pairs.
pub(super) fn chart(view: &View, measure: PairValue) -> Option<Chart> {
    let pairs = Pairs::of(view, measure)?;
    let rate = if pairs.of_transfers { "Goodput" } else { "Throughput" };
    let (name, whole) = match measure {
        PairValue::Share => ("coexistence-share", "a fair share"),
        PairValue::Kept => ("coexistence-kept", "that among its own kind"),
    };
    Some(Chart {
        name: name.into(),
        title: format!("{rate} beside another mechanism, in % of {whole}"),
        caption: String::new(),
        conditions: String::new(),
        x: Axis::names(),
        y: Axis::names(),
        body: Body::Squares(pairs),
    })
}
