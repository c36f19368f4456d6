//! Clients – router – server.
//!
//! 3 clients in Rathod 2022, all of which reach the server through the border router. Chosen: they stand on the half of a
//! circle around it that is away from the server, evenly, so none of any number of clients needs another to reach it.

use super::{Shape, Topology, TopologyError, at, on_circle};
use crate::Layout;

pub(super) const TOPOLOGY: Topology = Topology {
    name: "half-dumbbell",
    summary: "clients around the border router, the sink behind it",
    columns: None,
    build,
};

#[allow(clippy::unnecessary_wraps)] // as all topologies
fn build(shape: &Shape) -> Result<Layout, TopologyError> {
    let clients = shape.nodes - 2;
    // From a quarter to three quarters of a turn; one client is opposite of the server.
    let turn = |client: u32| match clients {
        1 => 0.5,
        _ => 0.25 + 0.5 * f64::from(client) / f64::from(clients - 1),
    };
    let mut places = vec![at(shape.spacing_m, 0, 0), at(shape.spacing_m, 1, 0)];
    places.extend((0..clients).map(|client| on_circle(shape.spacing_m, turn(client))));
    Ok(Layout { places, root: 0, sinks: vec![1] })
}
