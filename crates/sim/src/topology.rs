//! Topologies: the places of the nodes of a mesh. A new topology is a file in `topology/` and a line in the list below.
//!
//! The papers draw their topologies, and give the number of nodes and the spacing. The border router and the sinks can
//! at most be inferred from the published values. In each file, choices that were made here are marked "Chosen".
//! Everything else comes from the source.
//!
//! ```
//! use coapace_sim::Luck;
//! use coapace_sim::topology::{Shape, named};
//!
//! let shape = Shape { nodes: 36, spacing_m: 10.0, columns: None, range_m: 10.0, stream: Luck::new(1).stream("places") };
//! let layout = named("grid").unwrap().layout(&shape)?;
//! assert_eq!(layout.places.len(), 36);
//! # Ok::<(), coapace_sim::topology::TopologyError>(())
//! ```

mod reach;

use std::fmt;

use crate::{Layout, Position, Stream};

pub use reach::connected;

/// Declares the files, and lists their topologies.
macro_rules! topologies {
    ($($file:ident)+) => {
        $(mod $file;)+

        /// All topologies.
        pub const TOPOLOGIES: &[Topology] = &[$($file::TOPOLOGY,)+];
    };
}

topologies! {
    chain
    dumbbell
    double_star
    half_dumbbell
    grid
    flower
    concentric
    random
}

/// A named topology.
#[derive(Clone, Copy, Debug)]
pub struct Topology {
    /// The name in scenarios.
    pub name: &'static str,
    /// A description in one line.
    pub summary: &'static str,
    /// The meaning of [`Shape::columns`] in this topology; `None` if the topology has no columns.
    pub columns: Option<&'static str>,
    /// Builds the layout of a shape that [`layout`](Self::layout) has checked.
    build: fn(&Shape) -> Result<Layout, TopologyError>,
}

/// Returns the topology of this name.
pub fn named(name: &str) -> Option<&'static Topology> {
    TOPOLOGIES.iter().find(|topology| topology.name == name)
}

/// The size of a topology.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// The number of nodes with the border router and the sinks, from 3 to [`MAX_NODES`].
    pub nodes: u32,
    /// The distance from a node to the next, in metres, from 0.01 to 10,000; rounded down to a quarter of a micrometre.
    pub spacing_m: f64,
    /// The width, if the topology has one; see [`Topology::columns`]. `None` lets the topology choose.
    pub columns: Option<u32>,
    /// The range of the radios in metres, from 0.01 to 10,000. Random places are drawn until all nodes are connected at this
    /// range.
    pub range_m: f64,
    /// The source of random places.
    pub stream: Stream,
}

/// The largest number of nodes.
pub const MAX_NODES: u32 = 100_000;

/// The number of nodes from which on there is a second sink. Chosen: the networks of Betzler 2015 and of the mobile
/// experiments of Rathod 2022 have two sinks and 17 nodes or more; Rathod's 3×3 grid and half dumbbell have one.
const SECOND_SINK_FROM: u32 = 12;

/// The factor by which circles are drawn smaller, 10 nm in 10 m. Without it, a rounding error of a sine could make a
/// distance longer than the range.
const SHRINK: f64 = 1.0 - 1e-9;

impl Topology {
    /// Returns the places of the nodes. All of them are connected at a range of one spacing (random places at
    /// [`Shape::range_m`]), and no two nodes share a place.
    ///
    /// # Errors
    /// [`TopologyError`] names the need of the topology that the shape does not meet.
    pub fn layout(&self, shape: &Shape) -> Result<Layout, TopologyError> {
        let error = |problem: String| Err(TopologyError(problem));
        if !(3..=MAX_NODES).contains(&shape.nodes) {
            return error(format!("a topology needs from 3 to {MAX_NODES} nodes, not {}", shape.nodes));
        }
        for (what, metres) in [("spacing", shape.spacing_m), ("range", shape.range_m)] {
            if !(0.01..=10_000.0).contains(&metres) {
                return error(format!("the {what} must be from 0.01 to 10000 m, not {metres}"));
            }
        }
        match (shape.columns, self.columns) {
            (Some(0), _) => error("columns must be 1 or more".to_owned()),
            (Some(_), None) => error(format!("a topology of the kind {} has no columns", self.name)),
            // Multiples of a multiple of 2⁻²² m have no rounding error, so no link is longer than another.
            _ => (self.build)(&Shape {
                spacing_m: (shape.spacing_m * 4_194_304.0).floor() / 4_194_304.0,
                ..*shape
            }),
        }
    }
}

