//! Models of mobility: how nodes move. A new model is a file in `mobility/` and a variant of [`Model`].
//!
//! The border router and the sinks stand still. All other nodes start from their places in the layout, and stay within
//! the rectangle around it, grown by a margin. Defaults come from BonnMotion (sys-uos/BonnMotion at 80e85ec0,
//! `models/*.java`), the generator of Rathod 2022, if BonnMotion has a default. A value that was chosen here is marked
//! "Chosen". The models follow the models of the same names in BonnMotion, without its code: nodes start elsewhere, and
//! there are fewer parameters.
//!
//! ```
//! use coapace_sim::mobility::{Model, RandomWaypoint};
//! use coapace_sim::{Layout, Luck, Position, Time};
//!
//! let places = (0..4).map(|i| Position { x: f64::from(i) * 10.0, y: 0.0 }).collect();
//! let layout = Layout { places, root: 1, sinks: vec![0] };
//! let stream = Luck::new(1).stream("mobility");
//! let model = Model::RandomWaypoint(RandomWaypoint::DEFAULT);
//! let waypoints = model.waypoints(&layout, Time::from_secs(60), stream)?;
//! assert!(waypoints.iter().all(|waypoint| [2, 3].contains(&waypoint.node)));
//! # Ok::<(), coapace_sim::mobility::MobilityError>(())
//! ```

mod area;
mod draws;
mod gauss_markov;
mod manhattan;
mod movement;
mod pursue;
mod random_waypoint;

use std::fmt;

use crate::{Layout, Position, Stream, Time, Waypoint};

use area::Area;
use draws::MovementDraws;
pub use gauss_markov::GaussMarkov;
pub use manhattan::Manhattan;
pub use movement::Movement;
pub use pursue::Pursue;
pub use random_waypoint::RandomWaypoint;

/// A model of mobility with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Model {
    /// Nodes go straight to a destination drawn at random, pause, and go on to the next.
    RandomWaypoint(RandomWaypoint),
    /// Speed and direction change a little at every step around their means.
    GaussMarkov(GaussMarkov),
    /// Nodes go along the streets of a grid, and turn at crossings.
    Manhattan(Manhattan),
    /// All nodes follow a leader, which goes to one random destination after the other.
    Pursue(Pursue),
}

