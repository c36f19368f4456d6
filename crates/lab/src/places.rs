//! Places of a mesh: from the keys of a scenario to where its nodes stand and go.

use std::path::Path;

use coapace_sim::{Layout, Position, Stream, Time, Waypoint};

use crate::scenario::{Mesh, Topology};

/// The kind of a topology or of mobility that a file has.
pub(crate) const FILE: &str = "file";

/// The kinds of topologies.
pub(crate) fn topologies() -> Vec<&'static str> {
    vec!["grid", FILE]
}

/// The kinds of mobility.
pub(crate) fn mobilities() -> Vec<&'static str> {
    vec!["none", FILE]
}

/// Where nodes stand, and what they are.
///
/// # Errors
/// The key of the topology that is wrong, and what is wrong with it.
pub(crate) fn layout(mesh: &Mesh, _folder: Option<&Path>) -> Result<Layout, (&'static str, String)> {
    let Topology { kind, nodes, spacing, columns, root, sinks, .. } = &mesh.topology;
    if *kind == FILE {
        return Err(("file", "cannot be read yet".to_owned()));
    }
    let columns = columns.unwrap_or_else(|| nodes.isqrt());
    if nodes % columns != 0 {
        return Err(("nodes", format!("must fill {columns} columns")));
    }
    let place = |node: u32| Position {
        x: f64::from(node % columns) * spacing,
        y: f64::from(node / columns) * spacing,
    };
    let mut layout = Layout {
        places: (0..*nodes).map(place).collect(),
        root: nodes / columns / 2 * columns + columns / 2,
        sinks: vec![0, nodes - 1],
    };
    if let Some(root) = root {
        layout.root = *root;
    }
    if !sinks.is_empty() {
        layout.sinks.clone_from(sinks);
    }
    checked(layout)
}

/// A layout whose roles are those of nodes that there are, and that has a client.
fn checked(layout: Layout) -> Result<Layout, (&'static str, String)> {
    let nodes = layout.places.len();
    let is_there = |node: u32| (node as usize) < nodes;
    if !is_there(layout.root) {
        return Err(("root", format!("must be a number below that of nodes, {nodes}")));
    }
    let mut seen = std::collections::BTreeSet::new();
    if layout.sinks.is_empty() || layout.sinks.iter().any(|&sink| !is_there(sink) || !seen.insert(sink)) {
        return Err(("sinks", format!("must be different numbers below that of nodes, {nodes}")));
    }
    if nodes <= seen.len() + usize::from(!seen.contains(&layout.root)) {
        return Err(("nodes", "leave no client beside border router and sinks".to_owned()));
    }
    Ok(layout)
}

/// Where nodes go until `end`.
///
/// # Errors
/// The key of mobility that is wrong, and what is wrong with it.
pub(crate) fn waypoints(
    mesh: &Mesh,
    _layout: &Layout,
    _folder: Option<&Path>,
    _end: Time,
    _stream: Stream,
) -> Result<Vec<Waypoint>, (&'static str, String)> {
    if mesh.mobility.kind == FILE {
        return Err(("file", "cannot be read yet".to_owned()));
    }
    Ok(Vec::new())
}
