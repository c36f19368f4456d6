//! The memory that clients can make a server use, and the limits of tables that follow from it.

use std::sync::Arc;

use coapace_proto::Config;

use crate::stream::{Admission, Pool};

/// The memory of a destination with one observer, in bytes: the state of the mechanism, entries in tables, and space for the
/// tables to grow. `evidence/attacks/attack_observers.py` measures 800.
const PEER: usize = 1_024;

/// The memory of a remembered message with a short response, in bytes.
const REMEMBERED: usize = 256;

/// The memory of a connection, in bytes: buffers of TCP and TLS in this process, and the responses that every
/// connection may queue. The memory that connections share is not included.
const CONNECTION: usize = 128 << 10;

/// The file descriptors reserved for everything but connections.
const RESERVED: usize = 128;

/// The memory that clients can make the server use. It is a limit: nothing is reserved.
///
/// Each of these may use an eighth: peers and observers; messages remembered to recognise copies; DTLS sessions; connections
/// over TCP; the data queued on all connections. Bodies in blocks have [separate limits](crate::ServerConfig::bodies). The last
/// eighth is for the allocator and everything else.
///
/// Servers with clones of one budget share the limits of connections and of their queued data, whatever transports they serve.
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
        // An eighth of 1 MiB is one connection, the largest item.
        let memory = memory.max(1 << 20);
        Self { memory, admission: Arc::default(), pool: Arc::new(Pool::new(memory / 8)) }
    }

    /// Returns the memory that the server may use, in bytes.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// Returns `config` with the largest limits of peers, observers and remembered messages that this memory allows,
    /// for all endpoints of a server together.
    #[must_use]
    pub fn bound(&self, config: Config) -> Config {
        Config {
            max_peers: self.count(PEER),
            // `PEER` includes an observer.
            max_observers: self.count(PEER),
            max_deduplicated: self.count(REMEMBERED),
            ..config
        }
    }

    /// Returns the number of connections for which memory and file descriptors suffice.
    pub fn max_connections(&self) -> usize {
        // A process with fewer descriptors than the reserve shall serve some connections nevertheless.
        let descriptors = descriptors().saturating_sub(RESERVED).max(16);
        (self.count(CONNECTION) as usize).min(descriptors)
    }

    /// Returns how many items of `each` bytes fit in an eighth of the memory.
    pub(crate) fn count(&self, each: usize) -> u32 {
        // A bound of 0 would switch a table off, such as the one that recognises copies.
        u32::try_from(self.memory / 8 / each).unwrap_or(u32::MAX).max(1)
    }
}

/// Returns the number of file descriptors that the process may have open.
#[cfg(target_os = "linux")]
fn descriptors() -> usize {
    use nix::sys::resource::{Resource, getrlimit};
    // 1,024 is the usual limit, for a system that does not report its own.
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
    fn the_default_memory_budget_has_room_for_65536_peers_and_observers() {
        let config = Budget::default().bound(Config::default());
        assert_eq!((config.max_peers, config.max_observers), (131_072, 131_072));
        assert_eq!(config.max_deduplicated, 524_288);
    }

    #[test]
    fn bounds_of_tables_follow_from_the_memory_budget_and_are_at_least_one() {
        let config = Budget::new(64 << 20).bound(Config::default());
        assert_eq!(config.max_observers, 8_192);
        assert!(Budget::new(0).bound(Config::default()).max_peers >= 1);
    }
}
