//! The state of one exchange, which the relatives of CoCoA share.

use crate::fine::Fine;
use crate::{Duration, Instant, Ratio};

/// State of [`Cocoa`](super::Cocoa) for one exchange.
#[derive(Clone, Copy, Debug)]
pub struct CocoaExchange {
    pub(super) timeout: Fine,
    /// The span that the next timeout is backed off from: `timeout`, without its dither where each timeout is dithered.
    pub(super) base: Fine,
    /// The moment of the first transmission, in microseconds modulo 2⁴⁰ (12 days). Zero where only acknowledgements are
    /// samples, because they bring their time with them.
    pub(super) began: Fine,
    pub(super) factor: Ratio,
    pub(super) retransmits: u8,
}

impl CocoaExchange {
    /// Returns the state of an exchange that waits for `timeout` after its first transmission.
    pub(crate) fn waiting(timeout: Fine) -> Self {
        Self { timeout, base: timeout, began: Fine::ZERO, factor: Ratio::new(1, 1), retransmits: 0 }
    }

    pub(crate) fn timeout(&self) -> Fine {
        self.timeout
    }

    /// Counts a retransmission, for samples that no acknowledgement brings.
    pub(crate) fn count(&mut self) {
        self.retransmits = self.retransmits.saturating_add(1);
    }

    /// Returns the time since the first transmission.
    pub(crate) fn elapsed(&self, now: Instant) -> Duration {
        Duration::from_micros(Fine::fitting(now.as_micros().wrapping_sub(self.began.units())).units())
    }

    /// Makes the next timeout `factor` times as long, up to `bound`. It is never shorter than this one.
    pub(crate) fn back_off(&mut self, factor: Ratio, bound: Fine) {
        self.base = self.base.max(self.base.by(factor).min(bound));
        self.timeout = self.base;
    }

    /// Sets the next timeout, which may be shorter.
    pub(crate) fn wait_for(&mut self, timeout: Fine) {
        (self.base, self.timeout) = (timeout, timeout);
    }
}
