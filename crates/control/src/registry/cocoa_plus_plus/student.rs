//! The implementation of CoCoA++ for Contiki: er-cocoa with a backoff factor that delay gradients choose.

use super::CocoaPlusPlus;
use crate::registry::cocoa::{CocoaExchange, CocoaState};
use crate::{Controller, Cue, Draw, Duration, Gauges, Outcome, Ratio};

/// State of the implementation for Contiki for one destination.
#[derive(Clone, Copy, Debug)]
pub(super) struct Student {
    cocoa: CocoaState,
    /// The smallest sample of the open group in microseconds; zero if the group has no sample.
    least: [u8; 4],
    /// The smallest sample of the last closed group in microseconds. It is also the sum of all gradients so far: the
    /// published code adds up all changes of the smallest sample, which begin at zero.
    closed: [u8; 4],
    /// The number of samples in the open group.
    samples: u8,
    /// The number of closed groups.
    groups: u8,
}

/// The number of samples in a group. The value of the last sample is ignored: it only closes the group.
const GROUP: u8 = 5;
/// The mean gradient, in microseconds, that counts as one step in [`PERCENT`]: 300 ticks of 1/128 s.
const STEP_US: u32 = 2_343_750;
/// The probability of a rise in percent after x steps: ⌊100·(1 − e^(−x))⌋ for x = 0, 1, 2 …
const PERCENT: [u8; 6] = [0, 63, 86, 95, 98, 99];

impl Student {
    pub(super) fn new(mechanism: &CocoaPlusPlus) -> Self {
        let cocoa = mechanism.er_cocoa().state();
        Self { cocoa, least: [0; 4], closed: [0; 4], samples: 0, groups: 0 }
    }

    pub(super) fn on_start(&mut self, mechanism: &CocoaPlusPlus, cue: Cue) -> (CocoaExchange, Duration) {
        mechanism.er_cocoa().on_start(&mut self.cocoa, cue)
    }

    pub(super) fn on_end(
        &mut self,
        mechanism: &CocoaPlusPlus,
        exchange: CocoaExchange,
        outcome: Outcome,
        cue: Cue,
    ) {
        mechanism.er_cocoa().on_end(&mut self.cocoa, exchange, outcome, cue);
        match outcome {
            Outcome::Acked(sample) => self.count(sample.since_first),
            // er-cocoa takes both as samples, too.
            Outcome::Reset | Outcome::GivenUp => self.count(exchange.elapsed(cue.now)),
            Outcome::Cancelled => {}
        }
    }

    pub(super) fn gauges(&self, mechanism: &CocoaPlusPlus) -> Gauges {
        mechanism.er_cocoa().gauges(&self.cocoa)
    }

    /// Returns the factor from this timeout to the next: `up` if `draw` is below the probability of the gradient, else
    /// `down`.
    pub(super) fn factor(&self, mechanism: &CocoaPlusPlus, draw: Draw) -> Ratio {
        let mean = u32::from_le_bytes(self.closed) / u32::from(self.groups.max(1));
        let steps = (mean / STEP_US).min(PERCENT.len() as u32 - 1);
        // This is 0 to 99, so a table entry of 63 wins 63 times in a hundred.
        let percent = (u64::from(draw.to_bits()) * 100) >> 32;
        if u64::from(PERCENT[steps as usize]) > percent { mechanism.up } else { mechanism.down }
    }

    fn count(&mut self, rtt: Duration) {
        self.samples += 1;
        if self.samples == GROUP {
            self.closed = self.least;
            self.least = [0; 4];
            self.samples = 0;
            self.groups = self.groups.saturating_add(1);
            return;
        }
        // Zero marks a group without a sample.
        let us = u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX).max(1);
        let least = u32::from_le_bytes(self.least);
        self.least = if least == 0 { us } else { least.min(us) }.to_le_bytes();
    }
}
