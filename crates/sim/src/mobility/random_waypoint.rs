//! Random waypoint (D. B. Johnson and D. A. Maltz 1996): a node goes straight to a destination drawn anywhere in the area,
//! at a speed drawn for the way, pauses there, and goes on to the next.
//!
//! Speed and pause are drawn uniformly, and the shortest pause is 0, like in BonnMotion's RandomWaypoint.

use super::area::towards;
use super::{Movement, MovementDraws, ParameterBound, Trajectory, Walk};
use crate::{Position, Span};

/// The parameters of random waypoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomWaypoint {
    /// Speed, steps and area.
    pub movement: Movement,
    /// The longest pause at a destination, up to 10⁶ s.
    pub pause: Span,
}

impl RandomWaypoint {
    /// The pause of BonnMotion.
    pub const DEFAULT: Self = Self { movement: Movement::DEFAULT, pause: Span::from_secs(60) };
}

/// The largest number of destinations that a node reaches within a step, however small the area.
const DESTINATIONS: u32 = 1_000;

impl Trajectory for RandomWaypoint {
    fn bounds(&self) -> Vec<ParameterBound> {
        vec![("pause", self.pause.as_secs_f64(), 0.0, 1e6)]
    }

    fn path(&self, walk: &Walk, start: Position, mut draws: MovementDraws) -> Vec<Position> {
        let (slowest, fastest) = self.movement.speed_m_s;
        let longest_pause = self.pause.as_secs_f64();
        let mut here = start;
        let mut destination = walk.area.anywhere(&mut draws);
        let mut speed = draws.between(slowest, fastest);
        let mut pause = 0.0_f64;
        let mut step = || {
            let mut left = walk.step_s;
            for _ in 0..DESTINATIONS {
                // The pause at the last destination comes first. It may take the whole step.
                let rest = pause.min(left);
                pause -= rest;
                left -= rest;
                let way = here.distance(destination);
                // The step ends on the way.
                if speed * left < way {
                    here = walk.area.clamp(towards(here, destination, speed * left / way));
                    break;
                }
                // The node rests beyond the end of the step. It has not reached the destination, so nothing new is drawn.
                if pause > 0.0 {
                    break;
                }
                left -= way / speed;
                here = destination;
                pause = draws.between(0.0, longest_pause);
                destination = walk.area.anywhere(&mut draws);
                speed = draws.between(slowest, fastest);
            }
            here
        };
        (0..walk.steps).map(|_| step()).collect()
    }
}
