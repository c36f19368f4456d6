//! Durations finer than a microsecond, for estimates that are averaged and multiplied.

use core::cmp::Ordering;
use core::hint::black_box;
use core::ops::{Add, Sub};

use crate::{Draw, Duration, Ratio, division};

/// A duration in units of 1/4096 µs, up to 2²⁸ µs (268 s), in five bytes. All arithmetic rounds to nearest and saturates.
///
/// Whole microseconds would be too coarse: an average with a gain of 1/8 stalls up to 4 µs before its input, and a
/// backoff from 0.3 s to 24.3 s multiplies that error by 81. The twelve bits below a microsecond keep every timeout
/// within 1 µs of exact arithmetic. Five bytes without alignment make states smaller than a `u64` would.
///
/// The bytes are for storage. Methods unpack them into one number, which stays in registers. All methods are inlined,
/// except the arithmetic of [`Ratio`] and [`Draw`]. Durations are compared as one number, not byte by byte.
#[derive(Clone, Copy, Debug, Default)]
#[repr(Rust, packed)]
pub(crate) struct Fine {
    low: u32,
    high: u8,
}

/// The number of bits below a microsecond.
const BITS: u32 = 12;
/// The number of bits of a duration. The product of a duration and a number of 16 bits fits into 64 bits.
const SPAN_BITS: u32 = 40;
/// The number of doublings after which every duration is zero or the longest.
const MOST_DOUBLINGS: u8 = SPAN_BITS as u8;

impl Fine {
    pub(crate) const ZERO: Self = Self { low: 0, high: 0 };
    const MAX: Self = Self { low: u32::MAX, high: u8::MAX };
    /// The shortest sample, one microsecond. A measured [`Duration`] of zero counts as one microsecond, because it may
    /// have lasted up to a microsecond.
    pub(crate) const SHORTEST: Self = Self::from_duration(Duration::from_micros(1));

    /// Returns a zero whose value the compiler cannot know. The compiler then initialises a new state with one or two
    /// stores. For a known zero it would call `memset`, which firmware would link for this call alone.
    #[inline(always)]
    pub(crate) fn stored_zero() -> Self {
        Self { low: black_box(0), high: 0 }
    }

    /// Returns a duration of `units`·1/4096 µs, or the longest duration if that is less.
    #[inline(always)]
    pub(crate) const fn from_units(units: u64) -> Self {
        if units >> SPAN_BITS > 0 { Self::MAX } else { Self::fitting(units) }
    }

    /// Returns a duration of `units`·1/4096 µs. The number must fit in 40 bits.
    #[inline(always)]
    pub(crate) const fn fitting(units: u64) -> Self {
        Self { low: units as u32, high: (units >> 32) as u8 }
    }

    #[inline(always)]
    pub(crate) const fn units(self) -> u64 {
        ((self.high as u64) << 32) | self.low as u64
    }

    #[inline(always)]
    pub(crate) const fn from_duration(span: Duration) -> Self {
        let us = span.as_micros();
        if us >> (SPAN_BITS - BITS) > 0 { Self::MAX } else { Self::fitting(us << BITS) }
    }

    #[inline(always)]
    pub(crate) const fn times(self, times: u16) -> Self {
        Self::from_units(self.units() * times as u64)
    }

    /// Returns the measured duration `rtt`, rounded down to whole ticks, and at least one tick. For a tick of one
    /// microsecond see [`rounded`](Self::rounded).
    #[inline(always)]
    pub(crate) fn sample(rtt: Duration, tick: Duration) -> Self {
        let rtt = if rtt == Duration::ZERO { Self::SHORTEST } else { rtt.into() };
        // A quick answer takes a tick, because SRTT must not be zero.
        if tick.as_micros() <= 1 { rtt } else { rtt.floored(tick).max(tick.into()) }
    }

    /// Rounds to the nearest multiple of `tick`, halves up. A tick of one microsecond means no rounding, for mechanisms
    /// without ticks.
    #[inline(always)]
    pub(crate) const fn rounded(self, tick: Duration) -> Self {
        let half = Self::from_duration(tick).units() / 2;
        Self::from_units(self.units() + half).floored_unless(self, tick)
    }

    /// Rounds down to a multiple of `tick`; see [`rounded`](Self::rounded).
    #[inline(always)]
    pub(crate) const fn floored(self, tick: Duration) -> Self {
        self.floored_unless(self, tick)
    }

    /// Rounds down like [`floored`](Self::floored), but returns `exact` if `tick` is one microsecond.
    #[inline(always)]
    const fn floored_unless(self, exact: Self, tick: Duration) -> Self {
        if tick.as_micros() <= 1 {
            return exact;
        }
        let tick = Self::from_duration(tick).units();
        // The product is at most this duration, so it fits.
        Self::fitting(division::by(self.units(), tick) * tick)
    }

    /// Returns the duration halved `times` times.
    #[inline(always)]
    pub(crate) const fn halved(self, times: u8) -> Self {
        // A shift by 64 bits or more would panic, and callers count up to 255.
        Self::fitting(if times < 64 { self.units() >> times } else { 0 })
    }

    /// Returns the absolute difference between this duration and `other`.
    #[inline(always)]
    pub(crate) fn distance(self, other: Self) -> Self {
        Self::fitting(self.units().abs_diff(other.units()))
    }

    #[inline(always)]
    pub(crate) const fn twice(self) -> Self {
        Self::from_units(self.units() * 2)
    }

    /// Returns the duration doubled `times` times.
    #[inline(always)]
    pub(crate) const fn doubled(self, times: u8) -> Self {
        // Not a shift: a Cortex-M3 calls a function to shift 64 bits by a variable.
        let (mut span, mut left) = (self, if times > MOST_DOUBLINGS { MOST_DOUBLINGS } else { times });
        while left > 0 {
            span = span.twice();
            left -= 1;
        }
        span
    }

