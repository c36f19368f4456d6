//! A server: one endpoint for each core, on one port.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use coapace_control::Mechanism;
use coapace_proto::block::Bounds;
use coapace_proto::{Config, Setup};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::answers::Verify;
use crate::carrier::Carrier;
#[cfg(feature = "tls")]
use crate::certificates::ServerTls;
use crate::driver::Driver;
use crate::hub::Hub;
use crate::limits::{self, Limits};
use crate::serving::Serving;
use crate::socket::{Socket, Use};
#[cfg(feature = "tcp")]
use crate::stream::{Acceptor, Shared};
use crate::{Budget, Membership, Metrics, Profile, Router, Stats, Tap};

/// What a server is set up with.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The memory that clients can make it take. It bounds connections and DTLS sessions, and what waits for them.
    pub budget: Budget,
    /// The mechanism of its own exchanges (separate responses and notifications), and the bounds of its endpoints.
    /// Peers, observers and remembered messages are those of all endpoints together, of which each has an equal share;
    /// the other bounds are each one's own. [`Budget::bound`] sets what follows from the memory.
    pub profile: Profile,
    /// Endpoints, each with a thread and a socket of its own; the system spreads the clients over them. As many as the
    /// process has cores, unless set.
    pub cores: usize,
    /// Handlers of one endpoint that may wait for something at once. One more is dropped where it would begin to wait,
    /// and its request answered 5.03. A resource may have as many of these places as are left free, so that one of which
    /// the handlers wait for long leaves room for others; clients that have not shown an Echo option may have half as many
    /// there, and are asked for it beyond.
    pub max_pending: u32,
    /// How long a handler may take until its request is acknowledged and the response becomes a separate one (RFC 7252
    /// §5.2.2). To be well below ACK_TIMEOUT, which is 2 s.
    pub acknowledge_after: Duration,
    /// What Max-Age a 5.03 has, in whole seconds: when the client may try again.
    pub retry_after: Duration,
    /// Connections of a server over TCP, TLS and WebSockets, over all cores, if the [`budget`](Self::budget) does not bound
    /// them before. One more, and one of the address that has most makes room: one that has not begun or is idle, and of
    /// these the one that was not heard of for longest.
    pub max_connections: usize,
    /// How long such a connection may be silent until it is released. One with observers is pinged first, and released
    /// when it stays silent once more as long.
    pub idle_timeout: Duration,
    /// Groups that a server over UDP joins. It has to be bound to every address, and on Linux. Of what comes to a group,
    /// non-confirmable requests are answered, with what has a payload and is no error, after a moment (RFC 7252 §8); it
    /// observes nothing. What is larger than the client [may be sent](Verify) is its first block.
    pub groups: Vec<Membership>,
    /// DEFAULT_LEISURE: the span from which that moment is drawn (RFC 7252 §8.2). 5 s, unless set.
    pub leisure: Duration,
    /// Responses that may wait for their moment. One more is dropped; shutting down drops all.
    pub max_delayed: usize,
    /// Bodies larger than a block, in each endpoint: those of requests that are not complete, as many again of responses
    /// of which the client has not asked for the last block, and the largest block. 256 bodies of at most 1 MiB, 8 MiB
    /// in all, unless set. A response that there is no room for costs a GET another call of the handler for each block,
    /// and ends with 4.08 after other methods.
    pub bodies: Bounds,
    /// Who has to show that its address is its own before it is sent large responses.
    pub verify: Verify,
    /// How long handlers and separate responses may go on when the server shuts down.
    pub shutdown_timeout: Duration,
    /// What watches its datagrams, on all cores. With it datagrams leave one for each call of the system.
    pub tap: Option<Arc<dyn Tap>>,
}

impl Default for ServerConfig {
    fn default() -> Self {
        let (budget, mut profile) = (Budget::default(), Profile::default());
        profile.config = budget.bound(profile.config);
        Self {
            budget,
            profile,
            cores: thread::available_parallelism().map_or(1, usize::from),
            max_pending: 1_024,
            acknowledge_after: Duration::from_millis(200),
            retry_after: Duration::from_secs(5),
            max_connections: usize::MAX,
            idle_timeout: Duration::from_secs(15 * 60),
            groups: Vec::new(),
            leisure: coapace_proto::group::DEFAULT_LEISURE.into(),
            max_delayed: 256,
            bodies: Bounds { max_bodies: 256, max_body: 1 << 20, max_bytes: 8 << 20, ..Bounds::default() },
            verify: Verify::default(),
            shutdown_timeout: Duration::from_secs(10),
            tap: None,
        }
    }
}

