//! smoltcp's time.

use smoltcp::time::{Duration, Instant};

use crate::Time;

/// Simulated time as a connection is told it: stretched, so that smoltcp's timer constants come out longer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    percent: u64,
    /// A moment, µs, and what the clock showed then.
    since: u64,
    shown: u64,
}

impl Clock {
    /// A clock whose second lasts `percent` per cent of a true one.
    pub(super) fn new(percent: u16) -> Self {
        Self { percent: u64::from(percent.clamp(1, 10_000)), since: 0, shown: 0 }
    }

    /// Goes on from `now` at another pace.
    pub(super) fn set_percent(&mut self, now: Time, percent: u16) {
        let since = now.as_nanos() / 1_000;
        *self = Self { since, shown: self.shown(since), ..Self::new(percent) };
    }

    /// What the clock shows at `time`.
    pub(super) fn instant(self, time: Time) -> Instant {
        Instant::from_micros(i64::try_from(self.shown(time.as_nanos() / 1_000)).unwrap_or(i64::MAX))
    }

    /// The first moment at which the clock shows `instant`.
    pub(super) fn time(self, instant: Instant) -> Time {
        let shown = u64::try_from(instant.total_micros()).unwrap_or(0);
        let ahead = (u128::from(shown.saturating_sub(self.shown)) * u128::from(self.percent)).div_ceil(100);
        Time::from_nanos(
            self.since.saturating_add(u64::try_from(ahead).unwrap_or(u64::MAX)).saturating_mul(1_000),
        )
    }

    /// `us` true microseconds on the clock.
    pub(super) fn duration(self, us: u32) -> Duration {
        Duration::from_micros(self.shrink(u64::from(us)))
    }

    fn shown(self, us: u64) -> u64 {
        self.shown.saturating_add(self.shrink(us.saturating_sub(self.since)))
    }

    fn shrink(self, us: u64) -> u64 {
        (u128::from(us) * 100 / u128::from(self.percent)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_the_moment_that_a_deadline_names_the_deadline_has_come() {
        for percent in [1, 33, 100, 150, 200, 999] {
            let mut clock = Clock::new(percent);
            for us in [1, 999, 1_000_003, 60_000_000_001] {
                let deadline = clock.instant(Time::ZERO + us * 1_000) + Duration::from_micros(us);
                let time = clock.time(deadline);
                assert!(clock.instant(time) >= deadline, "{percent} {us}");
                assert!(clock.instant(Time::from_nanos(time.as_nanos() - 1)) < deadline, "{percent} {us}");
                clock.set_percent(Time::from_nanos(us * 1_000), percent + 7);
            }
        }
    }

    #[test]
    fn a_change_of_pace_neither_jumps_nor_turns_back() {
        let mut clock = Clock::new(200);
        assert_eq!(clock.instant(Time::from_secs(10)), Instant::from_secs(5));
        clock.set_percent(Time::from_secs(10), 100);
        assert_eq!(clock.instant(Time::from_secs(10)), Instant::from_secs(5));
        assert_eq!(clock.instant(Time::from_secs(12)), Instant::from_secs(7));
        assert_eq!(clock.time(Instant::from_secs(7)), Time::from_secs(12));
    }
}
