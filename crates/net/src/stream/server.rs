//! The connections of a server. Each thread accepts some connections, and serves each in a task.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use coapace_proto::block::{BERT, Bounds};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::PATIENCE;
use super::admission::Admitted;
use super::connection::Connection;
use super::shared::{Core, StreamServer};
use super::talk::ServedConnection;
use crate::address::{Remote, mapped};
use crate::clock::Clock;
use crate::conversation::TransferBodies;
use crate::identity::IdentifiedPeer;
use crate::{Router, ServerConfig, log};

/// Accepts connections until the server is closed. Open connections then get
/// [`shutdown_timeout`](ServerConfig::shutdown_timeout) to end.
pub(crate) async fn serve(
    listener: std::net::TcpListener,
    router: Router,
    config: ServerConfig,
    shared: Arc<StreamServer>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut connections = JoinSet::new();
    let mut closing = pin!(shared.closing.begun());
    // A block over a connection may be as large as a message (BERT, RFC 8323 §6).
    let bounds = Bounds { max_szx: BERT, ..config.bodies };
    let core = Arc::new(Core {
        router: router.into(),
        bodies: TransferBodies::new(bounds).into(),
        config,
        transport: shared.acceptor.scheme(),
        clock: Clock::start(),
        shared: shared.clone(),
    });
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, from)) => {
                    shared.counters().connections += 1;
                    let bound = core.config.max_connections.min(core.config.budget.max_connections());
                    let table = &core.config.budget.admission;
                    let (admitted, full) = table.enter(mapped(from.ip()), bound);
                    connections.spawn(begin(core.clone(), stream, from, admitted));
                    if full {
                        // The connection that is ended closes its descriptor before the next is accepted.
                        tokio::task::yield_now().await;
                    }
                }
                // There may be no descriptors left, so the next attempt waits.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            () = &mut closing => break,
        }
        // Connections that have ended are removed, so that the set does not grow.
        while connections.try_join_next().is_some() {}
    }
    // The port is free for another server while the last connections end.
    drop(listener);
    let rest = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(core.config.shutdown_timeout, rest).await;
    Ok(())
}

/// Serves a connection, from its first byte on.
async fn begin(core: Arc<Core>, stream: TcpStream, from: SocketAddr, admitted: Admitted) {
    let accepted = tokio::select! {
        accepted = timeout(PATIENCE, core.shared.acceptor.accept(stream)) => accepted,
        () = admitted.left() => {
            core.shared.counters().evicted += 1;
            *core.shared.stopped() = Some(from);
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
    // Plain TCP has no handshake of its own.
    if core.transport != "coap+tcp" {
        log::handshake(core.transport, from, identity.as_deref());
    }
    let number = core.shared.begun.fetch_add(1, Ordering::Relaxed);
    let remote = Remote::new(mapped(from.ip()), from.port(), number);
    ServedConnection::new(core, Connection::new(wire), IdentifiedPeer { remote, identity }, admitted)
        .run()
        .await;
}

/// Returns a socket that listens.
pub(crate) fn listen(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let domain = socket2::Domain::for_address(address);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // A restarted server need not wait for the old connections to leave TIME_WAIT.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(1_024)?;
    Ok(socket.into())
}
