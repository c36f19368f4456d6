//! A server of any scheme that runs beside a test, and patience.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::process::Child;
use std::time::Duration;

use coapace_net::{Client, Rejection, Request, Response, Router, Server, ServerConfig, ServerHandle};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

pub(crate) struct Running {
    pub(crate) scheme: &'static str,
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
    /// Returns the URI of a resource.
    pub(crate) fn uri(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    /// Ends it in the middle of its work.
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

/// The socket of a client that is bytes.
pub(crate) fn connected(server: &Running) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.address).unwrap();
    socket
}

/// The next datagram of a socket, if one comes in time.
pub(crate) async fn receive(socket: &UdpSocket, patience: Duration) -> Option<Vec<u8>> {
    let socket = socket.try_clone().unwrap();
    socket.set_read_timeout(Some(patience)).unwrap();
    tokio::task::spawn_blocking(move || received(&socket)).await.unwrap()
}

/// Waits for the next datagram in this thread, as long as the socket does.
pub(crate) fn received(socket: &UdpSocket) -> Option<Vec<u8>> {
    let mut buffer = [0; 2_048];
    socket.recv(&mut buffer).ok().map(|len| buffer[..len].to_vec())
}

pub(crate) fn one_core() -> ServerConfig {
    ServerConfig { cores: 1, ..ServerConfig::default() }
}

/// Answers a request with its payload.
pub(crate) async fn echo(request: Request) -> Result<Response, Rejection> {
    Ok(Response::content(request.payload().to_vec()))
}

/// Answers a request that changes something with its payload.
pub(crate) async fn changed(request: Request) -> Result<Response, Rejection> {
    Ok(Response::changed().payload(request.payload().to_vec()))
}

pub(crate) fn serve(router: Router) -> Running {
    serve_at("127.0.0.1:0", router, one_core())
}

pub(crate) fn serve_with(router: Router, config: ServerConfig) -> Running {
    serve_at("127.0.0.1:0", router, config)
}

pub(crate) fn serve_at(address: &str, router: Router, config: ServerConfig) -> Running {
    run("coap", Server::bind_with(address, config), router)
}

/// Serves where a server crashed: its threads close its sockets a moment after its future is dropped.
pub(crate) async fn serve_again(address: &str, router: Router, config: ServerConfig) -> Running {
    let bound = async {
        loop {
            match Server::bind_with(address, config.clone()) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    sleep(Duration::from_millis(5)).await;
                }
                bound => break bound,
            }
        }
    };
    run("coap", timeout(Duration::from_secs(60), bound).await.expect("free within 60 s"), router)
}

/// Runs the server that was bound.
pub(crate) fn run(scheme: &'static str, bound: io::Result<Server>, router: Router) -> Running {
    let server = bound.expect("a port of loopback");
    let (address, handle) = (server.local_addr().expect("bound"), server.handle());
    Running { scheme, address, handle, task: tokio::spawn(server.serve(router)) }
}

/// Reads from a server of libcoap and pings it, and ends its process.
pub(crate) async fn libcoap_answers(mut server: Child, client: &Client, uri: &str) {
    let answers = async { (client.get(uri).await, client.ping(uri).await) };
    let answers = timeout(Duration::from_secs(60), answers).await;
    let _ = server.kill();
    let _ = server.wait();
    let (response, pong) = answers.expect("within 60 s");
    assert!(response.unwrap().text().contains("libcoap"));
    pong.unwrap();
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