impl ServerConfig {
    /// What each endpoint is set up with.
    pub(crate) fn of_each_core(&self) -> Setup<Mechanism> {
        let Profile { mechanism, config } = self.profile;
        let cores = u32::try_from(self.cores.max(1)).unwrap_or(u32::MAX);
        let config = Config {
            max_peers: config.max_peers.div_ceil(cores),
            max_observers: config.max_observers.div_ceil(cores),
            max_deduplicated: config.max_deduplicated.div_ceil(cores),
            ..config
        };
        Setup { controller: mechanism, config }
    }
}

/// A server that is bound, and will answer once it is told with what.
///
/// ```no_run
/// use coapace_net::{Rejection, Request, Response, Router, Server};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// async fn temperature(_: Request) -> Result<Response, Rejection> {
///     Ok(Response::content("21.5"))
/// }
///
/// Server::bind("[::]:5683")?.serve(Router::new().get("/temperature", temperature)).await
/// # }
/// ```
#[derive(Debug)]
pub struct Server {
    config: ServerConfig,
    hubs: Vec<Arc<Hub>>,
    #[cfg(feature = "tcp")]
    tcp: Option<(std::net::TcpListener, Acceptor, Arc<Shared>)>,
}

impl Server {
    /// Binds to an address, with the configuration that is the default. `[::]` is every address of the host, of IPv4
    /// as well.
    ///
    /// # Errors
    /// Those of the system: the address is in use, or not the host's.
    pub fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        Self::bind_with(address, ServerConfig::default())
    }

    /// Binds to the first of the addresses that can be had, and joins the groups.
    ///
    /// # Errors
    /// Those of the system for the last of them, or [`NotJoined`](crate::NotJoined) inside of one.
    pub fn bind_with(address: impl ToSocketAddrs, config: ServerConfig) -> io::Result<Self> {
        let groups = config.groups.clone();
        Self::bind_hubs(address, config, &groups, |socket, setup| Ok(Hub::new(socket, setup)))
    }

    /// Binds to the first of the addresses that can be had, to serve `coaps` there. The port is 5684 by default (RFC
    /// 7252 §6.2). Where the host has several addresses, bind to one: at `[::]` the system chooses which of them a
    /// record leaves from.
    ///
    /// # Errors
    /// Those of the system for the last of them, or [`InvalidInput`](io::ErrorKind::InvalidInput) if `dtls` is a
    /// client's.
    #[cfg(feature = "dtls")]
    pub fn bind_dtls(
        address: impl ToSocketAddrs,
        config: ServerConfig,
        dtls: &crate::Dtls,
    ) -> io::Result<Self> {
        if !dtls.is_server() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the keys of a client cannot serve"));
        }
        let dtls = dtls.clone().at_most(config.budget.max_sessions().div_ceil(config.cores.max(1)));
        Self::bind_hubs(address, config, &[], |socket, setup| Hub::secured(socket, setup, &dtls))
    }

    /// Binds to the first of the addresses that can be had, to serve `coap+tcp` there (RFC 8323). Of the configuration,
    /// what concerns mechanisms and messages means nothing here. Each core accepts connections, and answers them.
    ///
    /// # Errors
    /// Those of the system for the last of them.
    #[cfg(feature = "tcp")]
    pub fn bind_tcp(address: impl ToSocketAddrs, config: ServerConfig) -> io::Result<Self> {
        Self::bind_stream(address, config, Acceptor::default())
    }

    /// Binds to the first of the addresses that can be had, to serve `coaps+tcp` there (RFC 8323 §8.2). The port is 5684
    /// by default.
    ///
    /// # Errors
    /// Those of the system for the last of them, or [`InvalidInput`](io::ErrorKind::InvalidInput) if the certificates do
    /// not make a server.
    #[cfg(feature = "tls")]
    #[allow(clippy::field_reassign_with_default)] // without WebSockets it is the only field
    pub fn bind_tls(
        address: impl ToSocketAddrs,
        config: ServerConfig,
        certificates: &crate::Certificates,
    ) -> io::Result<Self> {
        let mut acceptor = Acceptor::default();
        acceptor.tls = Some(ServerTls::new(certificates, false)?);
        Self::bind_stream(address, config, acceptor)
    }

    /// Binds to the first of the addresses that can be had, to serve `coap+ws` there: WebSockets at
    /// `/.well-known/coap` (RFC 8323 §4, §8.3). The port is 80 by default.
    ///
    /// # Errors
    /// Those of the system for the last of them.
    #[cfg(feature = "ws")]
    pub fn bind_ws(address: impl ToSocketAddrs, config: ServerConfig) -> io::Result<Self> {
        Self::bind_stream(address, config, Acceptor { ws: true, ..Acceptor::default() })
    }

    /// Binds to the first of the addresses that can be had, to serve `coaps+ws` there (RFC 8323 §8.4). The port is 443
    /// by default.
    ///
    /// # Errors
    /// As of [`bind_tls`](Self::bind_tls).
    #[cfg(all(feature = "tls", feature = "ws"))]
    pub fn bind_wss(
        address: impl ToSocketAddrs,
        config: ServerConfig,
        certificates: &crate::Certificates,
    ) -> io::Result<Self> {
        let tls = Some(ServerTls::new(certificates, true)?);
        Self::bind_stream(address, config, Acceptor { tls, ws: true })
    }

    #[cfg(feature = "tcp")]
    fn bind_stream(
        address: impl ToSocketAddrs,
        config: ServerConfig,
        acceptor: Acceptor,
    ) -> io::Result<Self> {
        let mut bound = Err(io::ErrorKind::AddrNotAvailable.into());
        for address in address.to_socket_addrs()? {
            bound = crate::stream::listen(address);
            if bound.is_ok() {
                break;
            }
        }
        Ok(Self { config, hubs: Vec::new(), tcp: Some((bound?, acceptor, Shared::new())) })
    }

    fn bind_hubs(
        address: impl ToSocketAddrs,
        config: ServerConfig,
        groups: &[Membership],
        hub: impl Fn(Socket, Arc<Setup<Mechanism>>) -> io::Result<Arc<Hub>>,
    ) -> io::Result<Self> {
        let mut bound = Err(io::ErrorKind::AddrNotAvailable.into());
        for address in address.to_socket_addrs()? {
            bound = sockets(address, config.cores.max(1));
            if bound.is_ok() {
                break;
            }
        }
        let setup = Arc::new(config.of_each_core());
        let mut bound = bound?;
        // One of them, for each that is a member gets a copy of every datagram.
        if let Some(first) = bound.first_mut() {
            Membership::join_all(groups, first)?;
        }
        let watched = bound.into_iter().map(|mut socket| {
            socket.tap.clone_from(&config.tap);
            hub(socket, setup.clone())
        });
        let hubs = watched.collect::<Result<_, _>>()?;
        Ok(Self {
            config,
            hubs,
            #[cfg(feature = "tcp")]
            tcp: None,
        })
    }

    /// The address it is bound to.
    ///
    /// # Errors
    /// Those of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        #[cfg(feature = "tcp")]
        if let Some((listener, ..)) = &self.tcp {
            return listener.local_addr();
        }
        self.hubs.first().ok_or(io::ErrorKind::NotConnected)?.socket.local_addr()
    }

    /// A handle to read its counters and to shut it down.
    pub fn handle(&self) -> ServerHandle {
        ServerHandle {
            hubs: self.hubs.as_slice().into(),
            #[cfg(feature = "tcp")]
            tcp: self.tcp.as_ref().map(|(.., shared)| shared.clone()),
            #[cfg(feature = "tls")]
            tls: self.tcp.as_ref().and_then(|(_, acceptor, _)| acceptor.tls.clone()),
        }
    }

    /// Answers requests until it is shut down. Each core has a thread with a runtime of its own, on which its handlers
    /// run. Dropping the future shuts the server down: its threads end a moment later. After [`ServerHandle::shutdown`]
    /// the future ends when they have. A socket is closed when the last [`ServerHandle`] is gone too.
    ///
    /// # Errors
    /// If a thread cannot be started, or the runtime cannot watch a socket.
    pub async fn serve(self, router: Router) -> io::Result<()> {
        let end = Closing(self.handle());
        let (tell, mut told) = watch::channel(Ok::<(), Arc<io::Error>>(()));
        for (core, hub) in self.hubs.into_iter().enumerate() {
            let (router, tell, config) = (router.clone(), tell.clone(), self.config.clone());
            thread::Builder::new().name(format!("coap-{core}")).spawn(move || {
                if let Err(error) = serve_core(hub, router, config) {
                    let _ = tell.send_replace(Err(Arc::new(error)));
                }
            })?;
        }
        #[cfg(feature = "tcp")]
        if let Some((listener, acceptor, shared)) = self.tcp {
            for core in 0..self.config.cores.max(1) {
                let (tell, config, router) = (tell.clone(), self.config.clone(), router.clone());
                let (listener, acceptor, shared) = (listener.try_clone()?, acceptor.clone(), shared.clone());
                thread::Builder::new().name(format!("coap-tcp-{core}")).spawn(move || {
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                    let serve = |runtime: tokio::runtime::Runtime| {
                        runtime.block_on(crate::stream::serve(listener, acceptor, router, config, shared))
                    };
                    if let Err(error) = runtime.and_then(serve) {
                        let _ = tell.send_replace(Err(Arc::new(error)));
                    }
                })?;
            }
        }
        drop(tell);
        let mut limits = Limits::new(end.0.clone());
        // Ends with an error, or when every core has ended.
        loop {
            match timeout(limits::INTERVAL, told.changed()).await {
                Ok(Ok(())) => {}
                ended => {
                    limits.look();
                    if ended.is_ok() {
                        return Ok(());
                    }
                }
            }
            if let Err(error) = &*told.borrow_and_update() {
                return Err(io::Error::new(error.kind(), error.clone()));
            }
        }
    }
}

