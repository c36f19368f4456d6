//! One uniform random number, drawn by whoever calls.

use crate::{Duration, Ratio};

/// A number drawn uniformly from [0, 1), as a fraction of 2³².
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(Rust, packed)] // as Ratio
pub struct Draw(u32);

impl Draw {
    /// The least draw, zero.
    pub const ZERO: Self = Self(0);

    /// The draw `fraction` / 2³².
    pub const fn from_bits(fraction: u32) -> Self {
        Self(fraction)
    }

    /// This draw as a fraction of 2³².
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// U(`low`, `high`): `low` + u·(`high` − `low`), to the nearest microsecond. `low` if `high` is not above it.
    pub fn between(self, low: Duration, high: Duration) -> Duration {
        low + self.of(high - low)
    }

    /// U(`base`, `factor`·`base`): the dither of RFC 7252 §4.2, with ACK_RANDOM_FACTOR as `factor`.
    pub fn dither(self, base: Duration, factor: Ratio) -> Duration {
        self.between(base, factor.of(base))
    }

    /// u·`span`, to the nearest microsecond.
    fn of(self, span: Duration) -> Duration {
        Duration::from_micros(self.of_u64(span.as_micros()))
    }

    /// u·`value`, to the nearest integer.
    pub(crate) const fn of_u64(self, value: u64) -> u64 {
        // Two 64-bit products instead of one of 128 bits: a Cortex-M3 multiplies 32 by 32. None overflows, nor does the sum,
        // for u is below 1.
        let high = (value >> 32) * self.0 as u64;
        let low = (value & 0xffff_ffff) * self.0 as u64 + (1 << 31);
        high + (low >> 32)
    }
}
