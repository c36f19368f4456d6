//! The positions and movements of a mesh's nodes, from the keys of a scenario.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use coapace_sim::mesh::{Propagation, UnitDisk};
use coapace_sim::mobility::Model;
use coapace_sim::topology::{self, MAX_NODES, Shape};
use coapace_sim::{Layout, Luck, Stream, Time, Waypoint};

use crate::hash::Hash64;
use crate::import::csc::Simulation;
use crate::import::{MAX_BYTES, positions};
use crate::mesh::{Mesh, Mobility, Topology, Waypoints};
use crate::text;

/// The positions of the nodes of a mesh, and their movements.
#[derive(Clone, Debug, PartialEq)]
pub struct Places {
    /// The positions and the roles of the nodes at the start.
    pub layout: Layout,
    /// The radio medium from the topology's file; `None` without a file, or if the file describes no radio medium.
    pub(crate) medium: Option<UnitDisk>,
    moves: Moves,
    /// The keys of the mesh that name files, each with a hash of the file's content.
    pub(crate) files: Vec<(&'static str, Hash64)>,
}

/// The movements of nodes.
#[derive(Clone, Debug, PartialEq)]
enum Moves {
    /// The waypoints of a file, equal in every run. The list is empty if no node moves.
    Listed(Vec<Waypoint>),
    /// A model, which draws other waypoints in every run.
    Drawn(Model),
}

/// A wrong key of the mesh, and the error message about it.
pub(crate) type MeshProblem = (&'static str, String);

impl Places {
    /// Finds the positions of the nodes of a mesh, and their movements until `end`. Files are looked for in `folder`,
    /// then in the working directory.
    ///
    /// # Errors
    /// Returns the wrong key, and the error message about it.
    pub(crate) fn of(mesh: &Mesh, folder: Option<&Path>, end: Time) -> Result<Self, MeshProblem> {
        let mut files = Vec::new();
        // The hash of a file's content, not its name, is part of the scenario's hash.
        let mut text_of = |key: &'static str, name: &str| {
            let text = read(name, folder).map_err(|problem| (key, problem))?;
            files.push((key, Hash64::of(text.bytes())));
            Ok::<_, MeshProblem>(text)
        };
        let (mut layout, medium) = if let Some(name) = &mesh.topology.file {
            let text = text_of("topology.file", name)?;
            listed(name, &text).map_err(|problem| ("topology.file", wrong(name, &problem)))?
        } else {
            (built(mesh).map_err(|problem| ("topology.kind", format!("cannot be: {problem}")))?, None)
        };
        // Keys of the scenario take precedence over the roles that a file gives its nodes.
        let Topology { root, sinks, .. } = &mesh.topology;
        layout.root = root.unwrap_or(layout.root);
        if !sinks.is_empty() {
            layout.sinks.clone_from(sinks);
        }
        check(&layout)?;
        let moves = match &mesh.mobility {
            Mobility::None(_) => Moves::Listed(Vec::new()),
            Mobility::RandomWaypoint(model) => Moves::Drawn(Model::RandomWaypoint(*model)),
            Mobility::GaussMarkov(model) => Moves::Drawn(Model::GaussMarkov(*model)),
            Mobility::Manhattan(model) => Moves::Drawn(Model::Manhattan(*model)),
            Mobility::Pursue(model) => Moves::Drawn(Model::Pursue(*model)),
            Mobility::File(Waypoints { file }) => {
                let text = text_of("mobility.file", file)?;
                let moves = match positions::parse(&text, layout.places.len() as u32) {
                    // A file without waypoints is a mistake: mobility "none" says the same.
                    Ok(moves) if moves.is_empty() => Err("it has no line `node time x y`".to_owned()),
                    moves => moves,
                };
                Moves::Listed(moves.map_err(|problem| ("mobility.file", wrong(file, &problem)))?)
            }
        };
        let places = Self { layout, medium, moves, files };
        // Memory and time do not depend on the numbers that are drawn, so one trial is enough.
        places.drawn(end, Luck::new(1).stream("mobility")).map_err(|problem| ("mobility.kind", problem))?;
        Ok(places)
    }

    /// Returns whether every run draws movements of its own.
    pub(crate) fn are_drawn(&self) -> bool {
        matches!(self.moves, Moves::Drawn(_))
    }

    /// Returns the movements until `end` in the run whose random numbers `stream` gives.
    pub fn waypoints(&self, end: Time, stream: Stream) -> Vec<Waypoint> {
        // Reading the scenario has tried this, so it does not fail.
        self.drawn(end, stream).unwrap_or_default()
    }

    fn drawn(&self, end: Time, stream: Stream) -> Result<Vec<Waypoint>, String> {
        match &self.moves {
            Moves::Listed(waypoints) => Ok(waypoints.clone()),
            Moves::Drawn(model) => {
                let waypoints = model.waypoints(&self.layout, end, stream);
                waypoints.map_err(|error| format!("cannot be: {error}"))
            }
        }
    }
}

/// Returns the layout of the built-in topology that the mesh names.
fn built(mesh: &Mesh) -> Result<Layout, String> {
    let Topology { kind, nodes, spacing, columns, draw, .. } = &mesh.topology;
    // Random places are drawn until all nodes are connected over this range. Propagation without a range takes the spacing.
    let range_m = match &mesh.radio.propagation {
        Propagation::UnitDisk(disk) => disk.range_m,
        Propagation::LogDistance(_) | Propagation::TwoRay(_) => *spacing,
    };
    // Places belong to the scenario, not to the seed of a run.
    let stream = Luck::new(u64::from(*draw)).stream("places");
    let shape = Shape { nodes: *nodes, spacing_m: *spacing, columns: *columns, range_m, stream };
    // The schema accepts only known names, so this does not fail.
    let topology = topology::named(kind).ok_or("this topology is unknown")?;
    topology.layout(&shape).map_err(|error| error.to_string())
}

/// Returns the layout in the file `name` with this `text`, and the radio medium of a Cooja simulation. The nodes are
/// numbered from 0; the motes of a Cooja simulation in the sequence of the file.
///
/// The mote that a simulation of Cooja marks as root is the root and the only sink; without one, the first node is the root
/// and the second the sink.
fn listed(name: &str, text: &str) -> Result<(Layout, Option<UnitDisk>), String> {
    let is_cooja = Path::new(name).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csc"));
    let (places, root, medium) = if is_cooja {
        let simulation = Simulation::parse(text)?;
        (simulation.places, simulation.root, Some(simulation.medium))
    } else {
        let waypoints = positions::parse(text, MAX_NODES)?;
        let mut places: Vec<Option<_>> = Vec::new();
        for waypoint in waypoints {
            let node = waypoint.node as usize;
            if node >= places.len() {
                // Bounded by the parser, which refuses nodes from `MAX_NODES` on.
                places.resize(node + 1, None);
            }
            // Waypoints come in the order of time: the first one of a node is its place at the start.
            places[node].get_or_insert(waypoint.position);
        }
        if let Some(node) = places.iter().position(Option::is_none) {
            return Err(format!("node {node} has no position"));
        }
        (places.into_iter().flatten().collect(), None, None)
    };
    Ok((Layout { places, root: root.unwrap_or(0), sinks: vec![root.unwrap_or(1)] }, medium))
}

/// Checks that border router and sinks are nodes of the layout, and that a client is left.
fn check(layout: &Layout) -> Result<(), MeshProblem> {
    let nodes = layout.places.len();
    let is_there = |node: u32| (node as usize) < nodes;
    if !is_there(layout.root) {
        return Err(("topology.root", format!("must be below the number of nodes, {nodes}")));
    }
    let mut roles = BTreeSet::new();
    // `insert` returns false for a sink that is named twice.
    if layout.sinks.is_empty() || layout.sinks.iter().any(|&sink| !is_there(sink) || !roles.insert(sink)) {
        return Err((
            "topology.sinks",
            format!("must be different numbers below the number of nodes, {nodes}"),
        ));
    }
    // The root may be a sink, too, and counts once.
    roles.insert(layout.root);
    if nodes <= roles.len() {
        return Err(("topology.nodes", "leave no client beside border router and sinks".to_owned()));
    }
    Ok(())
}

/// Returns the path of a file: in `folder` if it is there, or else in the working directory.
pub(crate) fn found(name: &str, folder: Option<&Path>) -> PathBuf {
    let beside = folder.map(|folder| folder.join(name)).filter(|path| path.exists());
    beside.unwrap_or_else(|| name.into())
}

/// Returns the text of a file.
fn read(name: &str, folder: Option<&Path>) -> Result<String, String> {
    let path = found(name, folder);
    // Opening a pipe would wait for its writer.
    if std::fs::metadata(&path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(wrong(name, "it is not a regular file"));
    }
    text::read(&path, MAX_BYTES).map_err(|problem| wrong(name, &problem))
}

/// Returns the error message about a file that cannot be used, on one line.
fn wrong(name: &str, problem: &str) -> String {
    // The name and the problem may quote a file from somebody else, with line ends or escape codes of a terminal.
    let shown: String = name.chars().filter(|c| !c.is_control()).collect();
    let problem = problem.replace(char::is_control, " ");
    format!("`{shown}` cannot be used: {problem}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_node_positions_is_a_layout() {
        let (layout, _) =
            listed("x.dat", "# node time x y\n0 0 0 0\n2 0 20 0\n1 0 10 0\n1 5 99 0\n").unwrap();
        assert_eq!(layout.places.iter().map(|place| place.x as i32).collect::<Vec<_>>(), [0, 10, 20]);
        assert_eq!(listed("x.dat", "0 0 0 0\n2 0 1 1\n").unwrap_err(), "node 1 has no position");
        assert!(listed("x.csc", "<simconf>").unwrap_err().starts_with("line 1: "));
    }

    #[test]
    fn a_pipe_as_a_file_of_positions_is_refused_without_blocking() {
        let path = std::env::temp_dir().join(format!("coapace-pipe-{}.csc", std::process::id()));
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let refused = read(path.to_str().unwrap(), None).unwrap_err();
        std::fs::remove_file(path).unwrap();
        assert!(refused.ends_with("cannot be used: it is not a regular file"), "{refused}");
    }

    #[test]
    fn roles_of_nonexistent_nodes_are_refused() {
        let layout = |root, sinks: &[u32]| Layout {
            places: vec![coapace_sim::Position::default(); 4],
            root,
            sinks: sinks.to_vec(),
        };
        let key = |layout: &Layout| check(layout).err().map(|(key, _)| key);
        assert_eq!(key(&layout(0, &[1, 2])), None);
        assert_eq!(key(&layout(4, &[1])), Some("topology.root"));
        assert_eq!(key(&layout(0, &[1, 1])), Some("topology.sinks"));
        assert_eq!(key(&layout(0, &[1, 2, 3])), Some("topology.nodes"));
    }
}
