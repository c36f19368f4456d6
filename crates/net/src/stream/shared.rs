//! The state that the connections of a server share.

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

/// The state that the tasks and handles of a server share.
#[derive(Debug, Default)]
pub(crate) struct StreamServer {
    pub(crate) acceptor: Acceptor,
    pub(crate) closing: Closing,
    counters: Mutex<TcpCounters>,
    /// The last peer that a bound has stopped.
    stopped: Mutex<Option<SocketAddr>>,
    /// The number of connections so far. The next connection from the same port thus has another name, and cannot get the
    /// rest of a response to the last.
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

/// The state that the connections of one core share.
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
        let mut router = lock(&self.router);
        router.call(peer.clone(), request)
    }
}
