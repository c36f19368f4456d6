//! Models of mobility: the ways that nodes go. A new model is a file in `mobility/` and a line in the list below.
//!
//! The border router and the sinks stand still. All other nodes start from their places in the layout, and stay within the
//! rectangle around it, grown by a margin. Defaults are those of BonnMotion (sys-uos/BonnMotion at 80e85ec0,
//! `models/*.java`), the generator of Rathod 2022, where it has them. A value that was chosen here is marked "Chosen". The
//! models are those of the same names in BonnMotion, without its code: nodes start elsewhere, and there are fewer parameters.
//!
//! ```
//! use coapace_sim::mobility::{Movement, named};
//! use coapace_sim::{Layout, Luck, Position, Time};
//!
//! let places = (0..4).map(|i| Position { x: f64::from(i) * 10.0, y: 0.0 }).collect();
//! let layout = Layout { places, root: 1, sinks: vec![0] };
//! let stream = Luck::new(1).stream("mobility");
//! let model = named("random-waypoint").unwrap();
//! let waypoints = model.waypoints(&layout, &Movement::default(), Time::from_secs(60), stream)?;
//! assert!(waypoints.iter().all(|waypoint| [2, 3].contains(&waypoint.node)));
//! # Ok::<(), coapace_sim::mobility::MobilityError>(())
//! ```

mod area;
mod draws;
mod movement;

use std::fmt;

use crate::{Layout, Position, Stream, Time, Waypoint};

use area::Area;
use draws::Draws;
pub use movement::Movement;

/// Declares the files, and lists their models.
macro_rules! mobilities {
    ($($file:ident)+) => {
        $(mod $file;)+

        /// All models of mobility.
        pub const MOBILITIES: &[Mobility] = &[$($file::MOBILITY,)+];
    };
}

mobilities! {
    random_waypoint
    gauss_markov
    manhattan
    pursue
}

/// A named model of mobility.
#[derive(Clone, Copy, Debug)]
pub struct Mobility {
    /// The name in scenarios.
    pub name: &'static str,
    /// A description in one line.
    pub summary: &'static str,
    /// Returns the position of a node after each step.
    path: fn(&Walk, Position, Draws) -> Vec<Position>,
}

/// Returns the model of this name.
pub fn named(name: &str) -> Option<&'static Mobility> {
    MOBILITIES.iter().find(|mobility| mobility.name == name)
}

/// The largest number of waypoints of a run.
pub const MAX_WAYPOINTS: u64 = 10_000_000;

/// The parameters of a movement that are common to all nodes.
struct Walk<'a> {
    movement: &'a Movement,
    area: Area,
    /// The number of steps.
    steps: usize,
    /// The length of a step, in seconds.
    step_s: f64,
    stream: Stream,
}

