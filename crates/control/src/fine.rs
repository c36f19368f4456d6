//! Spans of time finer than a microsecond, for estimates that are averaged and multiplied.

use core::ops::{Add, Sub};

use crate::{Draw, Duration, Ratio};

/// A span of time in 1/4096 µs, up to 2²⁸ µs (268 s), in five bytes. All arithmetic rounds to nearest and saturates.
///
/// An average in whole microseconds stalls 4 µs below its input, and a backoff from 0.3 s to 24.3 s multiplies the
/// error by 81. With twelve more bits what is armed stays within 1 µs of exact arithmetic; the bytes are cheaper than
/// the alignment of a `u64`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fine([u8; 5]); // big-endian, so that the derived order is the numbers'

const BITS: u32 = 12;

impl Fine {
    pub(crate) const ZERO: Self = Self([0; 5]);
    /// The resolution of [`Duration`]: what took no time may have taken up to a microsecond, and counts as one.
    pub(crate) const SHORTEST: Self = Self::from_duration(Duration::from_micros(1));

    /// Saturates.
    pub(crate) const fn from_units(units: u64) -> Self {
        let [0, 0, 0, bytes @ ..] = units.to_be_bytes() else { return Self([0xff; 5]) };
        Self(bytes)
    }

    pub(crate) const fn units(self) -> u64 {
        let mut units = [0; 8];
        units.split_at_mut(3).1.copy_from_slice(&self.0);
        u64::from_be_bytes(units)
    }

    pub(crate) const fn from_duration(span: Duration) -> Self {
        Self::from_units(span.as_micros().saturating_mul(1 << BITS))
    }

    pub(crate) const fn times(self, times: u64) -> Self {
        Self::from_units(self.units().saturating_mul(times))
    }

    /// The time a sample took, in whole ticks, and at least one; see [`rounded`](Self::rounded).
    pub(crate) fn sample(rtt: Duration, tick: Duration) -> Self {
        Self::from(rtt).floored(tick).max(tick.into()).max(Self::SHORTEST)
    }

    /// To the nearest multiple of `tick`, halves up. A tick of a microsecond rounds nothing: it is the resolution that
    /// nothing is to be lost above.
    pub(crate) const fn rounded(self, tick: Duration) -> Self {
        let half = Self::from_duration(tick).units() / 2;
        Self::from_units(self.units() + half).floored_unless(self, tick)
    }

    /// To the multiple of `tick` below; see [`rounded`](Self::rounded).
    pub(crate) const fn floored(self, tick: Duration) -> Self {
        self.floored_unless(self, tick)
    }

    /// As [`floored`](Self::floored), but `exact` where nothing is rounded.
    const fn floored_unless(self, exact: Self, tick: Duration) -> Self {
        if tick.as_micros() <= 1 {
            return exact;
        }
        let tick = Self::from_duration(tick).units();
        Self::from_units(self.units() / tick * tick)
    }

    /// Halved `times` times.
    pub(crate) const fn halved(self, times: u8) -> Self {
        Self::from_units(if times < 64 { self.units() >> times } else { 0 })
    }

    /// The distance from `other`.
    pub(crate) fn distance(self, other: Self) -> Self {
        self.max(other) - self.min(other)
    }

    /// Doubled `times` times.
    pub(crate) const fn doubled(self, times: u8) -> Self {
        self.times(if times < 64 { 1 << times } else { u64::MAX })
    }

    pub(crate) const fn by(self, ratio: Ratio) -> Self {
        Self::from_units(ratio.of_u64(self.units()))
    }

    /// `weight`·`new` + (1 − `weight`)·self: one step of a moving average.
    pub(crate) const fn blend(self, weight: Ratio, new: Self) -> Self {
        Self::from_units(weight.blend_u64(new.units(), self.units()))
    }

    /// U(0, self).
    pub(crate) fn drawn(self, draw: Draw) -> Self {
        Self::from_units(draw.of_u64(self.units()))
    }
}

impl From<Duration> for Fine {
    fn from(span: Duration) -> Self {
        Self::from_duration(span)
    }
}

/// To the nearest microsecond.
impl From<Fine> for Duration {
    fn from(span: Fine) -> Self {
        Self::from_micros((span.units() + (1 << (BITS - 1))) >> BITS)
    }
}

impl Add for Fine {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::from_units(self.units() + other.units())
    }
}

/// Never negative: what would be is zero.
impl Sub for Fine {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self::from_units(self.units().saturating_sub(other.units()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Fine = Fine([0xff; 5]);

    #[test]
    fn what_does_not_fit_saturates() {
        assert_eq!(Fine::from(Duration::MAX), MAX);
        assert_eq!(MAX + MAX, MAX);
        assert_eq!(Fine::from(Duration::from_micros(1)).doubled(255), MAX);
        assert_eq!(Duration::from(MAX), Duration::from_micros(1 << 28));
        assert_eq!(Fine::ZERO - MAX, Fine::ZERO);
    }

    #[test]
    fn a_tick_rounds_to_its_multiples_and_a_microsecond_does_not() {
        let (us, tick) = (Duration::from_micros, Duration::from_millis(1));
        let third = Fine::from(us(10_000)).by(Ratio::new(1, 3));
        assert_eq!(third.rounded(us(1)), third);
        assert_eq!(Duration::from(third.rounded(tick)), us(3_000));
        assert_eq!(Duration::from(Fine::from(us(3_500)).rounded(tick)), us(4_000));
        assert_eq!(Duration::from(Fine::from(us(3_999)).floored(tick)), us(3_000));
        assert_eq!(Duration::from(Fine::sample(us(20), tick)), us(1_000));
    }

    #[test]
    fn order_is_that_of_the_spans() {
        let ms = |ms| Fine::from(Duration::from_millis(ms));
        assert!(ms(255) < ms(256) && ms(256) < ms(65_536) && ms(65_536) < MAX);
    }

    #[test]
    fn a_microsecond_divided_by_eight_and_multiplied_again_is_a_microsecond() {
        let us = Fine::from(Duration::from_micros(1));
        assert_eq!(us.by(Ratio::new(1, 8)).times(8), us);
    }
}
