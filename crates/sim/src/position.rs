//! The positions of nodes.

use crate::Time;

/// A place in the plane, in metres.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Position {
    /// The distance eastwards.
    pub x: f64,
    /// The distance southwards, like on a screen.
    pub y: f64,
}

impl Position {
    /// Returns the distance to `other`, in metres.
    pub fn distance(self, other: Self) -> f64 {
        let (x, y) = (self.x - other.x, self.y - other.y);
        (x * x + y * y).sqrt()
    }
}

/// The positions and the roles of the nodes of a mesh.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    /// The positions of the nodes, by their numbers.
    pub places: Vec<Position>,
    /// The border router, which is the root of the routes. It only forwards, unless it is a sink, too.
    pub root: u32,
    /// The nodes that receive requests or notifications. The primary one comes first.
    pub sinks: Vec<u32>,
}

impl Layout {
    /// Returns the nodes that are neither sinks nor the border router, sorted by their numbers.
    pub fn clients(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.places.len() as u32).filter(|node| *node != self.root && !self.sinks.contains(node))
    }

    /// Returns the position of a node; the origin for an unknown node.
    pub fn place(&self, node: u32) -> Position {
        self.places.get(node as usize).copied().unwrap_or_default()
    }
}

/// The position of a node from a given time on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waypoint {
    /// The moment.
    pub time: Time,
    /// The number of the node.
    pub node: u32,
    /// The position.
    pub position: Position,
}