/// The name of a parameter, its value, and the least and the largest value that it may have.
type ParameterBound = (&'static str, f64, f64, f64);

/// A model of mobility, as a generator of each node's positions.
trait Trajectory {
    /// Returns the name, value and limits of each parameter that only this model has.
    fn bounds(&self) -> Vec<ParameterBound>;
    /// Returns the position of a node after each step.
    fn path(&self, walk: &Walk, start: Position, draws: MovementDraws) -> Vec<Position>;
}

/// The largest number of waypoints of a run.
pub const MAX_WAYPOINTS: u64 = 10_000_000;

/// The area and the time steps that all nodes of a run have in common.
struct Walk {
    area: Area,
    /// The number of steps.
    steps: usize,
    /// The length of a step, in seconds.
    step_s: f64,
    stream: Stream,
}

impl Model {
    /// Returns the parameters that all models share, and the model's own trajectory.
    fn parts(&self) -> (&Movement, &dyn Trajectory) {
        match self {
            Self::RandomWaypoint(way) => (&way.movement, way),
            Self::GaussMarkov(way) => (&way.movement, way),
            Self::Manhattan(way) => (&way.movement, way),
            Self::Pursue(way) => (&way.movement, way),
        }
    }

    /// Returns the positions of the nodes after each step of [`Movement::step`] up to `end`, in the order of time and
    /// then of nodes. A node that has not moved since its last waypoint gets no new one.
    ///
    /// # Errors
    /// [`MobilityError`] names the parameter that is out of range.
    pub fn waypoints(
        &self,
        layout: &Layout,
        end: Time,
        stream: Stream,
    ) -> Result<Vec<Waypoint>, MobilityError> {
        let (movement, way) = self.parts();
        movement.check(&way.bounds())?;
        let area = Area::around(&layout.places, movement.margin_m)?;
        let steps = end.as_nanos() / movement.step.as_nanos();
        let waypoints = steps.saturating_mul(layout.places.len() as u64);
        // The number is known before any path is made, so a large one costs no memory.
        if waypoints > MAX_WAYPOINTS {
            return Err(MobilityError(format!(
                "{} nodes that move {steps} times would make {waypoints} waypoints; at most {MAX_WAYPOINTS} are possible",
                layout.places.len()
            )));
        }
        let steps = usize::try_from(steps).unwrap_or(usize::MAX);
        let walk = Walk { area, steps, step_s: movement.step.as_secs_f64(), stream };
        let mut waypoints = Vec::new();
        for (node, &place) in (0..).zip(&layout.places) {
            // The border router and the sinks do not move.
            if node == layout.root || layout.sinks.contains(&node) {
                continue;
            }
            let mut last = place;
            let path = way.path(&walk, place, MovementDraws::new(stream, u64::from(node)));
            for (time, position) in path.into_iter().enumerate() {
                // A node that rests needs no waypoint, and no survey of all links.
                if position != last {
                    let time = Time::ZERO + movement.step * (time as u64 + 1);
                    waypoints.push(Waypoint { time, node, position });
                    last = position;
                }
            }
        }
        waypoints.sort_by_key(|waypoint| (waypoint.time, waypoint.node));
        Ok(waypoints)
    }
}

/// The reason why a movement is refused, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MobilityError(String);

impl fmt::Display for MobilityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MobilityError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Luck, Span};

    fn layout() -> Layout {
        let places = (0..36).map(|i| Position { x: f64::from(i % 6) * 10.0, y: f64::from(i / 6) * 10.0 });
        Layout { places: places.collect(), root: 21, sinks: vec![0, 35] }
    }

    /// Returns every model with these common parameters.
    fn models(movement: Movement) -> [Model; 4] {
        [
            Model::RandomWaypoint(RandomWaypoint { movement, ..RandomWaypoint::DEFAULT }),
            Model::GaussMarkov(GaussMarkov { movement, ..GaussMarkov::DEFAULT }),
            Model::Manhattan(Manhattan { movement, ..Manhattan::DEFAULT }),
            Model::Pursue(Pursue { movement, ..Pursue::DEFAULT }),
        ]
    }

    fn stream(seed: u64) -> Stream {
        Luck::new(seed).stream("mobility")
    }

    /// Returns the position of each node after each second of 18 minutes.
    fn paths(model: &Model, seed: u64) -> Vec<Vec<Position>> {
        let layout = layout();
        let waypoints = model.waypoints(&layout, Time::from_secs(1_080), stream(seed)).unwrap();
        assert!(waypoints.is_sorted_by(|a, b| (a.time, a.node) < (b.time, b.node)));
        let mut paths: Vec<_> = layout.places.iter().map(|&place| vec![place]).collect();
        let mut waypoints = waypoints.into_iter().peekable();
        for second in 1..=1_080 {
            for path in &mut paths {
                path.push(path[second - 1]);
            }
            while let Some(waypoint) = waypoints.next_if(|next| next.time <= Time::from_secs(second as u64)) {
                paths[waypoint.node as usize][second] = waypoint.position;
            }
        }
        assert!(waypoints.next().is_none(), "nothing happens after the end");
        paths
    }

    #[test]
    fn moving_nodes_keep_their_speed_and_stay_in_their_area() {
        for margin_m in [0.0, 15.0] {
            let movement = Movement { margin_m, ..Movement::DEFAULT };
            for model in models(movement) {
                let paths = paths(&model, 1);
                let area = -margin_m..=50.0 + margin_m;
                for path in &paths {
                    assert!(path.iter().all(|place| area.contains(&place.x) && area.contains(&place.y)));
                    for pair in path.windows(2) {
                        let speed = pair[0].distance(pair[1]);
                        assert!(speed <= movement.speed_m_s.1 + 1e-9, "{model:?}: {speed} m/s");
                    }
                }
                let moved = paths.iter().filter(|path| path.iter().any(|place| *place != path[0])).count();
                assert_eq!(moved, 33, "{model:?}: all but the router and two sinks");
            }
        }
    }

    #[test]
    fn router_and_sinks_never_move_and_all_nodes_start_at_their_positions() {
        for model in models(Movement::DEFAULT) {
            let layout = layout();
            let waypoints = model.waypoints(&layout, Time::from_secs(600), stream(3)).unwrap();
            assert!(waypoints.iter().all(|waypoint| ![0, 21, 35].contains(&waypoint.node)));
            let first_second = waypoints.iter().take_while(|waypoint| waypoint.time == Time::from_secs(1));
            for waypoint in first_second {
                let start = layout.places[waypoint.node as usize];
                assert!(
                    start.distance(waypoint.position) <= Movement::DEFAULT.speed_m_s.1 + 1e-9,
                    "{model:?}"
                );
            }
        }
    }

    #[test]
    fn equal_seeds_give_equal_movements_and_different_seeds_different_ones() {
        for model in models(Movement::DEFAULT) {
            assert_eq!(paths(&model, 1), paths(&model, 1));
            assert_ne!(paths(&model, 1), paths(&model, 2), "{model:?}");
        }
    }

    #[test]
    fn adding_a_node_does_not_change_the_movements_of_others() {
        for model in models(Movement::DEFAULT) {
            let layout = layout();
            let mut fewer = layout.clone();
            fewer.places.remove(34);
            fewer.sinks = vec![0];
            let of_five = |layout: &Layout| -> Vec<_> {
                let waypoints = model.waypoints(layout, Time::from_secs(300), stream(1)).unwrap();
                waypoints.into_iter().filter(|waypoint| waypoint.node == 5).collect()
            };
            assert_eq!(of_five(&layout), of_five(&fewer), "{model:?}");
        }
    }

    #[test]
    fn nodes_in_a_row_move_along_it_and_aside_by_at_most_the_margin() {
        let places = (0..20).map(|i| Position { x: f64::from(i) * 10.0, y: 0.0 }).collect();
        let row = Layout { places, root: 10, sinks: vec![0] };
        for (margin_m, expected) in [(0.0, 0.0..=1e-9), (10.0, 5.0..=10.0)] {
            for model in models(Movement { margin_m, ..Movement::DEFAULT }) {
                let waypoints = model.waypoints(&row, Time::from_secs(600), stream(1)).unwrap();
                assert!(!waypoints.is_empty(), "{model:?}");
                let farthest = waypoints.iter().map(|waypoint| waypoint.position.y.abs()).fold(0.0, f64::max);
                assert!(expected.contains(&farthest), "{model:?}");
            }
        }
    }

    #[test]
    fn a_mobility_parameter_out_of_range_is_refused_by_name() {
        let refused = |model: Model, end| model.waypoints(&layout(), end, stream(1)).unwrap_err().to_string();
        let end = Time::from_secs(1);
        let common = |movement| models(movement)[0];
        let (waypoint, gauss) = (RandomWaypoint::DEFAULT, GaussMarkov::DEFAULT);
        let (manhattan, pursue) = (Manhattan::DEFAULT, Pursue::DEFAULT);
        let wrong = [
            ("speeds", common(Movement { speed_m_s: (0.0, 1.0), ..Movement::DEFAULT })),
            ("speeds", common(Movement { speed_m_s: (2.0, 1.0), ..Movement::DEFAULT })),
            ("speeds", common(Movement { speed_m_s: (0.5, f64::NAN), ..Movement::DEFAULT })),
            ("step", common(Movement { step: Span::ZERO, ..Movement::DEFAULT })),
            ("margin", common(Movement { margin_m: f64::INFINITY, ..Movement::DEFAULT })),
            ("pause", Model::RandomWaypoint(RandomWaypoint { pause: Span::MAX, ..waypoint })),
            ("alpha", Model::GaussMarkov(GaussMarkov { alpha: 1.5, ..gauss })),
            ("deviation of speed", Model::GaussMarkov(GaussMarkov { speed_deviation_m_s: -1.0, ..gauss })),
            ("deviation of direction", Model::GaussMarkov(GaussMarkov { turn_deviation_deg: 1e4, ..gauss })),
            ("block", Model::Manhattan(Manhattan { block_m: 0.0, ..manhattan })),
            ("probability", Model::Manhattan(Manhattan { turn_probability: 2.0, ..manhattan })),
            ("aggressiveness", Model::Pursue(Pursue { aggressiveness: -0.5, ..pursue })),
            ("swerve", Model::Pursue(Pursue { swerve_m: f64::NAN, ..pursue })),
        ];
        for (name, model) in wrong {
            let error = refused(model, end);
            assert!(error.contains(name), "{name}: {error}");
        }
        let model = common(Movement::DEFAULT);
        assert_eq!(
            refused(model, Time::MAX),
            "36 nodes that move 18446744073 times would make 664082786628 waypoints; at most 10000000 are possible"
        );
        let alone = Layout { places: vec![Position::default()], root: 0, sinks: vec![] };
        let error = model.waypoints(&alone, end, stream(1)).unwrap_err().to_string();
        assert_eq!(error, "nodes need an area to move in: give two positions, or a margin");
    }
}
