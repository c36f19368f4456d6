//! Where nodes are, and where they go.

use crate::Time;

/// A place in the plane, in metres.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Position {
    /// Eastwards.
    pub x: f64,
    /// Southwards, as maps on screens have it.
    pub y: f64,
}

impl Position {
    /// How far it is to `other`, in metres.
    pub fn distance(self, other: Self) -> f64 {
        let (x, y) = (self.x - other.x, self.y - other.y);
        (x * x + y * y).sqrt()
    }
}

/// Where the nodes of a mesh stand, and what they are in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    /// The nodes, by their numbers.
    pub places: Vec<Position>,
    /// The border router: the root of the routes. It relays only, unless it is a sink, too.
    pub root: u32,
    /// The nodes that are asked or notified, the primary one first.
    pub sinks: Vec<u32>,
}

/// A node is somewhere from a moment on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waypoint {
    /// From when.
    pub time: Time,
    /// Which node.
    pub node: u32,
    /// Where.
    pub position: Position,
}