impl Mobility {
    /// Returns the positions of the nodes after each step of [`Movement::step`] up to `end`, in the order of time and then
    /// of nodes. A node that has not moved since its last waypoint has none.
    ///
    /// # Errors
    /// [`MobilityError`] names the parameter that is out of range.
    pub fn waypoints(
        &self,
        layout: &Layout,
        movement: &Movement,
        end: Time,
        stream: Stream,
    ) -> Result<Vec<Waypoint>, MobilityError> {
        movement.check()?;
        let area = Area::around(&layout.places, movement.margin_m)?;
        let steps = end.as_nanos() / movement.step.as_nanos();
        let waypoints = steps.saturating_mul(layout.places.len() as u64);
        if waypoints > MAX_WAYPOINTS {
            return Err(MobilityError(format!(
                "{} nodes that move {steps} times would make {waypoints} waypoints; there may be {MAX_WAYPOINTS}",
                layout.places.len()
            )));
        }
        let steps = usize::try_from(steps).unwrap_or(usize::MAX);
        let walk = Walk { movement, area, steps, step_s: movement.step.as_secs_f64(), stream };
        let mut waypoints = Vec::new();
        for (node, &place) in (0..).zip(&layout.places) {
            if node == layout.root || layout.sinks.contains(&node) {
                continue;
            }
            let mut last = place;
            let path = (self.path)(&walk, place, Draws::new(stream, u64::from(node)));
            for (time, position) in path.into_iter().enumerate() {
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

    fn stream(seed: u64) -> Stream {
        Luck::new(seed).stream("mobility")
    }

    /// Returns the position of each node after each second of 18 minutes.
    fn paths(mobility: &Mobility, movement: &Movement, seed: u64) -> Vec<Vec<Position>> {
        let layout = layout();
        let waypoints = mobility.waypoints(&layout, movement, Time::from_secs(1_080), stream(seed)).unwrap();
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
    fn nodes_keep_to_their_speed_and_their_area_and_move() {
        for mobility in MOBILITIES {
            for margin_m in [0.0, 15.0] {
                let movement = Movement { margin_m, ..Movement::default() };
                let paths = paths(mobility, &movement, 1);
                let area = -margin_m..=50.0 + margin_m;
                for path in &paths {
                    assert!(path.iter().all(|place| area.contains(&place.x) && area.contains(&place.y)));
                    for pair in path.windows(2) {
                        let speed = pair[0].distance(pair[1]);
                        assert!(speed <= movement.speed_m_s.1 + 1e-9, "{}: {speed} m/s", mobility.name);
                    }
                }
                let moved = paths.iter().filter(|path| path.iter().any(|place| *place != path[0])).count();
                assert_eq!(moved, 33, "{}: all but the router and two sinks", mobility.name);
            }
        }
    }

    #[test]
    fn router_and_sinks_never_move_and_all_start_from_their_places() {
        for mobility in MOBILITIES {
            let layout = layout();
            let movement = Movement::default();
            let waypoints = mobility.waypoints(&layout, &movement, Time::from_secs(600), stream(3)).unwrap();
            assert!(waypoints.iter().all(|waypoint| ![0, 21, 35].contains(&waypoint.node)));
            let first_second = waypoints.iter().take_while(|waypoint| waypoint.time == Time::from_secs(1));
            for waypoint in first_second {
                let start = layout.places[waypoint.node as usize];
                assert!(
                    start.distance(waypoint.position) <= movement.speed_m_s.1 + 1e-9,
                    "{}",
                    mobility.name
                );
            }
        }
    }

    #[test]
    fn a_seed_is_a_path_and_another_seed_another() {
        for mobility in MOBILITIES {
            let movement = Movement::default();
            assert_eq!(paths(mobility, &movement, 1), paths(mobility, &movement, 1));
            assert_ne!(paths(mobility, &movement, 1), paths(mobility, &movement, 2), "{}", mobility.name);
        }
    }

    #[test]
    fn a_node_more_does_not_change_where_the_others_go() {
        for mobility in MOBILITIES {
            let (layout, movement) = (layout(), Movement::default());
            let mut fewer = layout.clone();
            fewer.places.remove(34);
            fewer.sinks = vec![0];
            let of_five = |layout: &Layout| -> Vec<_> {
                let waypoints =
                    mobility.waypoints(layout, &movement, Time::from_secs(300), stream(1)).unwrap();
                waypoints.into_iter().filter(|waypoint| waypoint.node == 5).collect()
            };
            assert_eq!(of_five(&layout), of_five(&fewer), "{}", mobility.name);
        }
    }

    #[test]
    fn nodes_of_a_row_move_along_it_and_off_it_within_the_margin() {
        let places = (0..20).map(|i| Position { x: f64::from(i) * 10.0, y: 0.0 }).collect();
        let row = Layout { places, root: 10, sinks: vec![0] };
        for mobility in MOBILITIES {
            let farthest = |margin_m| {
                let movement = Movement { margin_m, ..Movement::default() };
                let waypoints = mobility.waypoints(&row, &movement, Time::from_secs(600), stream(1)).unwrap();
                assert!(!waypoints.is_empty(), "{}", mobility.name);
                waypoints.iter().map(|waypoint| waypoint.position.y.abs()).fold(0.0, f64::max)
            };
            assert!(farthest(0.0) < 1e-9, "{}", mobility.name);
            assert!((5.0..=10.0).contains(&farthest(10.0)), "{}", mobility.name);
        }
    }

    #[test]
    fn what_is_out_of_range_is_refused_by_its_name() {
        let refused = |movement: &Movement, end| {
            MOBILITIES[0].waypoints(&layout(), movement, end, stream(1)).unwrap_err().to_string()
        };
        let end = Time::from_secs(1);
        let movement = Movement::default();
        let wrong = [
            ("speeds", Movement { speed_m_s: (0.0, 1.0), ..movement }),
            ("speeds", Movement { speed_m_s: (2.0, 1.0), ..movement }),
            ("speeds", Movement { speed_m_s: (0.5, f64::NAN), ..movement }),
            ("pause", Movement { pause_s: -1.0, ..movement }),
            ("step", Movement { step: Span::ZERO, ..movement }),
            ("margin", Movement { margin_m: f64::INFINITY, ..movement }),
            ("alpha", Movement { alpha: 1.5, ..movement }),
            ("deviation of speed", Movement { speed_deviation_m_s: -1.0, ..movement }),
            ("deviation of direction", Movement { turn_deviation_rad: 100.0, ..movement }),
            ("block", Movement { block_m: 0.0, ..movement }),
            ("probability", Movement { turn_probability: 2.0, ..movement }),
            ("aggressiveness", Movement { aggressiveness: -0.5, ..movement }),
            ("swerve", Movement { swerve_m: f64::NAN, ..movement }),
        ];
        for (name, movement) in wrong {
            let error = refused(&movement, end);
            assert!(error.contains(name), "{name}: {error}");
        }
        assert_eq!(
            refused(&movement, Time::MAX),
            "36 nodes that move 18446744073 times would make 664082786628 waypoints; there may be 10000000"
        );
        let alone = Layout { places: vec![Position::default()], root: 0, sinks: vec![] };
        let error = MOBILITIES[0].waypoints(&alone, &movement, end, stream(1)).unwrap_err().to_string();
        assert_eq!(error, "nodes need an area to move in: two places, or a margin");
    }

    #[test]
    fn names_are_distinct_and_find_their_model() {
        for mobility in MOBILITIES {
            assert_eq!(named(mobility.name).unwrap().summary, mobility.summary);
            assert_eq!(MOBILITIES.iter().filter(|other| other.name == mobility.name).count(), 1);
        }
        assert!(named("teleport").is_none());
    }
}
