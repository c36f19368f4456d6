//! A server over WebSockets on port 8080, or at the given address: GET /hello, and /clock, which can be observed.

use std::time::Duration;

use coapace_net::{Rejection, Resource, Response, Router, Server, ServerConfig};

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| String::from("[::1]:8080"));
    let (begun, clock) = (std::time::Instant::now(), Resource::new());
    let router = Router::new()
        .get("/hello", |_| async { Ok::<_, Rejection>(Response::content("Hello!")) })
        .observe("/clock", &clock, move |_| async move {
            Ok::<_, Rejection>(Response::content(begun.elapsed().as_secs().to_string()))
        });
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            clock.changed();
        }
    });
    Server::bind_ws(address, ServerConfig::default())?.serve(router).await
}