/// Sockets at one address.
fn sockets(address: SocketAddr, count: usize) -> io::Result<Vec<Socket>> {
    let first = Socket::bind(address, Use::Serve { shared: count > 1 })?;
    // Port 0 was the system's to choose.
    let address = first.local_addr()?;
    let others = (1..count).map(|_| Socket::bind(address, Use::Serve { shared: true }));
    std::iter::once(Ok(first)).chain(others).collect()
}

/// The thread of one core.
fn serve_core(hub: Arc<Hub>, router: Router, config: ServerConfig) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async move {
        hub.lock().serve(&config, hub.is_secure());
        let service = Serving::new(&hub, router, config);
        #[cfg(feature = "dtls")]
        if let Some(sessions) = hub.sessions.clone() {
            let carrier = crate::sessions::Sealed::new(sessions);
            return drive(Driver::new(hub, carrier, service)).await;
        }
        #[cfg(target_os = "linux")]
        let carrier = crate::batch::Batch::of(&hub.socket);
        #[cfg(not(target_os = "linux"))]
        let carrier = crate::carrier::Single::default();
        drive(Driver::new(hub, carrier, service)).await
    })
}

/// Runs a driver to its end, or until it takes too long to shut down.
async fn drive(driver: Driver<impl Carrier, Serving>) -> io::Result<()> {
    let (hub, shutdown_timeout) = (driver.hub.clone(), driver.service.config.shutdown_timeout);
    tokio::select! {
        ended = driver.run() => ended,
        () = patience(&hub, shutdown_timeout) => Ok(()),
    }
}

