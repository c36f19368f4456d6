//! A server over DTLS, with one identity and its key:
//! `cargo run -p coapace-net --example dtls_server -- 127.0.0.1:5684 lamp-7 'a long secret'`

use coapace_net::{Dtls, Rejection, Request, Response, Router, Server, ServerConfig};

async fn greet(request: Request) -> Result<Response, Rejection> {
    let name = request.parameter("name").ok_or(Rejection::not_found())?;
    Ok(Response::content(format!("Hello, {name}!")).content_format(0))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| String::from("127.0.0.1:5684"));
    let (Some(known), Some(key)) = (arguments.next(), arguments.next()) else {
        return Err("expected ADDRESS IDENTITY KEY".into());
    };
    let keys = Dtls::server(move |identity| (identity == known.as_bytes()).then(|| key.clone().into()));

    let server = Server::bind_dtls(address, ServerConfig::default(), &keys)?;
    println!("listening on {}", server.local_addr()?);
    let handle = server.handle();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            println!("{:?}", handle.stats().dtls);
            handle.shutdown();
        }
    });
    server.serve(Router::new().get("/greetings/{name}", greet)).await?;
    Ok(())
}
