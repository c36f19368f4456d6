//! The way of one exchange through a mesh, step by step.

use serde::Serialize;

/// An exchange and the events of its packets: the request, its retransmissions and the response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Journey {
    /// The number of the node that sent the first packet.
    pub from: u32,
    /// The number of the node that the first packet was sent to.
    pub to: u32,
    /// The number of the exchange at its client, counted from 0.
    pub exchange: u32,
    /// The steps in the order of time, at most [`MAX_STEPS`](Self::MAX_STEPS).
    pub steps: Vec<JourneyStep>,
}

/// A step of a [`Journey`]. Its JSON is a row of numbers in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct JourneyStep(
    /// The time in milliseconds since the start of the run.
    pub u64,
    /// The event. Of a packet: 0 sent, 1 delivered, 2 dropped. Of a frame between neighbours: 3 sent, 4 received, 5 collided,
    /// 6 missed, 7 not acknowledged, 8 channel busy, 9 queue full.
    pub u8,
    /// The node that sends the packet or the frame.
    pub u32,
    /// The node that the packet or frame is for, or [`Journey::NOBODY`] for a broadcast.
    pub u32,
    /// The transmission within the exchange, 0 for the first.
    pub u8,
);

impl Journey {
    /// The most steps of a journey.
    pub const MAX_STEPS: usize = 400;

    /// The number that stands for no node in a step.
    pub const NOBODY: u32 = u32::MAX;
}
