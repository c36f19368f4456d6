//! What can be seen of a network at work.

use crate::mesh::FrameRecord;
use crate::{HopId, Mark, NodeId, Time, Transport};

/// What happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// A node handed it to the network.
    Sent,
    /// A hop received it.
    Queued,
    /// A hop had no room for it; without a hop: there is no path, or the packet is longer than 65,535 bytes.
    Dropped,
    /// A hop carried it and lost it.
    Lost,
    /// A node is about to receive it.
    Delivered,
}

impl Event {
    /// Its name in traces.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Queued => "queued",
            Self::Dropped => "dropped",
            Self::Lost => "lost",
            Self::Delivered => "delivered",
        }
    }
}

/// One event, with everything that is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// When.
    pub time: Time,
    /// What.
    pub event: Event,
    /// Where, if not at a node.
    pub hop: Option<HopId>,
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// What the packet belongs to.
    pub mark: Mark,
    /// What its bytes are.
    pub transport: Transport,
    /// Its size on a link, headers included.
    pub wire_bytes: u32,
    /// What waits in the hop's buffer after the event, in bytes on the wire.
    pub queue_bytes: u64,
    /// For [`Event::Queued`]: the time from now until its transmission begins, in nanoseconds.
    pub wait_ns: u64,
    /// Its bytes, without the headers of the accounting.
    pub bytes: &'a [u8],
}

/// Something that watches. It sees every event in order and changes none.
pub trait Tap {
    /// Something happened.
    fn record(&mut self, record: &Record<'_>);

    /// Something happened on the air of a mesh. Who watches packets alone need not look.
    #[inline]
    fn frame(&mut self, _: &FrameRecord<'_>) {}
}

/// Nobody watches.
impl Tap for () {
    #[inline]
    fn record(&mut self, _: &Record<'_>) {}
}

/// Two watch.
impl<A: Tap, B: Tap> Tap for (A, B) {
    #[inline]
    fn record(&mut self, record: &Record<'_>) {
        self.0.record(record);
        self.1.record(record);
    }
    #[inline]
    fn frame(&mut self, record: &FrameRecord<'_>) {
        self.0.frame(record);
        self.1.frame(record);
    }
}

/// Perhaps one watches.
impl<T: Tap> Tap for Option<T> {
    #[inline]
    fn record(&mut self, record: &Record<'_>) {
        if let Some(tap) = self {
            tap.record(record);
        }
    }
    #[inline]
    fn frame(&mut self, record: &FrameRecord<'_>) {
        if let Some(tap) = self {
            tap.frame(record);
        }
    }
}

impl<T: Tap> Tap for &mut T {
    #[inline]
    fn record(&mut self, record: &Record<'_>) {
        (**self).record(record);
    }
    #[inline]
    fn frame(&mut self, record: &FrameRecord<'_>) {
        (**self).frame(record);
    }
}
