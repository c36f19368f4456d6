//! Delays that differ from packet to packet and so change their order.

use crate::Time;
use crate::loss::{Chance, is_probability};
use crate::luck::{Luck, Stream};
use crate::packet::Header;

/// A random delay of every packet, uniform from `min_ns` to `max_ns`. Packets overtake one another, like with Linux's netem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter {
    /// The shortest delay, in nanoseconds.
    pub min_ns: u64,
    /// The longest delay, in nanoseconds; not less than the shortest.
    pub max_ns: u64,
}

/// An extra delay of some packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reordering {
    /// The probability that a packet is late.
    pub probability: f64,
    /// The extra delay of a late packet, in nanoseconds.
    pub extra_ns: u64,
}

impl Jitter {
    pub(crate) fn is_valid(self) -> bool {
        self.min_ns <= self.max_ns
    }
}

impl Reordering {
    pub(crate) fn is_valid(self) -> bool {
        is_probability(self.probability)
    }
}

/// Jitter and reordering of one hop, with their streams of random numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scatter {
    min_ns: u64,
    /// The number of delays to draw from.
    delays: u64,
    jitter: Stream,
    late: Chance,
    extra_ns: u64,
    reordering: Stream,
}

impl Scatter {
    pub(crate) fn new(jitter: Option<Jitter>, reordering: Option<Reordering>, luck: Luck, hop: &str) -> Self {
        let Jitter { min_ns, max_ns } = jitter.unwrap_or(Jitter { min_ns: 0, max_ns: 0 });
        let Reordering { probability, extra_ns } =
            reordering.unwrap_or(Reordering { probability: 0.0, extra_ns: 0 });
        Self {
            min_ns,
            delays: (max_ns - min_ns).saturating_add(1),
            jitter: luck.stream(&format!("{hop}/jitter")),
            late: Chance::new(probability),
            extra_ns,
            reordering: luck.stream(&format!("{hop}/reordering")),
        }
    }

    /// Returns the moment at which this packet arrives.
    pub(crate) fn due(&self, now: Time, packet: &Header) -> Time {
        let (a, b, c) = packet.key();
        let mut delay = self.min_ns;
        if self.delays > 1 {
            delay += self.jitter.below(self.delays, a, b, c);
        }
        if self.extra_ns > 0 && self.late.happens(self.reordering.bits(a, b, c)) {
            delay = delay.saturating_add(self.extra_ns);
        }
        now + delay
    }
}
