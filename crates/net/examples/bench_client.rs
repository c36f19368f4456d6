//! Measures what a sequential confirmable GET costs a client, compared with a bare socket that sends and receives: `cargo run
//! --release -p coapace-net --example bench_client [coap://HOST:PORT/PATH]`
//!
//! Without a URI the server is a thread of this process. The cost is the CPU time of the client's thread only.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use coapace_net::{Client, Rejection, Request, Response, Router, Server, ServerConfig};

const REQUESTS: u32 = 4_000;
const ROUNDS: usize = 9;

async fn temperature(_: Request) -> Result<Response, Rejection> {
    Ok(Response::content("a payload of sixty bytes, which is about what a sensor says."))
}

/// Returns the CPU time of this thread.
fn cpu() -> Result<Duration, Box<dyn std::error::Error>> {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(Duration::from_nanos(schedstat.split(' ').next().unwrap_or_default().parse()?))
}

/// Sends and receives datagrams without any protocol.
fn bare(server: SocketAddr, uri_path: &[u8]) -> std::io::Result<()> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(Duration::from_secs(2)))?;
    let mut response = [0; 2048];
    for n in 0..REQUESTS as u16 {
        let [high, low] = n.to_be_bytes();
        socket
            .send(&[&[0x42, 0x01, high, low, high, low, 0xb0 | uri_path.len() as u8], uri_path].concat())?;
        socket.recv(&mut response)?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let uri = if let Some(uri) = std::env::args().nth(1) {
        uri
    } else {
        let server = Server::bind_with("127.0.0.1:0", ServerConfig { cores: 1, ..ServerConfig::default() })?;
        let uri = format!("coap://{}/temp", server.local_addr()?);
        tokio::spawn(server.serve(Router::new().get("/temp", temperature)));
        uri
    };
    let parsed: coapace_net::Uri = uri.parse()?;
    let address = match parsed.host {
        coapace_net::uri::Host::Address(address, _) => SocketAddr::new(address, parsed.port),
        coapace_net::uri::Host::Name(_) => return Err("the host has to be an address here".into()),
    };
    let path = parsed.path.first().cloned().unwrap_or_default();
    let client = Client::new();
    client.get(&uri).await?;
    let mut costs = Vec::new();
    for _ in 0..ROUNDS {
        let began = cpu()?;
        bare(address, path.as_bytes())?;
        let between = cpu()?;
        for _ in 0..REQUESTS {
            let response = client.get(&uri).await?;
            assert!(response.is_success() && response.payload.len() == 60, "{response:?}");
        }
        let us = |span: Duration| span.as_secs_f64() * 1e6 / f64::from(REQUESTS);
        costs.push((us(between.saturating_sub(began)), us(cpu()?.saturating_sub(between))));
    }
    costs.sort_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)));
    let (floor, ours) = costs[costs.len() / 2];
    println!("bare socket {floor:.2} us, coapace {ours:.2} us a request: {:.2} times", ours / floor);
    Ok(())
}
