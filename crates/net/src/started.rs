//! A server with everything it needs to answer requests: its threads and their runtimes.

use std::io;
use std::net::UdpSocket;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::datagram::driver::Driver;
use crate::datagram::hub::Hub;
use crate::datagram::io::DatagramIo;
use crate::datagram::serving::Serving;
use crate::lock::lock;
use crate::secure::Sealed;
use crate::{Router, ServerConfig, ServerHandle, log};

/// The time between two checks of a server's counters.
const LIMITS_INTERVAL: Duration = Duration::from_secs(1);

/// The result of the server's threads: the error of the first thread that failed, if there is one.
type FirstFailure = Result<(), Arc<io::Error>>;

/// A server that is ready to answer. [`run`](Self::run) makes it answer. Dropping this value ends the threads of the
/// server.
#[derive(Debug)]
pub struct Started {
    end: ShutDown,
    /// A sender for each thread, whose message lets the thread start.
    begin: Vec<mpsc::Sender<()>>,
    failure: watch::Sender<FirstFailure>,
}

impl Started {
    /// Returns a server without threads.
    pub(crate) fn new(handle: ServerHandle) -> Self {
        Self { end: ShutDown(handle), begin: Vec::new(), failure: watch::channel(Ok(())).0 }
    }

    /// Returns a handle, which reads the counters of the server and shuts it down.
    pub fn handle(&self) -> ServerHandle {
        self.end.0.clone()
    }

    /// Adds a thread with its own runtime, which waits to start.
    pub(crate) fn add<F: Future<Output = io::Result<()>>>(
        &mut self,
        name: String,
        core: impl FnOnce() -> F + Send + 'static,
    ) -> io::Result<()> {
        let failure = self.failure.clone();
        let ((begin, begins), (open, opened)) = (mpsc::channel(), mpsc::channel());
        let run = move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(open.send(Err(error))),
            };
            let _ = open.send(Ok(runtime.handle().clone()));
            // The server may be dropped before it begins.
            if begins.recv().is_ok()
                && let Err(error) = runtime.block_on(async { core().await })
            {
                let _ = failure.send_replace(Err(Arc::new(error)));
            }
        };
        thread::Builder::new().name(name).spawn(run)?;
        // Without a result, the thread has panicked.
        let runtime = opened.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))?;
        lock(&self.end.0.runtimes).push(runtime);
        self.begin.push(begin);
        Ok(())
    }

    /// Answers requests until the server is shut down. Dropping the future shuts the server down, and its threads end a moment
    /// later. After [`ServerHandle::shutdown`] the future completes when the threads have ended. The sockets are closed once
    /// the last [`ServerHandle`] is also dropped.
    ///
    /// # Errors
    /// The errors of the system, if a runtime cannot watch a socket.
    ///
    /// # Panics
    /// Panics outside a tokio runtime that has timers (`enable_time`).
    pub async fn run(self) -> io::Result<()> {
        let Self { end, begin, failure } = self;
        let mut failures = failure.subscribe();
        // With this sender dropped, the loop below ends when the last thread has dropped its own.
        drop(failure);
        // Taken before any thread counts, so that nothing is missed.
        let mut before = end.0.stats();
        for begin in begin {
            // A thread that has ended has reported its error.
            let _ = begin.send(());
        }
        // The loop ends with an error, or when every core has ended.
        loop {
            match timeout(LIMITS_INTERVAL, failures.changed()).await {
                Ok(Ok(())) => {}
                ended => {
                    let now = end.0.stats();
                    log::limits(end.0.transport(), end.0.stopped(), &before, &now);
                    before = now;
                    if ended.is_ok() {
                        return Ok(());
                    }
                }
            }
            if let Err(error) = &*failures.borrow_and_update() {
                return Err(io::Error::new(error.kind(), error.clone()));
            }
        }
    }
}

/// Serves datagrams on one thread. `watched` is a duplicate of the hub's socket.
pub(crate) async fn serve_core(
    hub: Arc<Hub>,
    watched: UdpSocket,
    router: Router,
    config: ServerConfig,
) -> io::Result<()> {
    // The secret of Echo values is drawn here, before the first request.
    hub.lock().serve(&config, hub.is_secure());
    let service = Serving::new(&hub, router, config);
    // Records go one by one, because each has to be opened before the next is known to be data.
    if let Some(sessions) = hub.sessions.clone() {
        return drive(Driver::new(hub, Sealed::over(&sessions), service).watching(watched)).await;
    }
    #[cfg(target_os = "linux")]
    {
        use crate::datagram::batch::BatchBuffers;
        use nix::sys::socket::{SockaddrIn, SockaddrIn6};
        // The address family is a type, so that no branch is left for each datagram.
        if hub.socket.v6 {
            let io = BatchBuffers::<SockaddrIn6>::of(&hub.socket);
            return drive(Driver::new(hub, io, service).watching(watched)).await;
        }
        let io = BatchBuffers::<SockaddrIn>::of(&hub.socket);
        drive(Driver::new(hub, io, service).watching(watched)).await
    }
    #[cfg(not(target_os = "linux"))]
    {
        use crate::datagram::io::{MAX_DATAGRAM, Single};
        drive(Driver::new(hub, Single::taking(MAX_DATAGRAM), service).watching(watched)).await
    }
}

/// Runs a driver to its end, or until it takes too long to shut down.
async fn drive(driver: Driver<impl DatagramIo, Serving>) -> io::Result<()> {
    let (hub, shutdown_timeout) = (driver.hub.clone(), driver.service.config.shutdown_timeout);
    let too_long = async {
        hub.closing.begun().await;
        tokio::time::sleep(shutdown_timeout).await;
    };
    tokio::select! {
        ended = driver.run() => ended,
        () = too_long => Ok(()),
    }
}

/// A guard that shuts the server down when the guard is dropped.
#[derive(Debug)]
struct ShutDown(ServerHandle);

impl Drop for ShutDown {
    fn drop(&mut self) {
        self.0.shutdown();
    }
}
