//! Datagrams of other protocols that come back, because relays point at each other.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;

use coapace_control::{Duration, Instant};

/// The number of datagrams that are remembered.
const MOST: usize = 256;

/// The time for which a datagram is remembered. A loop is faster, and no two records of DTLS are alike.
const AGE: Duration = Duration::from_secs(2);

/// The datagrams that passed lately, each with its source.
#[derive(Debug, Default)]
pub(super) struct Loops {
    recent: VecDeque<(Instant, u64, SocketAddr)>,
}

impl Loops {
    /// Returns whether another source has sent these bytes lately. Remembers them.
    pub(super) fn comes_back(&mut self, now: Instant, source: SocketAddr, bytes: &[u8]) -> bool {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let hash = hasher.finish();
        while let Some(&(at, ..)) = self.recent.front()
            && (self.recent.len() >= MOST || now.since(at) > AGE)
        {
            self.recent.pop_front();
        }
        let back = self.recent.iter().any(|&(_, known, from)| known == hash && from != source);
        if !back {
            self.recent.push_back((now, hash, source));
        }
        back
    }
}
