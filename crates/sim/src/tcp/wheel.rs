//! The timer wheel of Linux.

use crate::{Span, Time};

/// The number of slots of a level.
const SLOTS: u64 = 64;

/// The grid of each level is coarser than the grid of the level before it by a factor of 2 to the power of this number.
const SHIFT: u32 = 3;

/// The number of the last level, which has the coarsest grid.
const LAST_LEVEL: u32 = 8;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// The timer wheel of a Linux kernel since 4.8 (`calc_wheel_index` in `kernel/time/timer.c`).
///
/// A timer fires on a grid, never before its time. The grid counts from the start of the kernel, not of the timer, so
/// that timers of about the same age fire together. The longer a timer runs, the coarser is its grid. At 250 Hz the
/// grid is 4 ms for timers below 252 ms, 32 ms below 2.016 s, 256 ms below 16.128 s and 2.048 s below 129.024 s. In a
/// simulation the kernel starts with the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wheel {
    hz: u16,
}

impl Wheel {
    /// Returns the wheel of a kernel with `hz` ticks a second; `None` if `hz` is 0.
    pub(super) fn new(hz: u16) -> Option<Self> {
        (hz > 0).then_some(Self { hz })
    }

    /// Returns the moment at which a timer fires that is set at `now` and expires after `timeout`.
    pub(super) fn fires(self, now: Time, timeout: Span) -> Time {
        let hz = u128::from(self.hz);
        let tick = u128::from(now.as_nanos()) * hz / NANOS_PER_SECOND;
        let ticks = (u128::from(timeout.as_nanos()) * hz).div_ceil(NANOS_PER_SECOND);
        // A timer goes to the lowest level that reaches as far as it runs.
        let level = (0..LAST_LEVEL).find(|level| ticks < u128::from(SLOTS - 1) << (level * SHIFT));
        let shift = level.unwrap_or(LAST_LEVEL) * SHIFT;
        // Rounded up to the grain of the level, because a timer must not fire early. On the grid it goes to the next one, like in Linux.
        let fires = (((tick + ticks) >> shift) + 1) << shift;
        Time::from_nanos((fires * NANOS_PER_SECOND).div_ceil(hz).try_into().unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_MS: u64 = 4;

    fn fires(hz: u16, now_ms: u64, timeout_ms: u64) -> u64 {
        let now = Time::from_nanos(now_ms * 1_000_000);
        Wheel::new(hz).unwrap().fires(now, Span::from_millis(timeout_ms)).as_nanos() / 1_000_000
    }

    #[test]
    fn the_timer_wheel_of_linux_rounds_a_timeout_up_to_the_next_slot_of_its_level() {
        // `calc_index` with `expires = 1000 + timeout` in ticks: ((expires + LVL_GRAN(n)) >> LVL_SHIFT(n)) << LVL_SHIFT(n).
        for (timeout, level, slot) in [
            (1, 0, 1_002),
            (62, 0, 1_063),
            (63, 1, 1_064),
            (503, 1, 1_504),
            (504, 2, 1_536),
            (4_031, 2, 5_056),
            (4_032, 3, 5_120),
            (32_255, 3, 33_280),
            (32_256, 4, 36_864),
        ] {
            let at = fires(250, 1_000 * TICK_MS, timeout * TICK_MS);
            assert_eq!(at, slot * TICK_MS, "{timeout} ticks");
            let grain = TICK_MS << (3 * level);
            assert!(at.is_multiple_of(grain) && at - (1_000 + timeout) * TICK_MS <= grain, "{timeout} ticks");
        }
    }

    #[test]
    fn a_timer_that_expires_exactly_on_a_slot_fires_one_slot_later() {
        assert_eq!(fires(250, 0, 2_048), 2_048 + 256);
        assert_eq!(fires(250, 0, 2_047), 2_048 + 256, "2.047 s are 512 ticks");
        assert_eq!(fires(250, 0, 2_044), 2_048);
        assert_eq!(fires(1_000, 0, 1), 2);
    }

    #[test]
    fn timers_set_at_different_moments_fire_in_the_same_slot() {
        let wheel = [31_000, 31_200, 32_000, 32_700].map(|now| fires(250, now, 32_000));
        assert_eq!(wheel, [63_488, 63_488, 65_536, 65_536]);
    }

    #[test]
    fn timers_stay_in_sequence_with_fractional_ticks_and_timeouts_beyond_the_wheel() {
        assert_eq!(fires(300, 0, 10), 13, "four ticks of 3.33 ms");
        let wheel = Wheel::new(1_000).unwrap();
        assert_eq!(wheel.fires(Time::ZERO, Span::MAX), Time::MAX);
        assert!(Wheel::new(0).is_none());
    }
}
