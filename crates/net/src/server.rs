//! A server, which uses the same port on all threads.

use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs, UdpSocket};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use coapace_proto::block::{Bounds, MAX_SZX};
use coapace_proto::{Code, Config, Options};
use tokio::runtime;

use crate::closing::Closing;
use crate::datagram::answers::Verify;
use crate::datagram::hub::Hub;
use crate::datagram::socket::{Socket, SocketPurpose};
use crate::lock::lock;
use crate::secure::Dtls;
use crate::started::{Started, serve_core};
use crate::stream::{Acceptor, StreamServer};
use crate::{Budget, Interceptor, Membership, Metrics, Profile, Rejection, Response, Router, Stats};

/// The configuration of a server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The memory that clients can make the server use. It limits connections, DTLS sessions, and the data queued for them.
    pub budget: Budget,
    /// The mechanism of the server's own exchanges (separate responses and notifications), and the limits of its endpoints. The
    /// limits of peers, observers and remembered messages are for all endpoints together, and each endpoint has an equal share.
    /// The other limits are for each endpoint. [`Budget::bound`] sets the limits that follow from the memory.
    pub profile: Profile,
    /// The number of endpoints, each with its own thread and socket. The system distributes the clients among them. The default
    /// is the number of cores that the process may use.
    pub cores: usize,
    /// The maximum number of handlers of one endpoint over UDP or DTLS that may run at once, at least 1. A handler is
    /// called only if a slot is free, because it may wait for something. Otherwise its request is answered 5.03. One
    /// resource may use at most as many slots as are left, so that a slow resource leaves slots to others. Clients that
    /// have not returned an Echo option may use half as many; beyond that they are asked for the option. Over
    /// connections, memory is the limit ([`Budget`]).
    pub max_pending: u32,
    /// The maximum number of requests that each client over UDP or DTLS may make in a second, if that is limited. A
    /// client is an address and a port, or a DTLS session. A client may accumulate the requests of one second. Faster
    /// requests are answered 4.29 (RFC 8516), with the time until the next is allowed in Max-Age. Copies of one request
    /// count once, each block of a body counts. The limit of remembered clients is the limit of peers.
    pub max_rate: Option<NonZeroU32>,
    /// The time that a handler may take until its request is acknowledged and the response becomes a separate one (RFC 7252
    /// §5.2.2). It should be well below ACK_TIMEOUT, which is 2 s.
    pub acknowledge_after: Duration,
    /// The Max-Age of a 5.03 response, in whole seconds, after which the client may try again.
    pub retry_after: Duration,
    /// The maximum number of connections over TCP, TLS and WebSockets, over all threads. The [`budget`](Self::budget)
    /// may limit them further. For a new connection beyond the limit, the address with the most connections loses one:
    /// first one that is still opening, then an idle one, and among equals the one that was silent for longest.
    pub max_connections: usize,
    /// The time after which the server closes a silent connection. A connection with observers is pinged first, and closed if
    /// it stays silent for the same time again.
    pub idle_timeout: Duration,
    /// The groups that a server over UDP joins. The server must be bound to every address, and run on Linux. A
    /// non-confirmable request to a group is answered after a delay, and only if the response has a payload and is not
    /// an error (RFC 7252 §8). A request to a group does not register an observer. A response that is larger than the
    /// client [may be sent](Verify) is cut to its first block.
    pub groups: Vec<Membership>,
    /// The longest delay of a response to a group (DEFAULT_LEISURE, RFC 7252 §8.2). The default is 5 s.
    pub leisure: Duration,
    /// The number of responses to groups that may be delayed at once. Further responses are dropped. When the server
    /// shuts down, all delayed responses are dropped.
    pub max_delayed: usize,
    /// The limits of bodies larger than a block, in each endpoint. They apply to incomplete requests, and again to responses
    /// whose last block has not been requested yet. The default is 256 bodies of at most 1 MiB, and 8 MiB in total. If the
    /// response to a GET exceeds them, the handler is called again for each block. For other methods, the next block is
    /// answered 4.08.
    pub bodies: Bounds,
    /// The clients that must verify their address before they are sent large responses.
    pub verify: Verify,
    /// The time for handlers and separate responses to end when the server shuts down.
    pub shutdown_timeout: Duration,
    /// The hook that sees the datagrams of all threads, and may drop them. With an interceptor, each datagram takes a
    /// separate system call.
    pub interceptor: Option<Arc<dyn Interceptor>>,
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
            max_rate: None,
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
            interceptor: None,
        }
    }
}

