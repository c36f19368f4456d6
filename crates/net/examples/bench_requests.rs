//! The client that `evidence/peers` measures: `bench_requests ADDRESS PORT PATH PAYLOAD`
//!
//! For every number N on a line of standard input it makes N confirmable GETs, one after the other, and prints how many were
//! answered with the payload.

use std::io::{BufRead, Write};

use coapace_net::blocking::Client;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, port, path, payload] = &words[..] else { return Err("ADDRESS PORT PATH PAYLOAD".into()) };
    let uri = format!("coap://{address}:{port}/{path}");
    let mut client = Client::new();
    for line in std::io::stdin().lock().lines() {
        let count: u32 = line?.trim().parse()?;
        let mut answered = 0;
        for _ in 0..count {
            if let Ok(response) = client.get(&uri) {
                answered += u32::from(response.is_success() && response.payload == payload.as_bytes());
            }
        }
        println!("{answered}");
        std::io::stdout().flush()?;
    }
    Ok(())
}
