//! Counters of a run and of each hop.

use crate::{Event, HopId, Record, Tap, Time};

/// Counts of the packets of a run, by what happened to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketCounters {
    /// Packets passed to the network.
    pub sent: u64,
    /// Packets passed to their receivers.
    pub delivered: u64,
    /// Packets dropped because a buffer was full, queue management dropped them, or there was no path.
    pub dropped: u64,
    /// Packets marked by queue management.
    pub marked: u64,
    /// Packets lost on links.
    pub lost: u64,
    hops: Vec<HopCounters>,
}

/// The counters of a hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HopCounters {
    /// Packets that the hop accepted. Packets dropped on arrival do not count.
    pub packets: u64,
    /// Bytes on the wire of the packets that the hop accepted.
    pub bytes: u64,
    /// Packets that found the buffer full, or that queue management dropped.
    pub dropped: u64,
    /// Packets that queue management dropped although there was room. `dropped` counts them, too.
    pub discarded: u64,
    /// Packets marked by queue management.
    pub marked: u64,
    /// Packets that links carried and then lost.
    pub lost: u64,
    /// The longest queue, in bytes on the wire.
    pub max_queue_bytes: u64,
    /// The sum over all packets of their length in bytes times their wait in nanoseconds.
    waited: u128,
}

impl PacketCounters {
    /// Returns counters at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the counters of a hop.
    pub fn hop(&self, hop: HopId) -> HopCounters {
        self.hops.get(usize::from(hop.0)).copied().unwrap_or_default()
    }
}

impl HopCounters {
    /// Returns the mean length of the queue over a run that ended at `end`, in bytes on the wire.
    ///
    /// It is computed by Little's law from the wait of each packet. With drop-tail, a packet that still waits at the
    /// end counts with its whole wait. With queue management, only packets whose transmission has begun count.
    pub fn mean_queue_bytes(&self, end: Time) -> f64 {
        if end == Time::ZERO { 0.0 } else { self.waited as f64 / end.as_nanos() as f64 }
    }
}

impl Tap for PacketCounters {
    #[inline]
    fn record(&mut self, record: &Record<'_>) {
        match record.event {
            Event::Sent => self.sent += 1,
            Event::Queued | Event::Begun => {}
            Event::Dropped | Event::Discarded => self.dropped += 1,
            Event::Marked => self.marked += 1,
            Event::Lost => self.lost += 1,
            Event::Delivered => self.delivered += 1,
        }
        // Events at nodes count for the whole network alone.
        let Some(HopId(hop)) = record.hop else { return };
        let hop = usize::from(hop);
        if hop >= self.hops.len() {
            self.hops.resize(hop + 1, HopCounters::default());
        }
        let hop = &mut self.hops[hop];
        match record.event {
            Event::Queued => {
                hop.packets += 1;
                hop.bytes += u64::from(record.wire_bytes);
                hop.max_queue_bytes = hop.max_queue_bytes.max(record.queue_bytes);
                hop.waited += u128::from(record.wire_bytes) * u128::from(record.wait.as_nanos());
            }
            Event::Dropped => hop.dropped += 1,
            Event::Discarded => {
                hop.dropped += 1;
                hop.discarded += 1;
            }
            Event::Marked => hop.marked += 1,
            Event::Begun => {
                // With queue management the wait is known only when the transmission begins.
                hop.waited += u128::from(record.wire_bytes) * u128::from(record.wait.as_nanos());
            }
            Event::Lost => hop.lost += 1,
            Event::Sent | Event::Delivered => {}
        }
    }
}
