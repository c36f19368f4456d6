//! The parameters of movement.

use super::MobilityError;
use crate::Span;

/// The parameters of all models of mobility. A field that begins with the name of a model is for that model alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Movement {
    /// The slowest and the fastest speed in m/s, from above 0 to 1,000. BonnMotion: 0.5 and 1.5 (RandomWaypoint, Pursue).
    pub speed_m_s: (f64, f64),
    /// Random waypoint: the longest pause at a destination in seconds, to 10⁶. BonnMotion: 60.
    pub pause_s: f64,
    /// The time from one waypoint to the next, from 1 ms. Chosen: 1 s.
    pub step: Span,
    /// The distance by which nodes may leave the rectangle around the layout, in metres, to 10⁶. Chosen: 0.
    pub margin_m: f64,
    /// Gauss–Markov: the share of speed and direction that stays from one step to the next, from 0 to 1. Chosen: 0.75, because
    /// with BonnMotion's 1 (OriginalGaussMarkov) nothing ever changes.
    pub alpha: f64,
    /// Gauss–Markov: the standard deviation of speed in m/s, to 1,000. BonnMotion: 0.5 (GaussMarkov).
    pub speed_deviation_m_s: f64,
    /// Gauss–Markov: the standard deviation of the direction in radians, to 2π. BonnMotion: π/8 (GaussMarkov).
    pub turn_deviation_rad: f64,
    /// Manhattan: the distance from a crossing to the next in metres, from 0.01 to 10⁶. It is adjusted so that a whole number
    /// of blocks fills the area. Chosen: 10, the spacing of the networks; BonnMotion divides the area by 10.
    pub block_m: f64,
    /// Manhattan: the probability of a turn at a crossing, left or right alike, from 0 to 1. BonnMotion: 0.5.
    pub turn_probability: f64,
    /// Pursue: the share of the way to the leader that a node aims at in one step, from 0 to 1. BonnMotion: 0.5.
    pub aggressiveness: f64,
    /// Pursue: the largest deviation from that point along each axis, in metres, to 10⁶. BonnMotion: 0.5.
    pub swerve_m: f64,
}

impl Default for Movement {
    fn default() -> Self {
        Self {
            speed_m_s: (0.5, 1.5),
            pause_s: 60.0,
            step: Span::from_secs(1),
            margin_m: 0.0,
            alpha: 0.75,
            speed_deviation_m_s: 0.5,
            turn_deviation_rad: std::f64::consts::FRAC_PI_8,
            block_m: 10.0,
            turn_probability: 0.5,
            aggressiveness: 0.5,
            swerve_m: 0.5,
        }
    }
}

impl Movement {
    /// Checks that all fields are in their ranges.
    pub(super) fn check(&self) -> Result<(), MobilityError> {
        let (slowest, fastest) = self.speed_m_s;
        if !(slowest > 0.0 && slowest <= fastest && fastest <= 1_000.0) {
            return Err(MobilityError(format!(
                "the speeds must be above 0 and up to 1000 m/s, the slowest first, not {slowest} and {fastest}"
            )));
        }
        if self.step < Span::from_millis(1) {
            return Err(MobilityError(format!(
                "a step must be 1000000 ns or more, not {}",
                self.step.as_nanos()
            )));
        }
        let bounded = [
            ("pause", self.pause_s, 0.0, 1e6),
            ("margin", self.margin_m, 0.0, 1e6),
            ("alpha", self.alpha, 0.0, 1.0),
            ("deviation of speed", self.speed_deviation_m_s, 0.0, 1_000.0),
            ("deviation of direction", self.turn_deviation_rad, 0.0, std::f64::consts::TAU),
            ("block", self.block_m, 0.01, 1e6),
            ("probability of a turn", self.turn_probability, 0.0, 1.0),
            ("aggressiveness", self.aggressiveness, 0.0, 1.0),
            ("swerve", self.swerve_m, 0.0, 1e6),
        ];
        match bounded.into_iter().find(|&(_, value, low, high)| !(low..=high).contains(&value)) {
            Some((name, value, low, high)) => {
                Err(MobilityError(format!("the {name} must be from {low} to {high}, not {value}")))
            }
            None => Ok(()),
        }
    }
}
