//! Circles around a collector.
//!
//! Ancillotti 2018 has 57 and 112 nodes on circles 10 m apart, with the collector in the middle and a range of 10 m. It
//! does not give the number of nodes on a circle. Chosen: 14 on each circle, one behind the other, because only circles
//! of equal size put every node in range of a node on the next circle inwards. So 112 is 1 + 7·14 + 13, and 57 is 1 +
//! 4·14. The outermost circle has the remaining nodes, spread over the places behind the circle before it. The
//! collector is the border router and the sink.

use super::{Shape, Topology, TopologyError, on_circle};
use crate::{Layout, Position};

pub(super) const TOPOLOGY: Topology = Topology {
    name: "concentric",
    summary: "circles around a collector, which is border router and sink",
    columns: Some("nodes on a circle; 14 if it is not said"),
    build,
};

#[allow(clippy::unnecessary_wraps)] // as all topologies
fn build(shape: &Shape) -> Result<Layout, TopologyError> {
    let (others, circle) = (shape.nodes - 1, shape.columns.unwrap_or(14));
    let mut places = vec![Position::default()];
    places.extend((0..others).map(|i| {
        let ring = i / circle;
        let on_ring = circle.min(others - ring * circle);
        let spoke = (u64::from(i % circle) * u64::from(circle) / u64::from(on_ring)) as u32;
        on_circle(shape.spacing_m * f64::from(ring + 1), f64::from(spoke) / f64::from(circle))
    }));
    Ok(Layout { places, root: 0, sinks: vec![0] })
}