    #[inline(always)]
    pub(crate) const fn by(self, ratio: Ratio) -> Self {
        Self::fitting(scaled(self.units(), ratio))
    }

    /// Returns `weight`·`new` + (1 − `weight`)·`self`: one step of a moving average.
    #[inline(always)]
    pub(crate) const fn blend(self, weight: Ratio, new: Self) -> Self {
        Self::fitting(blended(weight, new.units(), self.units()))
    }

    /// Returns a duration that `draw` chooses between `self` and `factor`·`self`; `self` if `factor` is below 1.
    #[inline(always)]
    pub(crate) fn dithered(self, factor: Ratio, draw: Draw) -> Self {
        self + self.by(factor.above_one()).drawn(draw)
    }

    /// Returns a duration that `draw` chooses between zero and `self`.
    #[inline(always)]
    pub(crate) fn drawn(self, draw: Draw) -> Self {
        // A draw is below 1, so the result fits.
        Self::fitting(draw.of_u64(self.units()))
    }

    #[inline(always)]
    pub(crate) fn min(self, other: Self) -> Self {
        Self::fitting(self.units().min(other.units()))
    }

    #[inline(always)]
    pub(crate) fn max(self, other: Self) -> Self {
        Self::fitting(self.units().max(other.units()))
    }

    /// Returns the larger of the duration and `bound`. A bound of one microsecond has no effect, so that firmware
    /// without a bound links no code for it.
    #[inline(always)]
    pub(crate) fn at_least(self, bound: Duration) -> Self {
        if bound.as_micros() <= 1 { self } else { self.max(bound.into()) }
    }

    /// Returns the smaller of the duration and `bound`. A bound of 268 s or more has no effect, so that firmware
    /// without a bound links no code for it.
    #[inline(always)]
    pub(crate) fn at_most(self, bound: Duration) -> Self {
        if bound.as_micros() >= 268_000_000 { self } else { self.min(bound.into()) }
    }
}

/// Returns `ratio`·`units`, or the longest duration if that is less. Not inlined: see [`Fine`].
const fn scaled(units: u64, ratio: Ratio) -> u64 {
    Fine::from_units(ratio.of_u48(units)).units()
}

/// Returns `weight`·`new` + (1 − `weight`)·`old`: one step of a moving average. Not inlined: see [`Fine`].
const fn blended(weight: Ratio, new: u64, old: u64) -> u64 {
    Fine::from_units(weight.blend_u47(new, old)).units()
}

impl From<Duration> for Fine {
    #[inline(always)]
    fn from(span: Duration) -> Self {
        Self::from_duration(span)
    }
}

/// Rounds to the nearest microsecond.
impl From<Fine> for Duration {
    #[inline(always)]
    fn from(span: Fine) -> Self {
        Self::from_micros((span.units() + (1 << (BITS - 1))) >> BITS)
    }
}

impl Add for Fine {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self::from_units(self.units() + other.units())
    }
}

/// Subtracts a duration. The difference is zero if the other one is longer.
impl Sub for Fine {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self::fitting(self.units().saturating_sub(other.units()))
    }
}

impl PartialEq for Fine {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.units() == other.units()
    }
}

impl Eq for Fine {}

impl Ord for Fine {
    #[inline(always)]
    fn cmp(&self, other: &Self) -> Ordering {
        self.units().cmp(&other.units())
    }
}

impl PartialOrd for Fine {
    #[inline(always)]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Fine = Fine::MAX;

    #[test]
    fn a_duration_out_of_range_saturates() {
        assert_eq!(Fine::from(Duration::MAX), MAX);
        assert_eq!(MAX + MAX, MAX);
        assert_eq!(Fine::from(Duration::from_micros(1)).doubled(255), MAX);
        assert_eq!(Duration::from(MAX), Duration::from_micros(1 << 28));
        assert_eq!(Fine::ZERO - MAX, Fine::ZERO);
    }

    #[test]
    fn rounding_to_a_tick_gives_its_multiples_and_a_tick_of_1_us_rounds_nothing() {
        let (us, tick) = (Duration::from_micros, Duration::from_millis(1));
        let third = Fine::from(us(10_000)).by(Ratio::new(1, 3));
        assert_eq!(third.rounded(us(1)), third);
        assert_eq!(Duration::from(third.rounded(tick)), us(3_000));
        assert_eq!(Duration::from(Fine::from(us(3_500)).rounded(tick)), us(4_000));
        assert_eq!(Duration::from(Fine::from(us(3_999)).floored(tick)), us(3_000));
        assert_eq!(Duration::from(Fine::sample(us(20), tick)), us(1_000));
    }

    #[test]
    fn a_lower_bound_of_1_us_and_an_upper_bound_of_268_s_do_not_bound_an_rto() {
        let (us, ms) = (Duration::from_micros, Duration::from_millis);
        let span = Fine::from(ms(3));
        assert_eq!((span.at_least(ms(50)), span.at_most(ms(2))), (ms(50).into(), ms(2).into()));
        assert_eq!((span.at_least(us(1)), MAX.at_most(ms(268_000))), (span, MAX));
    }

    #[test]
    fn durations_in_fine_units_compare_like_their_lengths() {
        let ms = |ms| Fine::from(Duration::from_millis(ms));
        assert!(ms(255) < ms(256) && ms(256) < ms(65_536) && ms(65_536) < MAX);
    }

    #[test]
    fn a_fine_duration_of_one_microsecond_survives_division_by_eight() {
        let us = Fine::from(Duration::from_micros(1));
        assert_eq!(us.by(Ratio::new(1, 8)).times(8), us);
    }
}