/// Ends so long after the hub began to close.
async fn patience(hub: &Hub, shutdown_timeout: Duration) {
    hub.closed().await;
    tokio::time::sleep(shutdown_timeout).await;
}

/// Reads a server's counters and shuts it down.
#[derive(Clone, Debug)]
pub struct ServerHandle {
    hubs: Arc<[Arc<Hub>]>,
    #[cfg(feature = "tcp")]
    tcp: Option<Arc<Shared>>,
    #[cfg(feature = "tls")]
    tls: Option<ServerTls>,
}

impl ServerHandle {
    /// What was counted so far, over all cores.
    pub fn stats(&self) -> Stats {
        let mut sum = Stats::default();
        for hub in &*self.hubs {
            sum.add(hub);
        }
        #[cfg(feature = "tcp")]
        if let Some(shared) = &self.tcp {
            sum.tcp = *shared.counters();
        }
        sum
    }

    /// All that can be read of the server now, over all cores.
    pub fn metrics(&self) -> Metrics {
        let mut sum = Metrics::default();
        for hub in &*self.hubs {
            sum.add(hub);
        }
        sum.stats = self.stats();
        sum
    }

    /// Lets connections over TLS begin with other certificates from now on. Those that are there go on. A server without
    /// TLS has no use for them.
    ///
    /// # Errors
    /// [`BadCertificate`](crate::BadCertificate) if they do not make a server; then it keeps those that it has.
    #[cfg(feature = "tls")]
    pub fn set_certificates(&self, certificates: &crate::Certificates) -> Result<(), crate::BadCertificate> {
        self.tls.as_ref().map_or(Ok(()), |tls| tls.replace(certificates))
    }

    /// Whether it has been [told to end](Self::shutdown).
    pub fn is_closing(&self) -> bool {
        #[cfg(feature = "tcp")]
        if self.tcp.as_ref().is_some_and(|shared| shared.is_closing()) {
            return true;
        }
        self.hubs.iter().any(|hub| hub.is_closing())
    }

    /// Answers new requests with 5.03, and tells every observer the same: it is its last notification (RFC 7641 §4.2).
    /// Handlers, separate responses and notifications that are under way may end, for
    /// [`shutdown_timeout`](ServerConfig::shutdown_timeout) at most. Then [`Server::serve`] returns.
    pub fn shutdown(&self) {
        self.hubs.iter().for_each(|hub| hub.close());
        #[cfg(feature = "tcp")]
        if let Some(shared) = &self.tcp {
            shared.close();
        }
    }
}

/// Whoever drops it, the server ends.
struct Closing(ServerHandle);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.shutdown();
    }
}
