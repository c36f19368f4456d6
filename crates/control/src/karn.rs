//! The backoff that outlives its exchange.

use crate::fine::Fine;

/// The longest timeout that was backed off to since the last unambiguous sample: Karn's algorithm (RFC 6298 §5.5).
///
/// A mechanism that takes unambiguous samples alone needs it. Once the round-trip time has outgrown the RTO, every exchange
/// is retransmitted, so no sample would ever correct the RTO.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptBackoff(Fine);

impl KeptBackoff {
    pub(crate) const NONE: Self = Self(Fine::ZERO);

    /// Keeps `timeout` if it is the longest. Exchanges that overlap lose the same packets, so their backoffs do not add up.
    pub(crate) fn keep(&mut self, timeout: Fine) {
        self.0 = self.0.max(timeout);
    }

    pub(crate) fn kept(self) -> Option<Fine> {
        (self.0 > Fine::ZERO).then_some(self.0)
    }
}
