//! server ADDRESS PORT PATH PAYLOAD: one resource.

use std::net::SocketAddr;

use coap::Server;
use coap_lite::{CoapRequest, RequestType, ResponseType};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, port, path, payload] = &words[..] else { return Err("ADDRESS PORT PATH PAYLOAD".into()) };
    let (path, payload): (&'static str, &'static str) = (path.clone().leak(), payload.clone().leak());
    tokio::runtime::Runtime::new()?.block_on(async {
        let server = Server::new_udp(format!("{address}:{port}"))?;
        let handler = move |mut request: Box<CoapRequest<SocketAddr>>| async move {
            let found = *request.get_method() == RequestType::Get && request.get_path() == path;
            if let Some(response) = &mut request.response {
                if found {
                    response.set_status(ResponseType::Content);
                    response.message.payload = payload.as_bytes().to_vec();
                } else {
                    response.set_status(ResponseType::NotFound);
                }
            }
            request
        };
        server.run(handler).await?;
        Ok(())
    })
}
