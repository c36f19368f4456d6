//! The rate of a link and the buffer in front of it.

use crate::{Span, Time};

/// A link that carries one packet after the other, with a drop-tail buffer counted in bytes before it.
///
/// The buffer does not hold the packet in transmission, like Linux's `bfifo`. A packet that finds the link idle is
/// transmitted at once and needs no room. A packet that would exceed the capacity of the buffer is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The rate of the link in bit/s; not 0.
    pub bits_per_second: u64,
    /// The capacity of the buffer, in bytes on the wire with headers.
    pub capacity_bytes: u64,
}

/// The bits of a byte times the nanoseconds of a second. Divided by the rate in bit/s, this number is the transmission
/// time of a byte in nanoseconds.
const NANOBITS_PER_BYTE: u64 = 8 * 1_000_000_000;

/// The time at which a link ends its transmissions. The time is kept to the fraction of a nanosecond, so that a busy
/// link carries exactly its rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transmitter {
    bits_per_second: u64,
    finish_ns: u64,
    /// The fraction, in units of 1/`bits_per_second` of a nanosecond.
    remainder: u64,
}

impl Transmitter {
    pub(crate) fn new(rate: Rate) -> Self {
        Self { bits_per_second: rate.bits_per_second, finish_ns: 0, remainder: 0 }
    }

    /// Returns the time at which the last bit of all packets so far has been sent.
    pub(crate) fn finish(&self) -> Time {
        // Rounded up: the last bit leaves within this nanosecond.
        Time::from_nanos(self.finish_ns) + Span::from_nanos(u64::from(self.remainder > 0))
    }

    /// Transmits another packet, at `now` or as soon as the link is free. Returns [`finish`](Self::finish).
    pub(crate) fn transmit(&mut self, now: Time, wire_bytes: u32) -> Time {
        // The link was idle, so the fraction of a nanosecond from before has no meaning.
        if self.finish() <= now {
            (self.finish_ns, self.remainder) = (now.as_nanos(), 0);
        }
        // No packet is longer than 64 KiB and its headers, so the product stays below 2⁴⁹.
        let work = (u64::from(wire_bytes) * NANOBITS_PER_BYTE).saturating_add(self.remainder);
        self.finish_ns = self.finish_ns.saturating_add(work / self.bits_per_second);
        self.remainder = work % self.bits_per_second;
        self.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UP: Rate = Rate { bits_per_second: 60_000, capacity_bytes: 2_500 };

    #[test]
    fn sending_38_bytes_at_60_kbit_s_takes_5_066667_ms() {
        assert_eq!(Transmitter::new(UP).transmit(Time::ZERO, 38), Time::from_nanos(5_066_667));
    }

    #[test]
    fn rounding_of_transmission_times_does_not_accumulate() {
        let mut link = Transmitter::new(UP);
        let finish = (0..3_000).map(|_| link.transmit(Time::ZERO, 38)).last();
        assert_eq!(finish, Some(Time::from_nanos(15_200_000_000)));
    }

    #[test]
    fn an_idle_link_transmits_a_packet_at_once() {
        let mut link = Transmitter::new(UP);
        link.transmit(Time::ZERO, 38);
        assert_eq!(link.transmit(Time::from_secs(1), 75), Time::from_nanos(1_010_000_000));
    }
}
