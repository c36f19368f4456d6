//! Gauss–Markov (B. Liang and Z. J. Haas 1999; in the form of T. Camp, J. Boleng and V. Davies 2002, §2.6): speed and
//! direction change a little from step to step and come back to their means.
//!
//! The mean speed is the middle of the range, and the mean direction is drawn for each node. At the edge of the area a node
//! is reflected with its mean direction, like in BonnMotion's OriginalGaussMarkov. Speeds are cut to their range.

use std::f64::consts::{PI, TAU};

use super::{Movement, MovementDraws, ParameterBound, Trajectory, Walk};
use crate::Position;

/// The parameters of Gauss–Markov.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GaussMarkov {
    /// Speed, steps and area.
    pub movement: Movement,
    /// The share of speed and direction that carries over from one step to the next, from 0 to 1.
    pub alpha: f64,
    /// The standard deviation of speed in m/s, up to 1,000.
    pub speed_deviation_m_s: f64,
    /// The standard deviation of the direction in degrees, up to 360.
    pub turn_deviation_deg: f64,
}

impl GaussMarkov {
    /// The deviations of BonnMotion's GaussMarkov. Chosen: `alpha`, because with BonnMotion's 1 (OriginalGaussMarkov) nothing
    /// ever changes.
    pub const DEFAULT: Self =
        Self { movement: Movement::DEFAULT, alpha: 0.75, speed_deviation_m_s: 0.5, turn_deviation_deg: 22.5 };
}

impl Trajectory for GaussMarkov {
    fn bounds(&self) -> Vec<ParameterBound> {
        vec![
            ("alpha", self.alpha, 0.0, 1.0),
            ("deviation of speed", self.speed_deviation_m_s, 0.0, 1_000.0),
            ("deviation of direction", self.turn_deviation_deg, 0.0, 360.0),
        ]
    }

    fn path(&self, walk: &Walk, start: Position, mut draws: MovementDraws) -> Vec<Position> {
        let (slowest, fastest) = self.movement.speed_m_s;
        let (alpha, area) = (self.alpha, &walk.area);
        // With this factor the variance stays the same from step to step.
        let noise = (1.0 - alpha * alpha).sqrt();
        let turn_deviation = self.turn_deviation_deg.to_radians();
        let mean_speed = f64::midpoint(slowest, fastest);
        let mut mean_direction = TAU * draws.unit();
        let (mut here, mut speed, mut direction) = (start, mean_speed, mean_direction);
        let mut step = || {
            let next = |value: f64, mean: f64, deviation: f64, normal: f64| {
                alpha * value + (1.0 - alpha) * mean + noise * deviation * normal
            };
            speed = next(speed, mean_speed, self.speed_deviation_m_s, draws.normal()).clamp(slowest, fastest);
            direction = next(direction, mean_direction, turn_deviation, draws.normal());
            let way = speed * walk.step_s;
            let (x, turned_x) = reflected(here.x + way * libm::cos(direction), area.low.x, area.high.x);
            let (y, turned_y) = reflected(here.y + way * libm::sin(direction), area.low.y, area.high.y);
            // The mean turns as well. Otherwise the node would be drawn back to the wall.
            for angle in [&mut direction, &mut mean_direction] {
                if turned_x {
                    *angle = PI - *angle;
                }
                if turned_y {
                    *angle = -*angle;
                }
            }
            // Rounding may have put the node a little outside.
            here = area.clamp(Position { x, y });
            here
        };
        (0..walk.steps).map(|_| step()).collect()
    }
}

/// Reflects the coordinate `to` at walls at `low` and `high`. Returns the coordinate between the walls, and whether the
/// direction of movement is reversed.
fn reflected(to: f64, low: f64, high: f64) -> (f64, bool) {
    let width = high - low;
    if width <= 0.0 {
        return (low, false);
    }
    // The way is folded: there and back again are two widths.
    let along = (to - low).rem_euclid(2.0 * width);
    if along <= width { (low + along, false) } else { (low + 2.0 * width - along, true) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gauss_markov_mobility_reflects_nodes_at_the_edge_of_the_area() {
        assert_eq!(reflected(4.0, 0.0, 10.0), (4.0, false));
        assert_eq!(reflected(12.0, 0.0, 10.0), (8.0, true));
        assert_eq!(reflected(-3.0, 0.0, 10.0), (3.0, true));
        assert_eq!(reflected(23.0, 0.0, 10.0), (3.0, false));
        assert_eq!(reflected(5.0, 2.0, 2.0), (2.0, false));
    }
}
