//! client ADDRESS PORT PATH PAYLOAD: for every number N on standard input, makes N GETs one after the other, and prints the
//! number answered with the payload.

use std::io::{BufRead, Write};

use coap::request::RequestBuilder;
use coap::UdpCoAPClient;
use coap_lite::{MessageClass, RequestType, ResponseType};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, port, path, payload] = &words[..] else { return Err("ADDRESS PORT PATH PAYLOAD".into()) };
    let runtime = tokio::runtime::Runtime::new()?;
    let client = runtime.block_on(UdpCoAPClient::new(format!("{address}:{port}")))?;
    let mut asked = 0_u32;
    for line in std::io::stdin().lock().lines() {
        let count: u32 = line?.trim().parse()?;
        let answered = runtime.block_on(async {
            let mut answered = 0;
            for _ in 0..count {
                asked = asked.wrapping_add(1);
                let token = asked.to_be_bytes().to_vec();
                let request = RequestBuilder::new(path, RequestType::Get).token(Some(token)).build();
                if let Ok(response) = client.send(request).await {
                    let content =
                        response.message.header.code == MessageClass::Response(ResponseType::Content);
                    answered += u32::from(content && response.message.payload == payload.as_bytes());
                }
            }
            answered
        });
        println!("{answered}");
        std::io::stdout().flush()?;
    }
    Ok(())
}
