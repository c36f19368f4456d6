//! The clock: microseconds since the start, and an alarm.

use coapace_control::Instant;
use cortex_m::peripheral::SYST;
use cortex_m::peripheral::syst::SystClkSource;

use crate::board::{self, CLOCK_MHZ, Registers};

/// Registers of a CMSDK APB timer (technical reference manual of the Cortex-M System Design Kit, "APB timer").
mod timer {
    pub(super) const CTRL: usize = 0x0;
    pub(super) const VALUE: usize = 0x4;
    pub(super) const RELOAD: usize = 0x8;
    pub(super) const CTRL_ENABLE: u32 = 1;
}

/// The longest sleep: SysTick counts 24 bits, 0.67 s. The timer wraps after 172 s, so it is read often enough.
const LONGEST_SLEEP_US: u64 = ((1 << 24) - 1) / CLOCK_MHZ as u64;

/// A sleep that is not worth it: setting the alarm takes about as long.
const SHORTEST_SLEEP_US: u64 = 4;

/// A timer that runs freely, and SysTick as the alarm.
pub(crate) struct Clock {
    alarm: SYST,
    /// The value of the timer when it was last read. It counts down.
    last: u32,
    now_us: u64,
    /// The ticks since `now_us`, fewer than a microsecond has.
    rest: u32,
}

impl Clock {
    /// Starts the clock at zero.
    pub(crate) fn start(mut alarm: SYST) -> Self {
        Registers::TIMER.write(timer::RELOAD, u32::MAX);
        Registers::TIMER.write(timer::VALUE, u32::MAX);
        Registers::TIMER.write(timer::CTRL, timer::CTRL_ENABLE);
        alarm.set_clock_source(SystClkSource::Core);
        alarm.enable_interrupt();
        Self { alarm, last: u32::MAX, now_us: 0, rest: 0 }
    }

    /// Returns the time since the start.
    pub(crate) fn now(&mut self) -> Instant {
        let value = Registers::TIMER.read(timer::VALUE);
        let ticks = self.last.wrapping_sub(value) + self.rest;
        self.last = value;
        self.now_us += u64::from(ticks / CLOCK_MHZ);
        self.rest = ticks % CLOCK_MHZ;
        Instant::from_micros(self.now_us)
    }

    /// Sleeps until `deadline`, until the Ethernet controller has something to say, or for 0.67 s, whichever is first.
    pub(crate) fn sleep_until(&mut self, deadline: Option<Instant>) {
        let now = self.now();
        let left_us = deadline.map_or(LONGEST_SLEEP_US, |deadline| deadline.since(now).as_micros());
        if left_us < SHORTEST_SLEEP_US {
            return;
        }
        // The bound keeps the product below 2²⁴.
        self.alarm.set_reload(left_us.min(LONGEST_SLEEP_US) as u32 * CLOCK_MHZ);
        self.alarm.clear_current();
        self.alarm.enable_counter();
        board::sleep();
        self.alarm.disable_counter();
    }
}
