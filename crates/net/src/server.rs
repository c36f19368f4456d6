//! A server: one endpoint for each core, on one port.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use coapace_control::Instant;
use coapace_proto::{Message, Responder, Setup};
use tokio::sync::watch;

use crate::address::Remote;
use crate::driver::{Driver, Service};
use crate::handler::{Called, Pending, panicked};
use crate::hub::Hub;
use crate::socket::{Socket, Use};
use crate::{Profile, Rejection, Router, Stats};

/// What a server is set up with.
#[derive(Clone, Copy, Debug)]
pub struct ServerConfig {
    /// The mechanism of its own exchanges (separate responses), and the bounds of each of its endpoints.
    pub profile: Profile,
    /// Endpoints, each with a thread and a socket of its own; the system spreads the clients over them. As many as the
    /// process has cores, unless set.
    pub cores: usize,
    /// Handlers of one endpoint that may wait for something at once. One more is dropped where it would begin to wait,
    /// and its request answered 5.03.
    pub max_pending: u32,
    /// How long a handler may take until its request is acknowledged and the response becomes a separate one (RFC 7252
    /// §5.2.2). To be well below ACK_TIMEOUT, which is 2 s.
    pub acknowledge_after: Duration,
    /// What Max-Age a 5.03 has, in whole seconds: when the client may try again.
    pub retry_after: Duration,
    /// How long handlers and separate responses may go on when the server shuts down.
    pub shutdown_timeout: Duration,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            cores: thread::available_parallelism().map_or(1, usize::from),
            max_pending: 1_024,
            acknowledge_after: Duration::from_millis(200),
            retry_after: Duration::from_secs(5),
            shutdown_timeout: Duration::from_secs(10),
        }
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

    /// Binds to the first of the addresses that can be had.
    ///
    /// # Errors
    /// Those of the system for the last of them.
    pub fn bind_with(address: impl ToSocketAddrs, config: ServerConfig) -> io::Result<Self> {
        let mut bound = Err(io::ErrorKind::AddrNotAvailable.into());
        for address in address.to_socket_addrs()? {
            bound = sockets(address, config.cores.max(1));
            if bound.is_ok() {
                break;
            }
        }
        let Profile { mechanism, config: transmission } = config.profile;
        let setup = Arc::new(Setup { controller: mechanism, config: transmission });
        let hubs = bound?.into_iter().map(|socket| Hub::new(socket, setup.clone())).collect();
        Ok(Self { config, hubs })
    }

    /// The address it is bound to.
    ///
    /// # Errors
    /// Those of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.hubs.first().ok_or(io::ErrorKind::NotConnected)?.socket.local_addr()
    }

    /// A handle to read its counters and to shut it down.
    pub fn handle(&self) -> ServerHandle {
        ServerHandle { hubs: self.hubs.as_slice().into() }
    }

    /// Answers requests until it is shut down. Each core has a thread with a runtime of its own, on which its handlers
    /// run. Dropping the future shuts the server down.
    ///
    /// # Errors
    /// If a thread cannot be started, or the runtime cannot watch a socket.
    pub async fn serve(self, router: Router) -> io::Result<()> {
        let _end = Closing(self.handle());
        let (tell, mut told) = watch::channel(Ok::<(), Arc<io::Error>>(()));
        for (core, hub) in self.hubs.into_iter().enumerate() {
            let (router, tell, config) = (router.clone(), tell.clone(), self.config);
            thread::Builder::new().name(format!("coap-{core}")).spawn(move || {
                if let Err(error) = serve_core(hub, router, config) {
                    let _ = tell.send_replace(Err(Arc::new(error)));
                }
            })?;
        }
        drop(tell);
        // Ends with an error, or when every core has ended.
        while told.changed().await.is_ok() {
            if let Err(error) = &*told.borrow_and_update() {
                return Err(io::Error::new(error.kind(), error.clone()));
            }
        }
        Ok(())
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
        #[cfg(target_os = "linux")]
        let carrier = crate::batch::Batch::of(&hub.socket);
        #[cfg(not(target_os = "linux"))]
        let carrier = crate::carrier::Single::default();
        let driver = Driver { hub: hub.clone(), carrier, service: Serving { router, config } };
        tokio::select! {
            ended = driver.run() => ended,
            () = patience(&hub, config.shutdown_timeout) => Ok(()),
        }
    })
}

