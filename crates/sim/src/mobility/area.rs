//! The rectangle that moving nodes stay in.

use super::{MobilityError, MovementDraws};
use crate::Position;

#[derive(Clone, Copy)]
pub(super) struct Area {
    pub(super) low: Position,
    pub(super) high: Position,
}

impl Area {
    /// Returns the rectangle around all places, with a margin on each side.
    pub(super) fn around(places: &[Position], margin_m: f64) -> Result<Self, MobilityError> {
        let start = places.first().copied().unwrap_or_default();
        let (low, high) = places.iter().fold((start, start), |(low, high), place| {
            (
                Position { x: low.x.min(place.x), y: low.y.min(place.y) },
                Position { x: high.x.max(place.x), y: high.y.max(place.y) },
            )
        });
        let low = Position { x: low.x - margin_m, y: low.y - margin_m };
        let high = Position { x: high.x + margin_m, y: high.y + margin_m };
        let diagonal = low.distance(high);
        if diagonal <= 0.0 {
            return Err(MobilityError(
                "nodes need an area to move in: give two positions, or a margin".to_owned(),
            ));
        }
        // Beyond this, steps would be lost in the rounding of positions.
        if diagonal.is_nan() || diagonal > 1e9 {
            return Err(MobilityError("nodes cannot move in an area of more than 1000000 km".to_owned()));
        }
        Ok(Self { low, high })
    }

    /// Returns a random place in the area, uniformly.
    pub(super) fn anywhere(&self, draws: &mut MovementDraws) -> Position {
        let x = draws.between(self.low.x, self.high.x);
        let y = draws.between(self.low.y, self.high.y);
        // Rounding may have put the place a little outside.
        self.clamp(Position { x, y })
    }

    /// Returns the position in the area that is nearest to `place`.
    pub(super) fn clamp(&self, place: Position) -> Position {
        Position { x: place.x.clamp(self.low.x, self.high.x), y: place.y.clamp(self.low.y, self.high.y) }
    }
}

/// Returns the position at a `share` of the way from one place to another.
pub(super) fn towards(from: Position, to: Position, share: f64) -> Position {
    Position { x: from.x + share * (to.x - from.x), y: from.y + share * (to.y - from.y) }
}
