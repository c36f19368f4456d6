//! A DTLS server that runs beside a test.

use std::io;
use std::net::SocketAddr;

use coapace_net::{Dtls, Router, Server, ServerConfig, ServerHandle};
use tokio::task::JoinHandle;

pub(crate) const KEY: &[u8] = b"a long secret";

/// The keys of a server that knows one identity.
pub(crate) fn keys() -> Dtls {
    Dtls::server(|identity| (identity == b"lamp-7").then(|| KEY.to_vec()))
}

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
        format!("coaps://{}{path}", self.address)
    }
}

pub(crate) fn serve(router: Router, dtls: &Dtls) -> Running {
    let config = ServerConfig { cores: 1, ..ServerConfig::default() };
    let server = Server::bind_dtls("127.0.0.1:0", config, dtls).expect("a port of loopback");
    let (address, handle) = (server.local_addr().expect("bound"), server.handle());
    Running { address, handle, task: tokio::spawn(server.serve(router)) }
}
