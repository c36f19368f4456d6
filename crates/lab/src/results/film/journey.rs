//! The way of one message through a mesh, step by step.

use serde::Serialize;

/// An exchange and everything that happened to its packets: the request, its retransmissions and the response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Journey {
    /// The number of the node that sent the first packet.
    pub from: u32,
    /// The number of the node that this was for.
    pub to: u32,
    /// The exchange, counted by its client from 0.
    pub exchange: u32,
    /// Its steps in order; no more than [`MAX_STEPS`](Self::MAX_STEPS).
    pub steps: Vec<JourneyStep>,
}

/// A step of a [`Journey`]. Its JSON is a row of numbers in this order, and 4,294,967,295 for nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct JourneyStep(
    /// When, in milliseconds since the start of the run.
    pub u64,
    /// The event, as a place in [`Journey::EVENTS`].
    pub u8,
    /// The node that sends the packet or the frame.
    pub u32,
    /// The node that it is for.
    pub u32,
    /// The transmission within the exchange, 0 for the first.
    pub u8,
);

impl Journey {
    /// The most steps that are kept of one exchange.
    pub const MAX_STEPS: usize = 400;

    /// The events there are: of packets at their ends, and of frames between neighbours.
    pub const EVENTS: [&'static str; 10] = [
        "packet sent",
        "packet delivered",
        "packet dropped",
        "frame sent",
        "frame received",
        "frame collided",
        "frame missed",
        "frame not acknowledged",
        "frame channel busy",
        "frame queue full",
    ];

    /// Nobody, in a step.
    pub const NOBODY: u32 = u32::MAX;
}
