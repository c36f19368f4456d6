//! The memory that clients can make a server use, and the bounds that follow from it.

use std::sync::Arc;

use coapace_proto::Config;

use crate::stream::{Admission, Pool};

/// The bytes of a destination with one observer: the state of the mechanism, entries in tables, and room for the tables to
/// grow. `tests/attacks/attack_observers.py` measures 800.
const PEER: usize = 1_024;

/// The bytes of a message that is remembered with a short response.
const REMEMBERED: usize = 256;

/// The bytes of a connection that takes nothing of the common pool: buffers of TCP and TLS in this process, and the answers
/// that every connection may have queued.
const CONNECTION: usize = 128 << 10;

/// The file descriptors that are left for everything but connections.
const RESERVED: usize = 128;

/// The memory that clients can make a server use. It is a bound: nothing is reserved.
///
/// Each of these may take an eighth: peers and observers; messages remembered to recognise copies; DTLS sessions;
/// connections over TCP; the data that all connections have queued. Bodies in blocks have [bounds of their
/// own](crate::ServerConfig::bodies). The last eighth is for the allocator and the rest.
///
/// Servers with clones of one budget share the bounds of connections and of their queued data, whatever transports they
/// serve.
#[derive(Clone, Debug)]
pub struct Budget {
    memory: usize,
    pub(crate) admission: Arc<Admission>,
    pub(crate) pool: Arc<Pool>,
}

impl Default for Budget {
    /// Returns a budget of 1 GiB.
    fn default() -> Self {
        Self::new(1 << 30)
    }
}

impl Budget {
    /// Returns a budget of `memory` bytes, at least 1 MiB.
    pub fn new(memory: usize) -> Self {
        let memory = memory.max(1 << 20);
        Self { memory, admission: Arc::default(), pool: Arc::new(Pool::new(memory / 8)) }
    }

    /// Returns the memory, in bytes.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// Returns the configuration with the bounds of peers, observers and remembered messages that the memory allows to all
    /// endpoints of a server together.
    #[must_use]
    pub fn bound(&self, config: Config) -> Config {
        Config {
            max_peers: self.count(PEER),
            max_observers: self.count(PEER),
            max_deduplicated: self.count(REMEMBERED),
            ..config
        }
    }

    /// Returns the number of connections for which there are memory and file descriptors.
    pub fn max_connections(&self) -> usize {
        let descriptors = descriptors().saturating_sub(RESERVED).max(16);
        (self.count(CONNECTION) as usize).min(descriptors)
    }

    /// Returns the number of things of `each` bytes that an eighth of the memory has room for.
    pub(crate) fn count(&self, each: usize) -> u32 {
        u32::try_from(self.memory / 8 / each).unwrap_or(u32::MAX).max(1)
    }
}

/// Returns the number of file descriptors that the process may have open.
#[cfg(target_os = "linux")]
fn descriptors() -> usize {
    use nix::sys::resource::{Resource, getrlimit};
    getrlimit(Resource::RLIMIT_NOFILE).map_or(1_024, |(soft, _)| usize::try_from(soft).unwrap_or(usize::MAX))
}

#[cfg(not(target_os = "linux"))]
fn descriptors() -> usize {
    1_024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_has_room_for_65536_peers_and_observers_and_more() {
        let config = Budget::default().bound(Config::default());
        assert_eq!((config.max_peers, config.max_observers), (131_072, 131_072));
        assert_eq!(config.max_deduplicated, 524_288);
    }

    #[test]
    fn bounds_follow_from_the_memory_and_are_never_nothing() {
        let config = Budget::new(64 << 20).bound(Config::default());
        assert_eq!(config.max_observers, 8_192);
        assert!(Budget::new(0).bound(Config::default()).max_peers >= 1);
    }
}
