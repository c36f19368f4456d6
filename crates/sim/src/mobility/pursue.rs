//! Pursue (M. Sánchez and P. Manzoni 2001; T. Camp, J. Boleng and V. Davies 2002, §3.5): all nodes follow one leader.
//!
//! The leader is a point, not a node. It moves by the random waypoint model from the centre of the area, without
//! pauses, like in BonnMotion's Pursue. At every step a node aims at a point between itself and the leader, with a
//! random deviation. (Chosen: BonnMotion's steps have random lengths.) If the point is too far for the fastest speed,
//! the node draws a speed.

use super::area::towards;
use super::{Movement, MovementDraws, ParameterBound, RandomWaypoint, Trajectory, Walk};
use crate::{Position, Span};

/// The parameters of pursue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pursue {
    /// Speed, steps and area.
    pub movement: Movement,
    /// How far along its way to the leader a node aims in one step, as a share from 0 to 1.
    pub aggressiveness: f64,
    /// The largest deviation from the point aimed at, along each axis, in metres, up to 10⁶.
    pub swerve_m: f64,
}

impl Pursue {
    /// The parameters of BonnMotion.
    pub const DEFAULT: Self = Self { movement: Movement::DEFAULT, aggressiveness: 0.5, swerve_m: 0.5 };

    /// Returns the position of the leader after each step.
    fn leader(&self, walk: &Walk) -> Vec<Position> {
        let start = towards(walk.area.low, walk.area.high, 0.5);
        let model = RandomWaypoint { movement: self.movement, pause: Span::ZERO };
        // The draws are the same for every node that calls this, so all of them follow one leader.
        model.path(walk, start, MovementDraws::new(walk.stream, LEADER))
    }
}

/// The number of the leader in the key of random numbers. No node has this number.
const LEADER: u64 = u64::MAX;

impl Trajectory for Pursue {
    fn bounds(&self) -> Vec<ParameterBound> {
        vec![("aggressiveness", self.aggressiveness, 0.0, 1.0), ("swerve", self.swerve_m, 0.0, 1e6)]
    }

    fn path(&self, walk: &Walk, start: Position, mut draws: MovementDraws) -> Vec<Position> {
        let (slowest, fastest) = self.movement.speed_m_s;
        let mut here = start;
        let mut step = |leader: Position| {
            let swerve = self.swerve_m;
            let aim = towards(here, leader, self.aggressiveness);
            let x = aim.x + draws.between(-swerve, swerve);
            let y = aim.y + draws.between(-swerve, swerve);
            let there = walk.area.clamp(Position { x, y });
            let way = here.distance(there);
            // The point is out of reach for this step.
            if way > fastest * walk.step_s {
                let reach = draws.between(slowest, fastest) * walk.step_s;
                here = walk.area.clamp(towards(here, there, reach / way));
            } else {
                here = there;
            }
            here
        };
        self.leader(walk).into_iter().map(&mut step).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mobility::Model;
    use crate::{Layout, Luck, Time};

    #[test]
    fn pursuing_nodes_come_together_and_others_stay_apart() {
        let places = (0..36).map(|i| Position { x: f64::from(i % 6) * 10.0, y: f64::from(i / 6) * 10.0 });
        let layout = Layout { places: places.collect(), root: 21, sinks: vec![] };
        let spread = |aggressiveness| {
            let model = Model::Pursue(Pursue { aggressiveness, ..Pursue::DEFAULT });
            let stream = Luck::new(1).stream("mobility");
            let waypoints = model.waypoints(&layout, Time::from_secs(300), stream).unwrap();
            let last: Vec<_> =
                waypoints.iter().filter(|waypoint| waypoint.time == Time::from_secs(300)).collect();
            assert_eq!(last.len(), 35);
            let pairs = last.iter().flat_map(|a| last.iter().map(|b| a.position.distance(b.position)));
            pairs.fold(0.0, f64::max)
        };
        assert!(spread(0.5) < 15.0, "{}", spread(0.5));
        assert!(spread(0.0) > 40.0, "{}", spread(0.0));
    }
}
