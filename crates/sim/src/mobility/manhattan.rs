//! Manhattan grid (ETSI TR 101 112 §B.1.4.1.2, in the form of BonnMotion's ManhattanGrid): nodes keep to streets and turn at
//! crossings.
//!
//! At a crossing a node turns with a fixed probability, left as often as right, and goes back only if no other way is
//! open. It then draws a new speed, uniformly. (Chosen: BonnMotion draws the speed from a normal distribution, with
//! some probability every 5 m.) A node whose place is not a crossing goes to the nearest one first. A row of nodes has
//! a single street.

use super::area::towards;
use super::{Movement, MovementDraws, ParameterBound, Trajectory, Walk};
use crate::Position;

/// The parameters of the Manhattan grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Manhattan {
    /// Speed, steps and area.
    pub movement: Movement,
    /// The distance from a crossing to the next in metres, from 0.01 to 10⁶. It is adjusted so that a whole number of blocks fills
    /// the area.
    pub block_m: f64,
    /// The probability that a node turns at a crossing, left as often as right, from 0 to 1.
    pub turn_probability: f64,
}

impl Manhattan {
    /// The probability of BonnMotion. Chosen: blocks of 10 m, the spacing of the networks; BonnMotion divides the area by 10.
    pub const DEFAULT: Self = Self { movement: Movement::DEFAULT, block_m: 10.0, turn_probability: 0.5 };
}

/// The largest number of crossings that a node passes within a step.
const CROSSINGS: u32 = 1_000;

/// The directions east, south, west and north. Each is a right turn from the one before it.
const WAYS: [(i64, i64); 4] = [(1, 0), (0, 1), (-1, 0), (0, -1)];

impl Trajectory for Manhattan {
    fn bounds(&self) -> Vec<ParameterBound> {
        vec![("block", self.block_m, 0.01, 1e6), ("probability of a turn", self.turn_probability, 0.0, 1.0)]
    }

    fn path(&self, walk: &Walk, start: Position, mut draws: MovementDraws) -> Vec<Position> {
        let (slowest, fastest) = self.movement.speed_m_s;
        let (low, high) = (walk.area.low, walk.area.high);
        let streets_x = Streets::new(low.x, high.x, self.block_m);
        let streets_y = Streets::new(low.y, high.y, self.block_m);
        let mut here = start;
        let mut crossing = (streets_x.nearest(start.x), streets_y.nearest(start.y));
        let mut heading = draws.below(4);
        let mut speed = draws.between(slowest, fastest);
        let mut step = || {
            let mut left = walk.step_s;
            // A bound, because blocks may be so small that a step crosses very many.
            for _ in 0..CROSSINGS {
                let there =
                    walk.area.clamp(Position { x: streets_x.at(crossing.0), y: streets_y.at(crossing.1) });
                let way = here.distance(there);
                // The step ends on the street before the next crossing.
                if speed * left < way {
                    here = walk.area.clamp(towards(here, there, speed * left / way));
                    break;
                }
                // The node is at the crossing, with the rest of the step left.
                left -= way / speed;
                here = there;
                let open = |way: usize| {
                    let (x, y) = WAYS[way % 4];
                    streets_x.has(crossing.0 + x) && streets_y.has(crossing.1 + y)
                };
                heading = turned(heading, open, self.turn_probability, &mut draws);
                crossing = (crossing.0 + WAYS[heading].0, crossing.1 + WAYS[heading].1);
                speed = draws.between(slowest, fastest);
            }
            here
        };
        (0..walk.steps).map(|_| step()).collect()
    }
}

/// Draws the direction in which a node leaves a crossing, among the directions that `open` accepts: at least one.
fn turned(
    heading: usize,
    open: impl Fn(usize) -> bool,
    probability: f64,
    draws: &mut MovementDraws,
) -> usize {
    // Both are drawn at every crossing, so that the draws after it do not depend on the turn.
    let (turn, to_the_right) = (draws.unit() < probability, draws.unit() < 0.5);
    let (ahead, back) = (heading, heading + 2);
    let (one, other) = if to_the_right { (heading + 1, heading + 3) } else { (heading + 3, heading + 1) };
    let wishes = if turn { [one, other, ahead, back] } else { [ahead, one, other, back] };
    // An area is never a single point, so one way is always open. `back` only satisfies the compiler.
    wishes.into_iter().find(|&way| open(way)).unwrap_or(back) % 4
}

/// Parallel streets at equal distances: the streets of a grid in one of its two directions.
struct Streets {
    low: f64,
    block: f64,
    blocks: i64,
}

impl Streets {
    fn new(low: f64, high: f64, block_m: f64) -> Self {
        // There is one block at least, unless the area has no width.
        let blocks = if high > low { ((high - low) / block_m).round().max(1.0) } else { 0.0 };
        Self { low, block: if blocks > 0.0 { (high - low) / blocks } else { 0.0 }, blocks: blocks as i64 }
    }

    fn has(&self, street: i64) -> bool {
        (0..=self.blocks).contains(&street)
    }

    fn at(&self, street: i64) -> f64 {
        self.low + street as f64 * self.block
    }

    fn nearest(&self, to: f64) -> i64 {
        if self.blocks == 0 {
            0
        } else {
            (((to - self.low) / self.block).round() as i64).clamp(0, self.blocks)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mobility::Model;
    use crate::{Layout, Luck, Time};

    #[test]
    fn manhattan_nodes_never_leave_the_streets() {
        let places = (0..9).map(|i| Position { x: f64::from(i % 3) * 20.0, y: f64::from(i / 3) * 20.0 });
        let layout = Layout { places: places.collect(), root: 4, sinks: vec![0] };
        let stream = Luck::new(1).stream("mobility");
        let model = Model::Manhattan(Manhattan::DEFAULT);
        let waypoints = model.waypoints(&layout, Time::from_secs(2_000), stream).unwrap();
        let on_a_street = |along: f64| (along / 10.0 - (along / 10.0).round()).abs() < 1e-9;
        let (mut along_x, mut along_y) = (0, 0);
        for waypoint in &waypoints {
            let (x, y) = (on_a_street(waypoint.position.x), on_a_street(waypoint.position.y));
            assert!(x || y, "{waypoint:?}");
            along_x += u32::from(!x);
            along_y += u32::from(!y);
        }
        assert!(along_x > 1_000 && along_y > 1_000, "{along_x} and {along_y} along the two axes");
    }

    #[test]
    fn without_turns_a_manhattan_node_goes_straight_until_the_street_ends() {
        let mut draws = MovementDraws::new(Luck::new(1).stream("turns"), 0);
        for heading in 0..4 {
            assert_eq!(turned(heading, |_| true, 0.0, &mut draws), heading);
            let only_back = turned(heading, |way| way % 4 == (heading + 2) % 4, 0.5, &mut draws);
            assert_eq!(only_back, (heading + 2) % 4);
        }
        let turns: Vec<_> = (0..1_000).map(|_| turned(0, |_| true, 0.5, &mut draws)).collect();
        let count = |way| turns.iter().filter(|&&turn| turn == way).count();
        assert_eq!(count(2), 0);
        // 500 ± 80 and 250 ± 70: five standard deviations.
        assert!(
            (420..580).contains(&count(0)) && (180..320).contains(&count(1)),
            "{} {}",
            count(0),
            count(1)
        );
    }
}
