//! Artificial random losses.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use coapace_net::{Datagram, Direction, Interceptor};

use crate::capture::DatagramCapture;

/// Drops a share of a client's datagrams in both directions. A capture contains every datagram that the client has sent,
/// dropped or not, and only those that it receives, as if taken between the client and a lossy network.
#[derive(Debug)]
pub(crate) struct Lossy {
    share: f64,
    state: AtomicU64,
    lost: AtomicU64,
    capture: Option<Arc<DatagramCapture>>,
}

impl Lossy {
    /// Returns an interceptor that drops a `share` of the datagrams, in [0,1). Equal seeds drop the same datagrams.
    pub(crate) fn new(share: f64, seed: u64, capture: Option<Arc<DatagramCapture>>) -> Self {
        Self { share, state: AtomicU64::new(mix(seed)), lost: AtomicU64::new(0), capture }
    }

    /// Returns the number of datagrams dropped.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    fn loses(&self) -> bool {
        // SplitMix64's increment: 2⁶⁴ divided by the golden ratio.
        let drawn = mix(self.state.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed));
        // 53 bits are the precision of an f64.
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
    // The shifts and factors are Stafford's variant 13 of the finalizer of MurmurHash3.
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_share_of_datagrams_is_lost() {
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
    fn equal_seeds_lose_the_same_datagrams_and_different_seeds_do_not() {
        let pattern = |seed| {
            let lossy = Lossy::new(0.5, seed, None);
            (0..64).map(|_| lossy.loses()).collect::<Vec<_>>()
        };
        assert_eq!(pattern(1), pattern(1));
        assert_ne!(pattern(1), pattern(2));
    }
}
