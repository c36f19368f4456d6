//! A server that runs beside a test, and patience.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use coapace_net::{Router, Server, ServerConfig, ServerHandle};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) handle: ServerHandle,
    task: JoinHandle<io::Result<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Running {
    /// The URI of a resource of it.
    pub(crate) fn uri(&self, path: &str) -> String {
        format!("coap://{}{path}", self.address)
    }

    /// Ends it in the middle of what it does.
    pub(crate) async fn crash(&mut self) {
        self.task.abort();
        let ended = (&mut self.task).await;
        assert!(ended.is_err_and(|error| error.is_cancelled()), "it was running");
    }

    /// Waits for its end.
    pub(crate) async fn ended(&mut self) -> io::Result<()> {
        (&mut self.task).await.expect("no panic")
    }
}

pub(crate) fn serve(router: Router) -> Running {
    serve_at("127.0.0.1:0", router, ServerConfig { cores: 1, ..ServerConfig::default() })
}

pub(crate) fn serve_with(router: Router, config: ServerConfig) -> Running {
    serve_at("127.0.0.1:0", router, config)
}

pub(crate) fn serve_at(address: &str, router: Router, config: ServerConfig) -> Running {
    run(Server::bind_with(address, config).expect("a port of loopback"), router)
}

/// Serves where a server crashed: its threads close its sockets a moment after its future is dropped.
pub(crate) async fn serve_again(address: &str, router: Router, config: ServerConfig) -> Running {
    let bound = async {
        loop {
            match Server::bind_with(address, config.clone()) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    sleep(Duration::from_millis(5)).await;
                }
                bound => break bound.expect("a port of loopback"),
            }
        }
    };
    run(timeout(Duration::from_secs(10), bound).await.expect("free within 10 s"), router)
}

fn run(server: Server, router: Router) -> Running {
    let (address, handle) = (server.local_addr().expect("bound"), server.handle());
    Running { address, handle, task: tokio::spawn(server.serve(router)) }
}

/// Waits until it is so.
pub(crate) async fn until(what: impl Fn() -> bool) {
    let so = async {
        while !what() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(30), so).await.expect("within 30 s");
}
