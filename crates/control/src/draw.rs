//! A uniform random number, which the caller of a mechanism draws.

use crate::{Duration, Ratio};

/// A number drawn uniformly from [0, 1), as a fraction of 2³².
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(Rust, packed)] // like `Ratio`, so that states and exchanges have an alignment of 1
pub struct Draw(u32);

impl Draw {
    /// The smallest draw, zero.
    pub const ZERO: Self = Self(0);

    /// Returns the draw with the value `fraction` / 2³².
    pub const fn from_bits(fraction: u32) -> Self {
        Self(fraction)
    }

    /// Returns this draw as a fraction of 2³².
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// Returns a duration that this draw u chooses between `low` and `high`: `low` + u·(`high` − `low`) to the nearest
    /// microsecond, or `low` if `high` is not above it.
    pub fn between(self, low: Duration, high: Duration) -> Duration {
        low + self.of(high - low)
    }

    /// Returns a duration that this draw chooses between `base` and `factor`·`base`: the dither of RFC 7252 §4.2, where
    /// `factor` is ACK_RANDOM_FACTOR.
    pub fn dither(self, base: Duration, factor: Ratio) -> Duration {
        self.between(base, factor.of(base))
    }

    /// Returns u·`span` to the nearest microsecond, where u is this draw.
    fn of(self, span: Duration) -> Duration {
        Duration::from_micros(self.of_u64(span.as_micros()))
    }

    /// Returns u·`value` to the nearest integer, where u is this draw.
    pub(crate) const fn of_u64(self, value: u64) -> u64 {
        // Two 64-bit products instead of one of 128 bits, because a Cortex-M3 multiplies 32 by 32. Neither they nor their sum
        // overflow, because u is below 1.
        let high = (value >> 32) * self.0 as u64;
        let low = (value & 0xffff_ffff) * self.0 as u64 + (1 << 31);
        high + (low >> 32)
    }
}