/// Ends so long after the hub began to close.
async fn patience(hub: &Hub, shutdown_timeout: Duration) {
    hub.closed().await;
    tokio::time::sleep(shutdown_timeout).await;
}

/// Routes requests, and lets handlers that wait go on as tasks.
struct Serving {
    router: Router,
    config: ServerConfig,
}

impl Service for Serving {
    fn request(&mut self, hub: &Arc<Hub>, now: Instant, responder: Responder<Remote>, message: &Message<'_>) {
        if hub.is_closing() {
            return self.refuse(hub, now, responder);
        }
        let called = self.router.call(responder.to, message);
        match called {
            Called::Ready(response) => hub.lock().respond(now, responder, &response),
            Called::Panicked => {
                let mut state = hub.lock();
                state.counters.panics += 1;
                state.respond(now, responder, &panicked());
            }
            Called::Pending(_) if hub.pending.load(Ordering::Relaxed) >= self.config.max_pending => {
                self.refuse(hub, now, responder);
            }
            Called::Pending(rest) => {
                hub.lock().counters.deferred += 1;
                hub.pending.fetch_add(1, Ordering::Relaxed);
                let counted = Counted(hub.clone());
                tokio::spawn(answer_later(counted, responder, rest, self.config.acknowledge_after));
            }
        }
    }
}

impl Serving {
    fn refuse(&self, hub: &Hub, now: Instant, responder: Responder<Remote>) {
        let seconds = u32::try_from(self.config.retry_after.as_secs()).unwrap_or(u32::MAX);
        let mut state = hub.lock();
        state.counters.refused += 1;
        state.respond(now, responder, &Rejection::unavailable(seconds).into());
    }
}

/// A handler that waits, as long as it does.
struct Counted(Arc<Hub>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.pending.fetch_sub(1, Ordering::Release);
        if self.0.is_closing() {
            self.0.attention.notify_one();
        }
    }
}

/// Acknowledges if the handler takes long, and answers when it is done.
async fn answer_later(
    counted: Counted,
    mut responder: Responder<Remote>,
    mut rest: Pending,
    patience: Duration,
) {
    let hub = &counted.0;
    let answer = if let Ok(answer) = tokio::time::timeout(patience, &mut rest).await {
        answer
    } else {
        responder = hub.with(|state, now| state.endpoint.acknowledge(now, responder));
        rest.await
    };
    let response = answer.unwrap_or_else(|| {
        hub.lock().counters.panics += 1;
        panicked()
    });
    hub.respond(responder, &response);
}

/// Reads a server's counters and shuts it down.
#[derive(Clone, Debug)]
pub struct ServerHandle {
    hubs: Arc<[Arc<Hub>]>,
}

impl ServerHandle {
    /// What was counted so far, over all cores.
    pub fn stats(&self) -> Stats {
        let mut sum = Stats::default();
        for hub in &*self.hubs {
            let state = hub.lock();
            sum.add(&state.endpoint.counters(), &state.counters);
        }
        sum
    }

    /// New requests are answered 5.03; handlers and separate responses that are under way may end, for
    /// [`shutdown_timeout`](ServerConfig::shutdown_timeout) at most. Then [`Server::serve`] returns.
    pub fn shutdown(&self) {
        self.hubs.iter().for_each(|hub| hub.close());
    }
}

/// Whoever drops it, the server ends.
struct Closing(ServerHandle);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.shutdown();
    }
}
