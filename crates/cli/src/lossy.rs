//! Random losses, as in a bad network.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use coapace_net::{Datagram, Direction, Interceptor};

use crate::capture::DatagramCapture;

/// Drops a share of a client's datagrams in both directions. A capture contains everything that the client has
/// sent, dropped or not, and only what it receives: it looks like one taken between the client and a lossy network.
#[derive(Debug)]
pub(crate) struct Lossy {
    share: f64,
    state: AtomicU64,
    lost: AtomicU64,
    capture: Option<Arc<DatagramCapture>>,
}

impl Lossy {
    /// Drops a `share` in [0,1). Equal seeds drop the same datagrams.
    pub(crate) fn new(share: f64, seed: u64, capture: Option<Arc<DatagramCapture>>) -> Self {
        Self { share, state: AtomicU64::new(mix(seed)), lost: AtomicU64::new(0), capture }
    }

    /// Returns the number of datagrams dropped so far.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    fn loses(&self) -> bool {
        // SplitMix64's increment: 2⁶⁴ divided by the golden ratio.
        let drawn = mix(self.state.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed));
        let lost = ((drawn >> 11) as f64) < self.share * (1u64 << 53) as f64;
        self.lost.fetch_add(lost.into(), Ordering::Relaxed);
        lost
    }
}

impl Interceptor for Lossy {
    fn pass(&self, datagram: &Datagram<'_>) -> bool {
        let passes = !self.loses();
        if let Some(capture) = &self.capture
            && (passes || datagram.direction == Direction::Sent)
        {
            capture.pass(datagram);
        }
        passes
    }
}

/// Mixes the bits of a word like SplitMix64 (Steele, Lea, Flood 2014).
fn mix(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_lost_and_no_other() {
        for share in [0.0, 0.1, 0.5] {
            let lossy = Lossy::new(share, 1, None);
            let lost = (0..10_000).filter(|_| lossy.loses()).count();
            // Within four standard deviations.
            assert!(
                (lost as f64 - 1e4 * share).abs() <= 4.0 * (1e4 * share * (1.0 - share)).sqrt(),
                "{share}: {lost}"
            );
            assert_eq!(lossy.lost(), lost as u64);
        }
    }

    #[test]
    fn equal_seeds_lose_the_same_and_others_do_not() {
        let pattern = |seed| {
            let lossy = Lossy::new(0.5, seed, None);
            (0..64).map(|_| lossy.loses()).collect::<Vec<_>>()
        };
        assert_eq!(pattern(1), pattern(1));
        assert_ne!(pattern(1), pattern(2));
    }
}
