//! The state shared by the connections of a server.

use std::net::SocketAddr;
use std::sync::atomic::AtomicU16;
use std::sync::{Arc, Mutex, MutexGuard};

use coapace_proto::Message;

use super::acceptor::Acceptor;
use crate::clock::Clock;
use crate::closing::Closing;
use crate::conversation::TransferBodies;
use crate::handler::Called;
use crate::identity::IdentifiedPeer;
use crate::lock::lock;
use crate::{Router, ServerConfig, TcpCounters};

/// The state shared by the tasks and handles of a server.
#[derive(Debug, Default)]
pub(crate) struct StreamServer {
    pub(crate) acceptor: Acceptor,
    pub(crate) closing: Closing,
    counters: Mutex<TcpCounters>,
    /// The last peer whose connection the server aborted or evicted, or which it refused an observation,
    /// since the last report.
    stopped: Mutex<Option<SocketAddr>>,
    /// The number of connections so far. This number distinguishes a later connection from the same port, which must
    /// not get the rest of a response to the earlier one.
    pub(super) begun: AtomicU16,
}

impl StreamServer {
    pub(crate) fn new(acceptor: Acceptor) -> Self {
        Self { acceptor, ..Self::default() }
    }

    pub(crate) fn counters(&self) -> MutexGuard<'_, TcpCounters> {
        lock(&self.counters)
    }

    pub(crate) fn stopped(&self) -> MutexGuard<'_, Option<SocketAddr>> {
        lock(&self.stopped)
    }
}

/// The state shared by the connections of one thread.
pub(super) struct Core {
    pub(super) router: Mutex<Router>,
    pub(super) bodies: Mutex<TransferBodies>,
    pub(super) config: ServerConfig,
    /// The scheme of the server's URIs.
    pub(super) transport: &'static str,
    pub(super) clock: Clock,
    pub(super) shared: Arc<StreamServer>,
}

impl Core {
    pub(super) fn bodies(&self) -> MutexGuard<'_, TransferBodies> {
        lock(&self.bodies)
    }

    pub(super) fn call(&self, peer: &IdentifiedPeer, request: &Message<'_>) -> Called {
        // Only the tasks of one thread use this router, and they do not wait while they hold the lock.
        let mut router = lock(&self.router);
        router.call(peer.clone(), request)
    }
}
