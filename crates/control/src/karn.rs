//! The backoff that outlives its exchange (Karn's algorithm).

use crate::fine::Fine;

/// The longest backed-off timeout since the last unambiguous sample: Karn's algorithm (RFC 6298 §5.5).
///
/// A mechanism that uses only unambiguous samples needs this. Once the round-trip time exceeds the RTO, every exchange
/// is retransmitted, so without a kept backoff no sample would ever correct the RTO.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptBackoff(Fine);

impl KeptBackoff {
    pub(crate) const NONE: Self = Self(Fine::ZERO);

    /// Keeps `timeout` if it is longer than the backoff that is kept so far. Overlapping exchanges lose the same
    /// packets, so their backoffs are not added up.
    pub(crate) fn keep(&mut self, timeout: Fine) {
        self.0 = self.0.max(timeout);
    }

    pub(crate) fn kept(self) -> Option<Fine> {
        (self.0 > Fine::ZERO).then_some(self.0)
    }
}