impl ServerConfig {
    /// Returns the response to a request beyond a limit: 5.03.
    pub(crate) fn unavailable(&self) -> Response {
        Rejection::unavailable(u32::try_from(self.retry_after.as_secs()).unwrap_or(u32::MAX)).into()
    }

    /// Returns the response to a request that is longer than a datagram may be: 4.13, with the size of a block (RFC 7252
    /// §5.9.2.9).
    pub(crate) fn too_large(&self) -> Response {
        let options = Options::default().size1(16 << self.bodies.max_szx.min(MAX_SZX));
        let why = "too long for one datagram; send the body in blocks (Block1)";
        Response { options, ..Response::new(Code::REQUEST_ENTITY_TOO_LARGE) }.payload(why)
    }

    /// Returns the profile of each endpoint, with its share of the limits.
    pub(crate) fn of_each_core(&self) -> Profile {
        let config = self.profile.config;
        // Shares are rounded up below, so that none is 0, which would switch a table off.
        let cores = u32::try_from(self.cores.max(1)).unwrap_or(u32::MAX);
        let config = Config {
            max_peers: config.max_peers.div_ceil(cores),
            max_observers: config.max_observers.div_ceil(cores),
            max_deduplicated: config.max_deduplicated.div_ceil(cores),
            max_sluiced: config.max_sluiced.div_ceil(cores),
            ..config
        };
        Profile { config, ..self.profile }
    }
}

/// A server that is bound to an address. [`serve`](Self::serve) makes it answer.
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
    handle: ServerHandle,
    /// The listening socket of a server over connections. `None` over datagrams.
    listener: Option<TcpListener>,
}

