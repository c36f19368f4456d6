//! Detection of relays that point at each other: a datagram of another protocol, such as DTLS, comes
//! back.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;

use coapace_control::{Duration, Instant};

/// The number of datagrams that are remembered.
const MOST: usize = 256;

/// The time for which a datagram is remembered. A loop returns it sooner, and no two DTLS records are equal.
const AGE: Duration = Duration::from_secs(2);

/// The recently forwarded datagrams, each with its source.
#[derive(Debug, Default)]
pub(crate) struct Loops {
    recent: VecDeque<(Instant, u64, SocketAddr)>,
}

impl Loops {
    /// Returns whether another source has recently sent these bytes, and remembers them.
    pub(crate) fn comes_back(&mut self, now: Instant, source: SocketAddr, bytes: &[u8]) -> bool {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let hash = hasher.finish();
        // The list is sorted by arrival, so the front is the oldest.
        while let Some(&(at, ..)) = self.recent.front()
            && (self.recent.len() >= MOST || now.since(at) > AGE)
        {
            self.recent.pop_front();
        }
        // A network may double a datagram of one source. In a loop, the second one comes from the port of another relay.
        let back = self.recent.iter().any(|&(_, known, from)| known == hash && from != source);
        if !back {
            self.recent.push_back((now, hash, source));
        }
        back
    }
}
