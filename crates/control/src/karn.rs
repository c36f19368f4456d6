//! A backoff that outlives its exchange.

use crate::fine::Fine;

/// The longest timeout that was backed off to since the last sample without ambiguity: Karn's algorithm (RFC 6298 §5.5).
/// Without it a mechanism that takes in strong samples alone never learns that the round-trip time has outgrown its RTO,
/// for then no exchange ends without a retransmission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptBackoff(Fine);

impl KeptBackoff {
    pub(crate) const NONE: Self = Self(Fine::ZERO);

    /// Exchanges that overlap lose the same packets: each backs off for itself, and the longest is kept.
    pub(crate) fn keep(&mut self, timeout: Fine) {
        self.0 = self.0.max(timeout);
    }

    pub(crate) fn kept(self) -> Option<Fine> {
        (self.0 > Fine::ZERO).then_some(self.0)
    }
}
