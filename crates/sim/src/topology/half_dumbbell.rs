//! Clients on one side of a border router, and a server on the other side.
//!
//! Rathod 2022 has 3 clients, all of which reach the server through the border router. Chosen: the clients stand evenly on
//! the half of a circle around the router that is away from the server, so no client needs another to reach the router.

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
    // From a quarter to three quarters of a turn. A single client is opposite the server.
    let turn = |client: u32| match clients {
        1 => 0.5,
        _ => 0.25 + 0.5 * f64::from(client) / f64::from(clients - 1),
    };
    let mut places = vec![at(shape.spacing_m, 0, 0), at(shape.spacing_m, 1, 0)];
    places.extend((0..clients).map(|client| on_circle(shape.spacing_m, turn(client))));
    Ok(Layout { places, root: 0, sinks: vec![1] })
}
