//! A point in time stored in four bytes.

use core::num::NonZeroU16;

use crate::{Duration, Instant, division};

const MICROS_IN_A_MILLI: NonZeroU16 = NonZeroU16::new(1_000).unwrap();

/// A point in time in milliseconds, modulo 2³² (49.7 days). A longer idle time counts modulo 2³², so an estimate then
/// ages less than it should.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stamp([u8; 4]);

impl Stamp {
    pub(crate) const ZERO: Self = Self([0; 4]);

    pub(crate) fn of(now: Instant) -> Self {
        Self((division::by_u16(now.as_micros(), MICROS_IN_A_MILLI) as u32).to_le_bytes())
    }

    /// Returns the time that is `span` before `now`.
    pub(crate) fn before(now: Instant, span: Duration) -> Self {
        Self::of(Instant::from_micros(now.as_micros().saturating_sub(span.as_micros())))
    }

    /// Returns the time from this stamp to `now`, in whole milliseconds.
    pub(crate) fn until(self, now: Instant) -> Duration {
        let (Self(now), Self(then)) = (Self::of(now), self);
        // The difference is right even if the milliseconds have wrapped since then.
        Duration::from_millis(u32::from_le_bytes(now).wrapping_sub(u32::from_le_bytes(then)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elapsed_time_is_right_when_the_clock_counter_wraps() {
        let turn = 1 << 32;
        let stamp = Stamp::of(Instant::from_millis(turn - 5));
        assert_eq!(stamp.until(Instant::from_millis(turn + 5)), Duration::from_millis(10));
    }
}
