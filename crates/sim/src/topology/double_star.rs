//! Two hubs with the border router between them, each with half of the other nodes around it.
//!
//! Rathod 2022 has a dumbbell of 21 nodes whose right half is in range of its only server. Chosen: the server is a hub,
//! like the node on the opposite side of the router. The leaves of a hub stand evenly on the half of a circle that is
//! away from the router. So each leaf hears its hub and its next neighbours, and no leaf hears the router.

use super::{Shape, Topology, TopologyError, at, on_circle, sinks};
use crate::{Layout, Position};

pub(super) const TOPOLOGY: Topology = Topology {
    name: "double-star",
    summary: "two hubs, each with half of the nodes around it; the hubs are the sinks, the border router is between them",
    columns: None,
    build,
};

fn build(shape: &Shape) -> Result<Layout, TopologyError> {
    let (nodes, spacing) = (shape.nodes, shape.spacing_m);
    if nodes < 5 {
        return Err(TopologyError(format!("a double-star needs 5 nodes or more, not {nodes}")));
    }
    let leaves = nodes - 3;
    let mut places = vec![at(spacing, 0, 0), at(spacing, 1, 0), at(spacing, -1, 0)];
    for (side, count) in [(1.0, leaves.div_ceil(2)), (-1.0, leaves / 2)] {
        places.extend((0..count).map(|leaf| {
            // From a quarter of a turn before the east to a quarter after it. A single leaf is in the middle.
            let turn = match count {
                1 => 0.0,
                _ => 0.5 * f64::from(leaf) / f64::from(count - 1) - 0.25,
            };
            let Position { x, y } = on_circle(spacing, turn);
            Position { x: side * (spacing + x), y }
        }));
    }
    Ok(Layout { places, root: 0, sinks: sinks(nodes, 1, 2) })
}