/// The reason why a shape has no layout, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyError(String);

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TopologyError {}

/// Returns the sinks of a network of this number of nodes: the primary sink, and also the secondary sink if there are
/// enough nodes.
fn sinks(nodes: u32, primary: u32, secondary: u32) -> Vec<u32> {
    if nodes < SECOND_SINK_FROM { vec![primary] } else { vec![primary, secondary] }
}

/// Returns the position that is `x` spacings east and `y` spacings south of the origin.
fn at(spacing_m: f64, x: i64, y: i64) -> Position {
    Position { x: x as f64 * spacing_m, y: y as f64 * spacing_m }
}

/// Returns a position on a circle around the origin, or slightly within it. `turn` is the angle from the east,
/// clockwise, as a share of a full turn.
fn on_circle(radius_m: f64, turn: f64) -> Position {
    let angle = std::f64::consts::TAU * turn;
    Position { x: SHRINK * radius_m * libm::cos(angle), y: SHRINK * radius_m * libm::sin(angle) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Luck;

    fn shape(nodes: u32) -> Shape {
        let stream = Luck::new(7).stream("places");
        Shape { nodes, spacing_m: 10.0, columns: None, range_m: 10.0, stream }
    }

    fn layout(name: &str, nodes: u32) -> Layout {
        named(name).unwrap().layout(&shape(nodes)).unwrap()
    }

    /// Returns the number of neighbours of a node at a range of one spacing.
    fn degree(layout: &Layout, node: u32) -> usize {
        let from = layout.places[node as usize];
        layout.places.iter().filter(|&&place| place != from && from.distance(place) <= 10.0).count()
    }

    /// Returns the number of hops from `from` to each node at a range of one spacing.
    fn hops(layout: &Layout, from: u32) -> Vec<usize> {
        let mut hops = vec![usize::MAX; layout.places.len()];
        hops[from as usize] = 0;
        let mut queue = std::collections::VecDeque::from([from as usize]);
        while let Some(node) = queue.pop_front() {
            for (other, place) in layout.places.iter().enumerate() {
                if hops[other] == usize::MAX && place.distance(layout.places[node]) <= 10.0 {
                    hops[other] = hops[node] + 1;
                    queue.push_back(other);
                }
            }
        }
        hops
    }

    #[test]
    fn every_topology_of_any_size_is_connected_and_has_distinct_places_and_roles() {
        for topology in TOPOLOGIES {
            let mut built = 0;
            for nodes in (3..150).chain([1_024, 9_801]) {
                for columns in [None, Some(1), Some(2), Some(3), Some(8), Some(35)] {
                    for spacing_m in [10.0, 0.3, 7.1] {
                        let range_m = if topology.name == "random" { 3.0 * spacing_m } else { spacing_m };
                        let shape = Shape { spacing_m, columns, range_m, ..shape(nodes) };
                        let Ok(layout) = topology.layout(&shape) else { continue };
                        let what = format!("{} of {nodes} in {columns:?} {spacing_m} m apart", topology.name);
                        assert_eq!(layout.places.len(), nodes as usize, "{what}");
                        assert!(connected(&layout.places, range_m), "{what}");
                        let mut places: Vec<_> = layout
                            .places
                            .iter()
                            .map(|place| (place.x.to_bits(), place.y.to_bits()))
                            .collect();
                        places.sort_unstable();
                        places.dedup();
                        assert_eq!(places.len(), nodes as usize, "{what}");
                        assert!(
                            layout.root < nodes && layout.sinks.iter().all(|&sink| sink < nodes),
                            "{what}"
                        );
                        match *layout.sinks {
                            [sink] => assert!(sink != layout.root || topology.name == "concentric", "{what}"),
                            [a, b] => assert!(a != b && a != layout.root && b != layout.root, "{what}"),
                            _ => panic!("{what}: {:?}", layout.sinks),
                        }
                        built += 1;
                    }
                }
            }
            assert!(built > 100, "{}: {built}", topology.name);
        }
    }

    #[test]
    fn names_of_topologies_are_distinct_and_found() {
        for topology in TOPOLOGIES {
            assert_eq!(named(topology.name).unwrap().summary, topology.summary);
            assert_eq!(TOPOLOGIES.iter().filter(|other| other.name == topology.name).count(), 1);
        }
        assert!(named("ring of roses").is_none());
    }

    #[test]
    fn contradictory_options_of_a_topology_are_refused_with_a_hint() {
        let refused = |name: &str, shape: Shape| named(name).unwrap().layout(&shape).unwrap_err().to_string();
        assert_eq!(refused("chain", shape(2)), "a topology needs from 3 to 100000 nodes, not 2");
        assert_eq!(refused("chain", shape(100_001)), "a topology needs from 3 to 100000 nodes, not 100001");
        assert_eq!(
            refused("grid", shape(37)),
            "a grid needs a number of columns, or a square number of nodes, not 37"
        );
        assert_eq!(
            refused("grid", Shape { columns: Some(5), ..shape(36) }),
            "a grid needs 2 rows or more in each of 2 columns or more, not 36 nodes in 5 columns"
        );
        assert_eq!(
            refused("chain", Shape { columns: Some(5), ..shape(36) }),
            "a topology of the kind chain has no columns"
        );
        assert_eq!(refused("flower", Shape { columns: Some(0), ..shape(36) }), "columns must be 1 or more");
        assert_eq!(
            refused("flower", shape(35)),
            "a flower needs one node in the centre and 2 petals or more, each of 3 nodes or more; not 35 nodes with 5 petals"
        );
        assert_eq!(refused("dumbbell", shape(4)), "a dumbbell needs 5 nodes or more, not 4");
        assert_eq!(
            refused("dumbbell", Shape { columns: Some(10), ..shape(21) }),
            "a dumbbell of 21 nodes has 9 nodes in each bell, too few for 10 columns"
        );
        assert_eq!(
            refused("random", shape(100)),
            "100 random nodes in a square of 100 m at a range of 10 m were not connected in any of 100 drawings; a \
             longer range or a smaller spacing helps"
        );
        for metres in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(
                refused("chain", Shape { spacing_m: metres, ..shape(5) }).starts_with("the spacing must be")
            );
            assert!(refused("chain", Shape { range_m: metres, ..shape(5) }).starts_with("the range must be"));
        }
    }

    #[test]
    fn a_node_within_a_grid_has_four_neighbours_a_corner_two_and_an_edge_three() {
        let grid = layout("grid", 49);
        for node in 0..49 {
            let edges = [node % 7, node / 7].into_iter().filter(|i| [0, 6].contains(i)).count();
            assert_eq!(degree(&grid, node), 4 - edges, "{node}");
        }
        assert_eq!((grid.root, grid.sinks), (24, vec![0, 48]));
    }

    #[test]
    fn a_grid_topology_of_nine_has_the_router_in_its_centre_and_one_server_in_a_corner() {
        let grid = layout("grid", 9);
        assert_eq!(grid.places[grid.root as usize], Position { x: 10.0, y: 10.0 });
        assert_eq!(grid.sinks, [0]);
    }

    #[test]
    fn a_chain_topology_has_one_hop_fewer_than_nodes() {
        let chain = layout("chain", 17);
        assert_eq!(hops(&chain, chain.sinks[0])[chain.sinks[1] as usize], 16);
        assert_eq!(hops(&chain, chain.sinks[0])[chain.root as usize], 8);
    }

    #[test]
    fn a_dumbbell_topology_of_21_is_two_squares_of_nine_and_a_bar_of_three() {
        let dumbbell = layout("dumbbell", 21);
        let (east, south) = dumbbell
            .places
            .iter()
            .fold((0.0_f64, 0.0_f64), |(east, south), place| (east.max(place.x), south.max(place.y)));
        assert_eq!((east, south), (50.0, 10.0));
        assert_eq!(degree(&dumbbell, dumbbell.root), 2);
        // The sinks are the middles of the outer columns: 8 hops apart, the router half-way.
        assert_eq!(hops(&dumbbell, dumbbell.sinks[0])[dumbbell.sinks[1] as usize], 8);
        assert_eq!(hops(&dumbbell, dumbbell.root)[dumbbell.sinks[1] as usize], 4);
        assert_eq!(degree(&dumbbell, dumbbell.sinks[0]), 3);
    }

    #[test]
    fn in_a_double_star_of_21_each_hub_has_ten_neighbours_and_only_the_router_joins_the_halves() {
        let star = layout("double-star", 21);
        assert_eq!((star.root, &star.sinks[..]), (0, &[1, 2][..]));
        assert_eq!([0, 1, 2].map(|node| degree(&star, node)), [2, 10, 10]);
        let hops = hops(&star, 1);
        assert_eq!([1, 2, 3].map(|n| hops.iter().filter(|&&hops| hops == n).count()), [10, 1, 9]);
    }

    #[test]
    fn in_a_half_dumbbell_the_router_is_in_range_of_all_and_no_client_of_the_server() {
        let half = layout("half-dumbbell", 5);
        assert_eq!(degree(&half, half.root), 4);
        assert_eq!(degree(&half, half.sinks[0]), 1);
    }

    #[test]
    fn a_flower_topology_of_36_has_five_loops_of_eight_hops_through_the_centre() {
        let flower = layout("flower", 36);
        // From the centre two sides of three go to each tip.
        let hops = hops(&flower, flower.root);
        for petal in 0..5 {
            let mut of_petal = hops[1 + 7 * petal..][..7].to_vec();
            of_petal.sort_unstable();
            assert_eq!(of_petal, [1, 1, 2, 2, 3, 3, 4]);
            assert_eq!(degree(&flower, 7 * (petal as u32 + 1)), 2, "a tip ties its sides together");
        }
        assert_eq!(flower.sinks.iter().map(|&sink| hops[sink as usize]).collect::<Vec<_>>(), [4, 4]);
    }

    #[test]
    fn in_concentric_topologies_of_57_and_112_nodes_every_node_has_a_path_inwards() {
        for (nodes, circles) in [(57, 4), (112, 8)] {
            let layout = layout("concentric", nodes);
            let hops = hops(&layout, layout.root);
            for (node, place) in layout.places.iter().enumerate() {
                let circle = place.distance(Position::default()) / 10.0;
                assert!(
                    (hops[node] as f64 - circle).abs() < 1e-6,
                    "{node} is as many hops out as its circle"
                );
            }
            assert_eq!(hops.iter().max(), Some(&circles));
            assert_eq!(layout.sinks, [layout.root]);
        }
    }

    #[test]
    fn random_topologies_depend_on_the_seed_only() {
        let random = named("random").unwrap();
        let seeded = |seed| {
            let stream = Luck::new(seed).stream("places");
            random.layout(&Shape { range_m: 20.0, stream, ..shape(50) }).unwrap()
        };
        assert_eq!(seeded(1), seeded(1));
        assert_ne!(seeded(1), seeded(2));
    }
}
