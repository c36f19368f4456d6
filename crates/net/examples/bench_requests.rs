//! The client that `bench/peers` measures: `bench_requests ADDRESS PORT PATH PAYLOAD`
//!
//! For every number N on a line of standard input it makes N confirmable GETs, one after the other, and prints how many
//! were answered with the payload.

use std::io::{BufRead, Write};

use coapace_net::Client;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, port, path, payload] = &words[..] else { return Err("ADDRESS PORT PATH PAYLOAD".into()) };
    let uri = format!("coap://{address}:{port}/{path}");
    let client = Client::new();
    for line in std::io::stdin().lock().lines() {
        let count: u32 = line?.trim().parse()?;
        // A task is woken by what it waits for; the main future only after the runtime has asked the system for more.
        println!("{}", tokio::spawn(ask(client.clone(), uri.clone(), payload.clone(), count)).await?);
        std::io::stdout().flush()?;
    }
    Ok(())
}

/// So many requests, one after the other. Returns how many were answered with the payload.
async fn ask(client: Client, uri: String, payload: String, count: u32) -> u32 {
    let mut answered = 0;
    for _ in 0..count {
        if let Ok(response) = client.get(&uri).await {
            answered += u32::from(response.is_success() && response.payload == payload.as_bytes());
        }
    }
    answered
}
