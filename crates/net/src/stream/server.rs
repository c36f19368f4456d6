//! The connections of a server: accepted on all cores, each a task of the core that took it.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use coapace_proto::block::{BERT, Bounds, Reassembly};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::PATIENCE;
use super::bytes::Bytes;
use super::connection::Connection;
use super::places::Place;
use super::talk::Talk;
use super::wire::{ByteStream, Wire};
use crate::address::{Remote, mapped};
#[cfg(feature = "tls")]
use crate::certificates::ServerTls;
use crate::clock::Clock;
use crate::identity::{Identity, Peer};
use crate::kept::Kept;
use crate::{Router, ServerConfig, log};

/// What the tasks of a server and its handles share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(super) closing: watch::Sender<bool>,
    counters: Mutex<TcpCounters>,
    /// Numbers connections, so that what is kept for one is not for the next from the same port.
    begun: AtomicU16,
}

/// Counts of what happens to connections over TCP, with or without TLS and WebSockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TcpCounters {
    /// Connections that were accepted.
    pub connections: u64,
    /// Of these, those of which nothing came because the handshake of TLS or the WebSocket failed.
    pub handshakes_failed: u64,
    /// Requests that arrived.
    pub requests: u64,
    /// Notifications that were sent to observers.
    pub notifications: u64,
    /// Connections ended because the peer did not keep to the protocol (RFC 8323 §5.6).
    pub aborted: u64,
    /// Connections closed because nothing came for [`ServerConfig::idle_timeout`].
    pub idle: u64,
    /// Connections closed because the client took nothing of what was sent to it for 30 s.
    pub stalled: u64,
    /// Connections that made room for others, because there were as many as there may be.
    pub evicted: u64,
    /// Registrations of observers that there was no room for: they were answered as if they had not asked to observe.
    pub observers_refused: u64,
    /// Handlers that panicked.
    pub panics: u64,
    /// Responses larger than the client takes, replaced by 5.00.
    pub too_large: u64,
}

impl Shared {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            closing: watch::Sender::new(false),
            counters: Mutex::default(),
            begun: AtomicU16::new(0),
        })
    }

    pub(crate) fn close(&self) {
        self.closing.send_replace(true);
    }

    pub(crate) fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }

    pub(crate) fn counters(&self) -> MutexGuard<'_, TcpCounters> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is between TCP and the messages of a server.
#[derive(Clone, Default)]
pub(crate) struct Acceptor {
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<ServerTls>,
    #[cfg(feature = "ws")]
    pub(crate) ws: bool,
}

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Acceptor")
    }
}

impl Acceptor {
    /// Returns the scheme of what is served.
    fn scheme(&self) -> &'static str {
        #[cfg(feature = "tls")]
        let tls = self.tls.is_some();
        #[cfg(not(feature = "tls"))]
        let tls = false;
        #[cfg(feature = "ws")]
        let ws = self.ws;
        #[cfg(not(feature = "ws"))]
        let ws = false;
        match (tls, ws) {
            (false, false) => "coap+tcp",
            (true, false) => "coaps+tcp",
            (false, true) => "coap+ws",
            (true, true) => "coaps+ws",
        }
    }

    async fn accept(&self, stream: TcpStream) -> io::Result<(Box<dyn Wire>, Option<Arc<Identity>>)> {
        // Messages are whole; to wait for more of them helps nobody.
        let _ = stream.set_nodelay(true);
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let _ = socket2::SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT);
        #[cfg(feature = "tls")]
        let (stream, identity): (Box<dyn ByteStream>, _) = match &self.tls {
            None => (Box::new(stream), None),
            Some(tls) => {
                let stream = tls.acceptor().accept(stream).await?;
                let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
                let certificate = shown.and_then(|shown| crate::Certificate::read(shown));
                (Box::new(stream), certificate.map(Identity::Certificate).map(Arc::new))
            }
        };
        #[cfg(not(feature = "tls"))]
        let (stream, identity): (Box<dyn ByteStream>, _) = (Box::new(stream), None);
        #[cfg(feature = "ws")]
        if self.ws {
            return Ok((Box::new(super::frames::Frames::accept(stream).await?), identity));
        }
        Ok((Box::new(Bytes::new(stream)), identity))
    }
}

