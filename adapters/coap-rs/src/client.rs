//! client MECHANISM HOST:PORT COUNT CLIENTS: so many clients make COUNT confirmable GETs each, one after the other. Prints
//! `CLIENT MILLISECONDS ok` or `CLIENT MILLISECONDS failed` for each. `stock` is coap-rs as it ships.

use std::io::Write;
use std::net::SocketAddr;
use std::time::Instant;

use coap::client::{ClientTransport, CoAPClient, UdpCoAPClient, UdpTransport};
use coap_lite::{CoapRequest, MessageType, RequestType};
use tokio::net::UdpSocket;

fn usage(problem: &str) -> ! {
    eprintln!("{problem}; usage: client MECHANISM HOST:PORT COUNT CLIENTS");
    std::process::exit(2)
}

async fn ask<T: ClientTransport + 'static>(number: u32, client: CoAPClient<T>, count: u32) {
    for place in 0..count {
        let mut request: CoapRequest<SocketAddr> = CoapRequest::new();
        request.set_method(RequestType::Get);
        request.set_path("/");
        request.message.header.set_type(MessageType::Confirmable);
        // A late answer to another request must not pass for one to this.
        request.message.set_token(place.to_be_bytes().to_vec());
        let begun = Instant::now();
        let word = if client.send(request).await.is_ok() { "ok" } else { "failed" };
        let mut out = std::io::stdout().lock();
        // A reader that is gone wants no more lines.
        let line =
            writeln!(out, "{number} {} {word}", begun.elapsed().as_millis()).and_then(|()| out.flush());
        if line.is_err() {
            return;
        }
    }
}

async fn transport(to: SocketAddr) -> std::io::Result<UdpTransport> {
    let from = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    Ok(UdpTransport { socket: UdpSocket::bind(from).await?, peer_addr: to })
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [mechanism, to, count, clients] = &words[..] else { usage("four words are needed") };
    let (Ok(count), Ok(clients)) = (count.parse(), clients.parse::<u32>()) else {
        usage("COUNT and CLIENTS are numbers")
    };
    let Some(to) = tokio::net::lookup_host(to).await?.next() else { usage("HOST has no address") };
    let mut all = Vec::new();
    for number in 0..clients {
        if mechanism == "stock" {
            all.push(tokio::spawn(ask(number, UdpCoAPClient::from_transport(transport(to).await?), count)));
        } else {
            let mechanism = mechanism.parse().unwrap_or_else(|error| usage(&format!("{error}")));
            all.push(tokio::spawn(ask(
                number,
                coapace_coap_rs::client(transport(to).await?, mechanism),
                count,
            )));
        }
    }
    for one in all {
        one.await?;
    }
    Ok(())
}