impl Server {
    /// Binds to an address with the default configuration. `[::]` means every address of the host, including IPv4.
    /// [`addresses`](crate::addresses) resolves a zone given by name (`[fe80::1%eth0]:5683`).
    ///
    /// # Errors
    /// The errors of the system: the address is in use, or not one of the host's.
    pub fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        Self::bind_with(address, ServerConfig::default())
    }

    /// Binds to the first of the addresses that is available, and joins the groups.
    ///
    /// # Errors
    /// The error of the system for the last address, or an error that holds [`NotJoined`](crate::NotJoined).
    pub fn bind_with(address: impl ToSocketAddrs, config: ServerConfig) -> io::Result<Self> {
        Self::bind_hubs(address, config, None)
    }

    /// Binds to the first of the addresses that is available, to serve `coap+tcp` (RFC 8323). The settings of mechanisms and
    /// messages have no effect. Each thread accepts connections and serves them.
    ///
    /// # Errors
    /// The error of the system for the last address.
    pub fn bind_tcp(address: impl ToSocketAddrs, config: ServerConfig) -> io::Result<Self> {
        Self::bind_stream(address, config, Acceptor::default())
    }

    /// Binds to the first of the addresses that is available, to serve `coap+ws`: WebSockets at `/.well-known/coap` (RFC
    /// 8323 §4, §8.3). The default port of the scheme is 80.
    ///
    /// # Errors
    /// The error of the system for the last address.
    pub fn bind_ws(address: impl ToSocketAddrs, config: ServerConfig) -> io::Result<Self> {
        Self::bind_stream(address, config, Acceptor { tls: None, ws: true })
    }

    /// Takes over sockets that are bound already, to serve `coap`. Each gets a thread, whatever [`cores`](ServerConfig::cores)
    /// is. Several sockets need one address and SO_REUSEPORT, so that the system distributes the clients among them.
    ///
    /// # Errors
    /// The error of the system, or an error that holds [`NotJoined`](crate::NotJoined). There has to be a socket.
    pub fn adopt(sockets: Vec<UdpSocket>, config: ServerConfig) -> io::Result<Self> {
        Self::adopt_hubs(sockets, config, None)
    }

    /// Takes over a socket that listens already, to serve `coap+tcp`.
    ///
    /// # Errors
    /// The error of the system.
    pub fn adopt_tcp(listener: TcpListener, config: ServerConfig) -> io::Result<Self> {
        Self::adopt_stream(listener, config, Acceptor::default())
    }

    /// Takes over a socket that listens already, to serve `coap+ws`.
    ///
    /// # Errors
    /// The error of the system.
    pub fn adopt_ws(listener: TcpListener, config: ServerConfig) -> io::Result<Self> {
        Self::adopt_stream(listener, config, Acceptor { tls: None, ws: true })
    }

    pub(crate) fn bind_stream(
        address: impl ToSocketAddrs,
        config: ServerConfig,
        acceptor: Acceptor,
    ) -> io::Result<Self> {
        Self::adopt_stream(first(address, crate::stream::listen)?, config, acceptor)
    }

    pub(crate) fn adopt_stream(
        listener: TcpListener,
        config: ServerConfig,
        acceptor: Acceptor,
    ) -> io::Result<Self> {
        // An adopted listener may block, which would stop all tasks of its thread.
        listener.set_nonblocking(true)?;
        let tcp = Some(Arc::new(StreamServer::new(acceptor)));
        let handle = ServerHandle { hubs: Arc::default(), tcp, runtimes: Arc::default() };
        Ok(Self { config, handle, listener: Some(listener) })
    }

    pub(crate) fn bind_hubs(
        address: impl ToSocketAddrs,
        config: ServerConfig,
        dtls: Option<&Dtls>,
    ) -> io::Result<Self> {
        Self::with_sockets(first(address, |address| sockets(address, config.cores.max(1)))?, config, dtls)
    }

    pub(crate) fn adopt_hubs(
        sockets: Vec<UdpSocket>,
        config: ServerConfig,
        dtls: Option<&Dtls>,
    ) -> io::Result<Self> {
        let config = ServerConfig { cores: sockets.len(), ..config };
        let sockets: Vec<_> = sockets.into_iter().map(Socket::adopt).collect::<Result<_, _>>()?;
        if sockets.is_empty() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Self::with_sockets(sockets, config, dtls)
    }

    fn with_sockets(mut bound: Vec<Socket>, config: ServerConfig, dtls: Option<&Dtls>) -> io::Result<Self> {
        let profile = config.of_each_core();
        // Only one socket joins, because each member gets a copy of every datagram.
        if let (Some(first), None) = (bound.first_mut(), dtls) {
            Membership::join_all(&config.groups, first)?;
        }
        let intercepted = bound.into_iter().map(|mut socket| {
            socket.interceptor.clone_from(&config.interceptor);
            Hub::new(socket, &profile, dtls)
        });
        let hubs = intercepted.collect::<Result<_, _>>()?;
        let handle = ServerHandle { hubs, tcp: None, runtimes: Arc::default() };
        Ok(Self { config, handle, listener: None })
    }

    /// Returns the address that the server is bound to.
    ///
    /// # Errors
    /// The errors of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        if let Some(listener) = &self.listener {
            return listener.local_addr();
        }
        self.handle.hubs.first().ok_or(io::ErrorKind::NotConnected)?.socket.local_addr()
    }

    /// Returns a handle, which reads the counters of the server and shuts it down.
    pub fn handle(&self) -> ServerHandle {
        self.handle.clone()
    }

    /// Answers requests until the server is shut down: [`start`](Self::start), and then [`Started::run`].
    ///
    /// # Errors
    /// The errors of both.
    ///
    /// # Panics
    /// Panics outside a tokio runtime that has timers (`enable_time`).
    pub async fn serve(self, router: Router) -> io::Result<()> {
        self.start(&router)?.run().await
    }

    /// Opens everything that the server needs to answer requests, but answers none yet. Each thread has its own runtime, on
    /// which its handlers run. Announce the server after this: nothing is left that the system may refuse.
    ///
    /// # Errors
    /// The errors of the system, if it has no room for another thread or file descriptor.
    pub fn start(self, router: &Router) -> io::Result<Started> {
        let mut started = Started::new(self.handle);
        for (core, hub) in started.handle().hubs.iter().cloned().enumerate() {
            // Duplicated here, so that a lack of file descriptors is an error of this call.
            let (router, config, watched) = (router.clone(), self.config.clone(), hub.socket.duplicate()?);
            // A thread of its own for each core: handlers and endpoint share no lock with other cores.
            started.add(format!("coap-{core}"), move || serve_core(hub, watched, router, config))?;
        }
        if let (Some(listener), Some(shared)) = (self.listener, started.handle().tcp) {
            for core in 0..self.config.cores.max(1) {
                let (router, config) = (router.clone(), self.config.clone());
                let (listener, shared) = (listener.try_clone()?, shared.clone());
                let serve = move || crate::stream::serve(listener, router, config, shared);
                started.add(format!("coap-tcp-{core}"), serve)?;
            }
        }
        Ok(started)
    }
}

