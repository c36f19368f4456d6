//! Nodes anywhere in a square.
//!
//! The area of the square is the number of nodes times the spacing squared. All places are drawn again until the nodes
//! are connected, up to [`DRAWINGS`] times. More than a few nodes are hardly ever connected at a range of one spacing;
//! at a range of two spacings they mostly are. The border router is the node nearest to the centre. The primary sink is
//! the node farthest from the router, and the secondary sink the node farthest from the primary one.

use super::{Shape, Topology, TopologyError, connected, sinks};
use crate::{Layout, Position};

pub(super) const TOPOLOGY: Topology = Topology {
    name: "random",
    summary: "anywhere in a square, connected; the sinks far apart, the border router in the centre",
    columns: None,
    build,
};

/// The number of times that places are drawn before giving up.
const DRAWINGS: u64 = 100;

fn build(shape: &Shape) -> Result<Layout, TopologyError> {
    let side = shape.spacing_m * f64::from(shape.nodes).sqrt();
    let draw = |drawing: u64| -> Vec<Position> {
        let along = |node: u32, axis: u64| side * shape.stream.unit(u64::from(node), axis, drawing);
        (0..shape.nodes).map(|node| Position { x: along(node, 0), y: along(node, 1) }).collect()
    };
    // The drawing is part of the key of the random numbers, so each one has other places.
    let Some(places) = (0..DRAWINGS).map(draw).find(|places| connected(places, shape.range_m)) else {
        return Err(TopologyError(format!(
            "{} random nodes in a square of {side:.0} m at a range of {} m were not connected in any of {DRAWINGS} \
             drawings; a longer range or a smaller spacing helps",
            shape.nodes, shape.range_m
        )));
    };
    // Returns the node farthest from a place, and among equals the first.
    let farthest = |from: Position, but: u32| {
        (0..shape.nodes)
            .filter(|&node| node != but)
            // `max_by` returns the last of equals.
            .rev()
            .max_by(|&a, &b| {
                let distance = |node: u32| from.distance(places[node as usize]);
                distance(a).total_cmp(&distance(b))
            })
            .unwrap_or(0)
    };
    let centre = Position { x: side / 2.0, y: side / 2.0 };
    let root = (0..shape.nodes)
        .min_by(|&a, &b| {
            let distance = |node: u32| centre.distance(places[node as usize]);
            distance(a).total_cmp(&distance(b))
        })
        .unwrap_or(0);
    let primary = farthest(places[root as usize], root);
    let secondary = farthest(places[primary as usize], root);
    Ok(Layout { root, sinks: sinks(shape.nodes, primary, secondary), places })
}
