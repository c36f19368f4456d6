//! The connections of a server. Each core accepts some, and serves each in a task.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use coapace_proto::block::{BERT, Bounds};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::PATIENCE;
use super::admission::Admitted;
use super::bytes::ByteWire;
use super::connection::Connection;
use super::shared::{Core, StreamServer, closed};
use super::talk::Talk;
use super::wire::{ByteStream, Wire};
use crate::address::{Remote, mapped};
use crate::clock::Clock;
use crate::conversation::Bodies;
use crate::identity::{Identity, Peer};
use crate::secure::ServerTls;
use crate::{Router, ServerConfig, log};

/// The layers between TCP and the messages of a server: TLS, WebSocket, both or none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acceptor {
    pub(crate) tls: Option<ServerTls>,
    pub(crate) ws: bool,
}

impl Acceptor {
    /// Returns the scheme of what is served.
    fn scheme(&self) -> &'static str {
        match (self.tls.is_some(), self.ws) {
            (false, false) => "coap+tcp",
            (true, false) => "coaps+tcp",
            (false, true) => "coap+ws",
            (true, true) => "coaps+ws",
        }
    }

    async fn accept(&self, stream: TcpStream) -> io::Result<(Box<dyn Wire>, Option<Arc<Identity>>)> {
        // Each message is written at once, so Nagle's algorithm would only delay it.
        let _ = stream.set_nodelay(true);
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let _ = socket2::SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT);
        let (stream, identity): (Box<dyn ByteStream>, _) = match &self.tls {
            None => (Box::new(stream), None),
            Some(tls) => tls.accept(stream).await?,
        };
        if self.ws {
            return Ok((Box::new(super::websocket::WebSocketWire::accept(stream).await?), identity));
        }
        Ok((Box::new(ByteWire::new(stream)), identity))
    }
}

/// The bytes of a connection that may wait in the kernel before TCP sends them. Otherwise the kernel would queue megabytes
/// for a client that does not read, which no budget counts, and notifications would be old when they arrive.
#[cfg(any(target_os = "linux", target_os = "android"))]
const UNSENT: u32 = 32 << 10;

/// Accepts connections until the server is closed. Open connections then get
/// [`shutdown_timeout`](ServerConfig::shutdown_timeout) to end.
pub(crate) async fn serve(
    listener: std::net::TcpListener,
    acceptor: Acceptor,
    router: Router,
    config: ServerConfig,
    shared: Arc<StreamServer>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut connections = JoinSet::new();
    let mut closing = shared.closing.subscribe();
    let bounds = Bounds { max_szx: BERT, ..config.bodies };
    let core = Arc::new(Core {
        router: router.into(),
        bodies: Bodies::new(bounds).into(),
        config,
        transport: acceptor.scheme(),
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
                    connections.spawn(begin(core.clone(), acceptor.clone(), stream, from, admitted));
                    if full {
                        // The connection that is ended closes its descriptor before the next is accepted.
                        tokio::task::yield_now().await;
                    }
                }
                // There may be no descriptors left, so the next attempt waits.
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

/// Serves a connection, from its first byte on.
async fn begin(core: Arc<Core>, acceptor: Acceptor, stream: TcpStream, from: SocketAddr, admitted: Admitted) {
    let accepted = tokio::select! {
        accepted = timeout(PATIENCE, acceptor.accept(stream)) => accepted,
        () = admitted.left() => {
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
    Talk::new(core, Connection::new(wire), Peer { remote, identity }, admitted).run().await;
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
