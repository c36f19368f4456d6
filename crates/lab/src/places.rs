//! Places of a mesh: from the keys of a scenario to where its nodes stand and go.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use coapace_control::Duration;
use coapace_sim::mobility::{self, MOBILITIES, Movement};
use coapace_sim::topology::{self, Shape, TOPOLOGIES};
use coapace_sim::{Layout, Luck, Stream, Time, Waypoint};

use crate::import::csc::Simulation;
use crate::import::{self, positions};
use crate::scenario::{Mesh, Propagation, Topology, UnitDisk};

/// The kind of a topology or of mobility that a file has.
pub(crate) const FILE: &str = "file";

/// The kind of mobility without any.
const NONE: &str = "none";

/// The ending of Cooja's simulation files.
const CSC: &str = "csc";

/// A key that is wrong, and what is wrong with it, to be read after it.
type Wrong = (&'static str, String);

/// The kinds of topologies.
pub(crate) fn topologies() -> Vec<&'static str> {
    TOPOLOGIES.iter().map(|topology| topology.name).chain([FILE]).collect()
}

/// The kinds of mobility.
pub(crate) fn mobilities() -> Vec<&'static str> {
    [NONE].into_iter().chain(MOBILITIES.iter().map(|model| model.name)).chain([FILE]).collect()
}

/// Who hears whom in a file of Cooja: the disk, and the share of all frames that are received.
type Medium = (UnitDisk, f64);

/// Where nodes stand, and what they are; and who hears whom, if the file of the topology says so.
///
/// # Errors
/// The key of the topology that is wrong, and what is wrong with it.
pub(crate) fn layout(mesh: &Mesh, folder: Option<&Path>) -> Result<(Layout, Option<Medium>), Wrong> {
    let Topology { kind, root, sinks, .. } = &mesh.topology;
    let (mut layout, medium) = match (topology::named(kind), &mesh.topology.file) {
        (Some(topology), _) => {
            let layout = topology.layout(&shape(mesh)).map_err(|error| ("kind", says(&error)))?;
            (layout, None)
        }
        (None, Some(name)) => from_file(name, folder).map_err(|problem| ("file", problem))?,
        (None, None) => return Err(("file", "is missing".to_owned())),
    };
    if let Some(root) = root {
        layout.root = *root;
    }
    if !sinks.is_empty() {
        layout.sinks.clone_from(sinks);
    }
    checked(layout).map(|layout| (layout, medium))
}

/// What a topology that comes with the program is made of.
fn shape(mesh: &Mesh) -> Shape {
    let Topology { nodes, spacing, columns, draw, .. } = mesh.topology;
    let range_m = match &mesh.radio.propagation {
        Propagation::UnitDisk(disk) => disk.range,
        // What hears whom there is luck; so far as the places are concerned it is the next.
        Propagation::LogDistance(_) | Propagation::TwoRay(_) => spacing,
    };
    // Random places belong to the scenario, whatever the seed of a run.
    let stream = Luck::new(u64::from(draw)).stream("places");
    Shape { nodes, spacing_m: spacing, columns, range_m, stream }
}

/// A Cooja simulation, whose first mote is the border router and the second the sink if nothing else is said; or lines of
/// `node time x y`, of which the first of each node counts.
fn from_file(name: &str, folder: Option<&Path>) -> Result<(Layout, Option<Medium>), String> {
    let text = read(name, folder)?;
    let (places, medium) = if Path::new(name).extension().is_some_and(|ending| ending == CSC) {
        let simulation = Simulation::parse(&text).map_err(|error| format!("`{name}`: {error}"))?;
        let medium = &simulation.medium;
        let disk = UnitDisk {
            range: medium.range_m,
            // Cooja's own rule.
            interference: medium.interference_m.max(medium.range_m),
            // A signal is noticed above the level it has at the very edge of the range.
            sense: medium.range_m,
            edge_delivery: medium.success_rx,
        };
        (simulation.motes.iter().map(|mote| mote.position).collect(), Some((disk, medium.success_tx)))
    } else {
        let waypoints =
            positions::parse(&text, topology::MAX_NODES).map_err(|error| format!("`{name}`: {error}"))?;
        let nodes = waypoints.iter().map(|waypoint| waypoint.node + 1).max().unwrap_or(0);
        let first = |node: u32| waypoints.iter().find(|waypoint| waypoint.node == node);
        let place = |node: u32| {
            let first = first(node).ok_or_else(|| format!("`{name}`: node {node} has no place"))?;
            Ok(first.position)
        };
        ((0..nodes).map(place).collect::<Result<Vec<_>, String>>()?, None)
    };
    Ok((Layout { places, root: 0, sinks: vec![1] }, medium))
}

/// A layout whose roles are those of nodes that there are, and that has a client.
fn checked(layout: Layout) -> Result<Layout, Wrong> {
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
    layout: &Layout,
    folder: Option<&Path>,
    end: Time,
    stream: Stream,
) -> Result<Vec<Waypoint>, Wrong> {
    let keys = &mesh.mobility;
    if let Some(name) = &keys.file {
        let text = read(name, folder).map_err(|problem| ("file", problem))?;
        let nodes = layout.places.len() as u32;
        return positions::parse(&text, nodes).map_err(|error| ("file", format!("`{name}`: {error}")));
    }
    let Some(model) = mobility::named(keys.kind) else { return Ok(Vec::new()) };
    let movement = Movement {
        speed_m_s: (keys.min_speed, keys.max_speed),
        pause_s: seconds(keys.pause),
        step_ns: keys.step.as_micros().saturating_mul(1_000),
        margin_m: keys.margin,
        ..Movement::default()
    };
    model.waypoints(layout, &movement, end, stream).map_err(|error| ("kind", says(&error)))
}

/// The text of a file in the scenario's own folder, or else in the working directory.
fn read(name: &str, folder: Option<&Path>) -> Result<String, String> {
    let beside = folder.map(|folder| folder.join(name)).filter(|path| path.exists());
    let path = beside.unwrap_or_else(|| PathBuf::from(name));
    let told = |error: std::io::Error| format!("`{name}`: {error}");
    let mut text = String::new();
    let file = File::open(path).map_err(told)?;
    file.take(import::MAX_BYTES as u64 + 1).read_to_string(&mut text).map_err(told)?;
    Ok(text)
}

/// An error, to be read after the key that it is about.
fn says(error: &impl std::fmt::Display) -> String {
    format!("cannot be: {error}")
}

fn seconds(span: Duration) -> f64 {
    span.as_micros() as f64 / 1e6
}