/// Calls `bind` for each address until a call succeeds. Returns the result of the last call.
fn first<T>(address: impl ToSocketAddrs, mut bind: impl FnMut(SocketAddr) -> io::Result<T>) -> io::Result<T> {
    // The error of a name without any address.
    let mut bound = Err(io::ErrorKind::AddrNotAvailable.into());
    for address in address.to_socket_addrs()? {
        bound = bind(address);
        if bound.is_ok() {
            break;
        }
    }
    bound
}

/// Returns `count` sockets that are bound to one address.
fn sockets(address: SocketAddr, count: usize) -> io::Result<Vec<Socket>> {
    let first = Socket::bind(address, SocketPurpose::Serve { shared: count > 1 })?;
    // The system may have chosen the port.
    let address = first.local_addr()?;
    let others = (1..count).map(|_| Socket::bind(address, SocketPurpose::Serve { shared: true }));
    std::iter::once(Ok(first)).chain(others).collect()
}

/// Reads a server's counters and shuts it down.
#[derive(Clone, Debug)]
pub struct ServerHandle {
    hubs: Arc<[Arc<Hub>]>,
    pub(crate) tcp: Option<Arc<StreamServer>>,
    /// The runtimes of the server's threads.
    pub(crate) runtimes: Arc<Mutex<Vec<runtime::Handle>>>,
}

impl ServerHandle {
    /// Returns the counters, summed over all threads.
    pub fn stats(&self) -> Stats {
        let tcp = self.tcp.as_ref().map(|shared| *shared.counters());
        Stats { tcp: tcp.unwrap_or_default(), ..Stats::of(self.hubs.iter()) }
    }

    /// Returns the scheme of the server's URIs.
    pub(crate) fn transport(&self) -> &'static str {
        match (&self.tcp, self.hubs.first()) {
            (Some(shared), _) => shared.acceptor.scheme(),
            (None, Some(hub)) if hub.is_secure() => "coaps",
            (None, _) => "coap",
        }
    }

    /// Returns a peer that a limit has affected since the last call, if there is one.
    pub(crate) fn stopped(&self) -> Option<SocketAddr> {
        let mut stopped = None;
        for hub in self.hubs.iter() {
            // Also taken if another peer is returned, so that the next call does not return an old one.
            stopped = hub.lock().stopped.take().or(stopped);
        }
        match stopped {
            Some(remote) => Some(remote.address()),
            None => self.tcp.as_ref()?.stopped().take(),
        }
    }

    /// Returns the metrics of the server, over all threads.
    pub fn metrics(&self) -> Metrics {
        Metrics { stats: self.stats(), ..Metrics::of(self.hubs.iter()) }
    }

    /// Waits until every thread has run another task, and none holds its locks. A thread that hangs keeps this function
    /// waiting, and a thread that has ended does not. Each call costs each thread one task.
    pub async fn pulse(&self) {
        let runtimes = lock(&self.runtimes).clone();
        // All are asked before the first answer is waited for.
        let asked: Vec<_> = runtimes.iter().map(|runtime| runtime.spawn(async {})).collect();
        for turn in asked {
            // An error means that the core has ended.
            let _ = turn.await;
        }
        // This takes all locks, so it waits for a thread that holds one.
        self.stats();
    }

    /// Returns whether [`shutdown`](Self::shutdown) was called.
    pub fn is_closing(&self) -> bool {
        let ends = self.hubs.iter().map(|hub| &hub.closing);
        ends.chain(self.tcp.as_ref().map(|shared| &shared.closing)).any(Closing::has_begun)
    }

    /// Shuts the server down. New requests are answered 5.03, and every observer gets a last notification with this code (RFC
    /// 7641 §4.2). Running handlers, separate responses and notifications get
    /// [`shutdown_timeout`](ServerConfig::shutdown_timeout) to end. Then [`Server::serve`] returns.
    pub fn shutdown(&self) {
        self.hubs.iter().for_each(|hub| hub.close());
        if let Some(shared) = &self.tcp {
            shared.closing.begin();
        }
    }
}
