//! The buffers of links: drop-tail, and active queue management.
//!
//! A drop-tail buffer is computed when a packet arrives, without an event of its own (`drop_tail`). Queue management decides
//! when a packet leaves, so a [`ManagedQueue`] holds its packets and has an event for every transmission.

mod codel;
mod drop_tail;
mod fq_codel;
mod lane;
mod managed;
mod pie;
mod red;

use crate::Span;
use crate::loss::is_probability;

pub use codel::CodelConfig;
pub use fq_codel::FqCodelConfig;
pub use pie::PieConfig;
pub use red::RedConfig;

pub(crate) use drop_tail::DropTailQueue;
pub(crate) use managed::{Departure, ManagedQueue, PacketFate};

/// The management of a link's buffer. Each kind also drops a packet that finds the buffer full.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Queue {
    /// Packets are dropped only if the buffer is full.
    #[default]
    DropTail,
    /// CoDel (RFC 8289).
    Codel(CodelConfig),
    /// FQ-CoDel (RFC 8290).
    FqCodel(FqCodelConfig),
    /// PIE (RFC 8033).
    Pie(PieConfig),
    /// RED (Floyd, Jacobson 1993).
    Red(RedConfig),
}

impl Queue {
    /// Returns whether the parameters are in their ranges.
    pub(crate) fn is_valid(&self) -> bool {
        match self {
            Self::DropTail | Self::Codel(_) => true,
            Self::FqCodel(config) => config.quantum_bytes > 0 && (1..=65_536).contains(&config.flows),
            Self::Pie(config) => config.update > Span::ZERO && is_probability(config.mark_limit),
            Self::Red(config) => {
                // The slope of the probability divides by the difference of the thresholds.
                config.min_packets < config.max_packets
                    && is_probability(config.max_probability)
                    && is_probability(config.weight)
            }
        }
    }
}

/// The verdict of queue management on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The packet stays as it is.
    Keep,
    /// The packet is marked (RFC 3168), or dropped if it cannot be marked.
    Mark,
    /// The packet is dropped.
    Drop,
}
