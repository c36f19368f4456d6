//! The counters of a node of a mesh.

use std::ops::{AddAssign, SubAssign};

use super::FrameEvent;

/// Counts of the frames and datagrams of a node, from the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounters {
    /// Frames sent, with every attempt and without acknowledgements.
    pub frames: u64,
    /// Acknowledgements sent.
    pub acks: u64,
    /// Frames sent for RPL, with every attempt.
    pub control_frames: u64,
    /// Frames for this node that it received, copies included.
    pub received: u64,
    /// Frames for this node that another transmission destroyed.
    pub collided: u64,
    /// Frames for this node that the link lost, or that came when its radio was busy or off.
    pub missed: u64,
    /// Frames given up because no attempt was acknowledged.
    pub not_acknowledged: u64,
    /// Frames given up because the channel was busy too often.
    pub channel_busy: u64,
    /// Datagrams dropped because a queue had no room.
    pub queue_full: u64,
    /// Datagrams dropped because the node had no route.
    pub no_route: u64,
    /// Datagrams dropped because their hop limit was reached, or because they were found in a loop.
    pub hop_limit: u64,
    /// Fragments dropped because no reassembly context was free, or because the first fragment of the datagram was
    /// missing.
    pub reassembly: u64,
}

impl NodeCounters {
    /// Returns every count with the name of its field.
    pub fn named(&self) -> [(&'static str, u64); 12] {
        // The list of names exists once, with mutable references, so a copy lends them.
        let mut copy = *self;
        copy.named_mut().map(|(name, count)| (name, *count))
    }

    /// Returns a mutable reference to every count, with the name of its field.
    pub fn named_mut(&mut self) -> [(&'static str, &mut u64); 12] {
        [
            ("frames", &mut self.frames),
            ("acks", &mut self.acks),
            ("control_frames", &mut self.control_frames),
            ("received", &mut self.received),
            ("collided", &mut self.collided),
            ("missed", &mut self.missed),
            ("not_acknowledged", &mut self.not_acknowledged),
            ("channel_busy", &mut self.channel_busy),
            ("queue_full", &mut self.queue_full),
            ("no_route", &mut self.no_route),
            ("hop_limit", &mut self.hop_limit),
            ("reassembly", &mut self.reassembly),
        ]
    }

    pub(super) fn count(&mut self, event: FrameEvent) {
        let counter = match event {
            FrameEvent::Sent => &mut self.frames,
            FrameEvent::Received => &mut self.received,
            FrameEvent::Collided => &mut self.collided,
            FrameEvent::Missed => &mut self.missed,
            FrameEvent::NotAcknowledged => &mut self.not_acknowledged,
            FrameEvent::ChannelBusy => &mut self.channel_busy,
            FrameEvent::QueueFull => &mut self.queue_full,
        };
        *counter += 1;
    }
}

impl AddAssign for NodeCounters {
    fn add_assign(&mut self, other: Self) {
        for ((_, count), (_, other)) in self.named_mut().into_iter().zip(other.named()) {
            *count += other;
        }
    }
}

/// Subtracts the counts of an earlier time.
impl SubAssign for NodeCounters {
    fn sub_assign(&mut self, earlier: Self) {
        for ((_, count), (_, earlier)) in self.named_mut().into_iter().zip(earlier.named()) {
            // Counts never fall, so this cannot underflow.
            *count -= earlier;
        }
    }
}
