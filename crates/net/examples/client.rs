//! A GET, or a PUT if there is a payload, with any mechanism:
//! `cargo run -p coapace-net --example client -- coap://localhost/greetings/you [MECHANISM [PAYLOAD]]`

use coapace_net::{Client, Mechanism};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let uri = arguments.next().unwrap_or_else(|| String::from("coap://localhost/greetings/you"));
    let mechanism: Mechanism = arguments.next().as_deref().unwrap_or("default").parse()?;
    let client = Client::builder().mechanism(mechanism).build();

    let call = match arguments.next() {
        Some(payload) => client.put(&uri).payload(payload),
        None => client.get(&uri),
    };
    let response = call.await?;
    println!("{}.{:02} {}", response.code.0 >> 5, response.code.0 & 31, response.text());
    println!("{:?}, {} transmissions", response.elapsed, response.transmissions);
    for (_, destination) in client.destinations() {
        println!("{destination:?}");
    }
    Ok(())
}
