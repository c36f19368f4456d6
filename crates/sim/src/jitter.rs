//! Delays that differ from packet to packet and so change their order.

use crate::loss::{Chance, is_probability};
use crate::luck::{Luck, Stream};
use crate::packet::Header;
use crate::{Span, Time};

/// A random delay of every packet, uniform from `min` to `max`. Packets overtake one another, like with Linux's netem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Jitter {
    /// The shortest delay.
    pub min: Span,
    /// The longest delay; not less than the shortest.
    pub max: Span,
}

/// An extra delay of some packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reordering {
    /// The probability that a packet is late.
    pub probability: f64,
    /// The extra delay of a late packet.
    pub delay: Span,
}

impl Jitter {
    pub(crate) fn is_valid(self) -> bool {
        self.min <= self.max
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
    min: Span,
    /// The exclusive upper limit of the random part of the delay.
    spread: Span,
    jitter: Stream,
    late: Chance,
    extra: Span,
    reordering: Stream,
}

impl Scatter {
    pub(crate) fn new(jitter: Option<Jitter>, reordering: Option<Reordering>, luck: Luck, hop: &str) -> Self {
        let Jitter { min, max } = jitter.unwrap_or_default();
        let Reordering { probability, delay } =
            reordering.unwrap_or(Reordering { probability: 0.0, delay: Span::ZERO });
        Self {
            min,
            // The longest delay is among the drawn ones.
            spread: max - min + Span::from_nanos(1),
            jitter: luck.stream(&format!("{hop}/jitter")),
            late: Chance::new(probability),
            extra: delay,
            reordering: luck.stream(&format!("{hop}/reordering")),
        }
    }

    /// Returns the time at which a packet leaves the random delay, if it enters the delay at `now`.
    pub(crate) fn due(&self, now: Time, packet: &Header) -> Time {
        let (a, b, c) = packet.key();
        let mut delay = self.min;
        // A spread of 1 ns is a constant delay, which needs no draw.
        if self.spread > Span::from_nanos(1) {
            delay += self.jitter.within(self.spread, a, b, c);
        }
        if self.extra > Span::ZERO && self.late.happens(self.reordering.bits(a, b, c)) {
            delay += self.extra;
        }
        now + delay
    }
}
