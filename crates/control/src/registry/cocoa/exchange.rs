//! The state of one exchange, shared by all variants of CoCoA.

use crate::fine::Fine;
use crate::{Duration, Instant, Ratio};

/// State of [`Cocoa`](super::Cocoa) for one exchange.
#[derive(Clone, Copy, Debug)]
pub struct CocoaExchange {
    pub(super) timeout: Fine,
    /// The duration that is multiplied by the backoff factor to make the next timeout: `timeout`, or the timeout before
    /// dither if every timeout is dithered.
    pub(super) base: Fine,
    /// The time of the first transmission, in microseconds modulo 2⁴⁰ (12 days). Zero if only acknowledgements are
    /// samples, because then the caller passes the elapsed time.
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

    /// Counts a retransmission, for exchanges that may be a sample without an acknowledgement.
    pub(crate) fn count(&mut self) {
        self.retransmits = self.retransmits.saturating_add(1);
    }

    /// Returns the time since the first transmission.
    pub(crate) fn elapsed(&self, now: Instant) -> Duration {
        // The difference is right modulo 2⁴⁰, even if the time has wrapped since the start.
        Duration::from_micros(Fine::fitting(now.as_micros().wrapping_sub(self.began.units())).units())
    }

    /// Makes the next timeout `factor` times as long, up to `bound`, but never shorter than the current timeout.
    pub(crate) fn back_off(&mut self, factor: Ratio, bound: Fine) {
        self.base = self.base.max(self.base.by(factor).min(bound));
        self.timeout = self.base;
    }

    /// Sets the next timeout, which may be shorter than the current one.
    pub(crate) fn wait_for(&mut self, timeout: Fine) {
        (self.base, self.timeout) = (timeout, timeout);
    }
}