/// Bytes of a connection that may wait in the kernel beyond what TCP has under way. The kernel would take megabytes for a
/// client that does not read: memory that no budget counts, and notifications that are old when they arrive.
#[cfg(any(target_os = "linux", target_os = "android"))]
const UNSENT: u32 = 32 << 10;

/// What the connections of one core share.
pub(super) struct Core {
    pub(super) router: Mutex<Router>,
    pub(super) bodies: Mutex<Bodies>,
    pub(super) config: ServerConfig,
    /// The scheme of its URIs.
    pub(super) transport: &'static str,
    pub(super) clock: Clock,
    pub(super) shared: Arc<Shared>,
}

/// Bodies that are not complete: of requests, and responses of which clients have only the first blocks.
pub(super) struct Bodies {
    pub(super) requests: Reassembly<Remote>,
    pub(super) responses: Kept,
}

/// Accepts connections until the server is closed; those that are there may then end, for a while.
///
/// # Errors
/// If the runtime cannot watch the socket.
pub(crate) async fn serve(
    listener: std::net::TcpListener,
    acceptor: Acceptor,
    router: Router,
    config: ServerConfig,
    shared: Arc<Shared>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut connections = JoinSet::new();
    let mut closing = shared.closing.subscribe();
    let bounds = Bounds { max_szx: BERT, ..config.bodies };
    let bodies = Bodies { requests: Reassembly::new(bounds), responses: Kept::new(bounds) };
    let (router, bodies, clock) = (router.into(), bodies.into(), Clock::start());
    let core = Arc::new(Core {
        router,
        bodies,
        config,
        transport: acceptor.scheme(),
        clock,
        shared: shared.clone(),
    });
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, from)) => {
                    shared.counters().connections += 1;
                    let bound = core.config.max_connections.min(core.config.budget.max_connections());
                    let table = &core.config.budget.places;
                    let (place, full) = table.enter(mapped(from.ip()), bound);
                    connections.spawn(begin(core.clone(), acceptor.clone(), stream, from, place));
                    if full {
                        // The one that makes room is to close its descriptor before the next one is taken.
                        tokio::task::yield_now().await;
                    }
                }
                // Out of descriptors, perhaps: not to be asked again at once.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            () = closed(&mut closing) => break,
        }
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    let rest = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(core.config.shutdown_timeout, rest).await;
    Ok(())
}

/// Ends when the server is to.
pub(super) async fn closed(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}

/// A connection, from its first byte on.
async fn begin(core: Arc<Core>, acceptor: Acceptor, stream: TcpStream, from: SocketAddr, place: Place) {
    let accepted = tokio::select! {
        accepted = timeout(PATIENCE, acceptor.accept(stream)) => accepted,
        () = place.left() => {
            core.shared.counters().evicted += 1;
            return;
        }
    };
    let accepted = accepted.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let (wire, identity) = match accepted {
        Ok(accepted) => accepted,
        Err(error) => {
            core.shared.counters().handshakes_failed += 1;
            return log::handshake_failed(core.transport, from, None, &error);
        }
    };
    if core.transport != "coap+tcp" {
        log::handshake(core.transport, from, identity.as_deref());
    }
    let number = core.shared.begun.fetch_add(1, Ordering::Relaxed);
    let remote = Remote::new(mapped(from.ip()), from.port(), number);
    Talk::new(core, Connection::new(wire), Peer { remote, identity }, place).run().await;
}

/// A socket that listens.
///
/// # Errors
/// Those of the system.
pub(crate) fn listen(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let domain = socket2::Domain::for_address(address);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // A server that starts again need not wait for connections of the last one.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(1_024)?;
    Ok(socket.into())
}
