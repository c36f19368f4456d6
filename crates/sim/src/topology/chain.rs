//! A row of nodes.
//!
//! Betzler 2015 has 17 nodes, Rathod 2022 has 20. Chosen: the border router is in the middle, the primary sink at one end
//! and the secondary sink at the other, so that paths have the full length in hops.

use super::{Shape, Topology, TopologyError, at, sinks};
use crate::Layout;

pub(super) const TOPOLOGY: Topology = Topology {
    name: "chain",
    summary: "a row; a sink at each end, the border router in the middle",
    columns: None,
    build,
};

#[allow(clippy::unnecessary_wraps)] // as all topologies
fn build(shape: &Shape) -> Result<Layout, TopologyError> {
    let nodes = shape.nodes;
    Ok(Layout {
        places: (0..nodes).map(|i| at(shape.spacing_m, i64::from(i), 0)).collect(),
        root: nodes / 2,
        sinks: sinks(nodes, 0, nodes - 1),
    })
}
