//! Petals around a centre, each a loop of nodes that begins and ends there.
//!
//! Rathod 2022 has 36 nodes, and does not describe the rest. Chosen: the border router is the centre, and the other 35
//! nodes make 5 petals of 7. A petal has two straight sides and, if its number of nodes is odd, a node that joins the
//! sides at the tip. The primary sink is at the tip of the first petal, and the secondary sink at the tip of the petal
//! opposite.

use super::{SHRINK, Shape, Topology, TopologyError, sinks};
use crate::{Layout, Position};

pub(super) const TOPOLOGY: Topology = Topology {
    name: "flower",
    summary: "petals, each a loop, around the border router; sinks at the tips of two petals",
    columns: Some("petals; 5 if it is not said"),
    build,
};

fn build(shape: &Shape) -> Result<Layout, TopologyError> {
    let (nodes, petals) = (shape.nodes, shape.columns.unwrap_or(5));
    let petal = (nodes - 1) / petals;
    if petals < 2 || petal < 3 || petal * petals != nodes - 1 {
        return Err(TopologyError(format!(
            "a flower needs one node in the centre and 2 petals or more, each of 3 nodes or more; not {nodes} nodes \
             with {petals} petals"
        )));
    }
    let mut places = vec![Position::default()];
    for i in 0..petals {
        let angle = std::f64::consts::TAU * f64::from(i) / f64::from(petals);
        let (east, south) = (libm::cos(angle), libm::sin(angle));
        places.extend(loop_of(petal, petals).map(|(along, aside)| Position {
            x: SHRINK * shape.spacing_m * (along * east - aside * south),
            y: SHRINK * shape.spacing_m * (along * south + aside * east),
        }));
    }
    // The last node of a petal is its tip, or the end of one side.
    let tip_of = |i: u32| (i + 1) * petal;
    Ok(Layout { places, root: 0, sinks: sinks(nodes, tip_of(0), tip_of(petals / 2)) })
}

/// Returns the positions of the nodes of a petal, from the centre outwards: along its axis and across it, in spacings.
fn loop_of(petal: u32, petals: u32) -> impl Iterator<Item = (f64, f64)> {
    let side = petal / 2;
    // The ends of the sides are in range of the tip between them, or of each other, with some room. The sides of a short
    // petal are no nearer to each other than to the next petal.
    let half_gap = if petal % 2 == 1 { 0.9 } else { 0.45 };
    let aside = libm::sin(std::f64::consts::FRAC_PI_2 / f64::from(petals)).min(half_gap / f64::from(side));
    let along = (1.0 - aside * aside).sqrt();
    let sides = (1..=side).flat_map(move |i| {
        let i = f64::from(i);
        [(i * along, i * aside), (i * along, -i * aside)]
    });
    let half_gap = f64::from(side) * aside;
    let tip = f64::from(side) * along + (1.0 - half_gap * half_gap).sqrt();
    sides.chain((petal % 2 == 1).then_some((tip, 0.0)))
}
