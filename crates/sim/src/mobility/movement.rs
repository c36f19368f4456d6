//! The parameters that all models of mobility have.

use super::{MobilityError, ParameterBound};
use crate::Span;

/// Speed, steps and area of nodes that move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Movement {
    /// The slowest and the fastest speed in m/s, from above 0 to 1,000.
    pub speed_m_s: (f64, f64),
    /// The distance by which nodes may leave the rectangle around the layout, in metres, up to 10⁶.
    pub margin_m: f64,
    /// The time from one waypoint to the next, at least 1 ms.
    pub step: Span,
}

impl Movement {
    /// The speeds of BonnMotion (RandomWaypoint, Pursue). Chosen: no margin, and a waypoint every second.
    pub const DEFAULT: Self = Self { speed_m_s: (0.5, 1.5), margin_m: 0.0, step: Span::from_secs(1) };

    /// Checks that these fields, and the parameters with these `bounds`, are in their ranges.
    pub(super) fn check(&self, bounds: &[ParameterBound]) -> Result<(), MobilityError> {
        let (slowest, fastest) = self.speed_m_s;
        // Written as a negation, so that NaN is refused, too.
        if !(slowest > 0.0 && slowest <= fastest && fastest <= 1_000.0) {
            return Err(MobilityError(format!(
                "the speeds must be above 0 and up to 1000 m/s, the slowest first, not {slowest} and {fastest}"
            )));
        }
        if self.step < Span::from_millis(1) {
            return Err(MobilityError(format!(
                "a step must be 1 ms or more, not {} ns",
                self.step.as_nanos()
            )));
        }
        let out_of_range = |&&(_, value, low, high): &&ParameterBound| !(low..=high).contains(&value);
        match [("margin", self.margin_m, 0.0, 1e6)].iter().chain(bounds).find(out_of_range) {
            Some((name, value, low, high)) => {
                Err(MobilityError(format!("the {name} must be from {low} to {high}, not {value}")))
            }
            None => Ok(()),
        }
    }
}
