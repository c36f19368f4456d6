//! A GET over DTLS:
//! `cargo run -p coapace-net --example dtls_client -- coaps://127.0.0.1/greetings/you lamp-7 'a long secret'`

use coapace_net::{Client, Dtls};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(uri), Some(identity), Some(key)) = (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("expected URI IDENTITY KEY".into());
    };
    let client = Client::builder().dtls(Dtls::client(identity, key)).build();
    let response = client.get(&uri).await?;
    println!("{}.{:02} {}", response.code.0 >> 5, response.code.0 & 31, response.text());
    println!("{:?}, {} transmissions", response.elapsed, response.transmissions);
    Ok(())
}
