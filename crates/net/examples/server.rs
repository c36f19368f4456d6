//! A server with a few resources: `cargo run -p coapace-net --example server -- [::]:5683`

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use coapace_net::{Rejection, Request, Response, Router, Server};

async fn greet(request: Request) -> Result<Response, Rejection> {
    let name = request.parameter("name").ok_or(Rejection::not_found())?;
    Ok(Response::content(format!("Hello, {name}!")).content_format(0))
}

/// Takes longer than the acknowledgement may be delayed, so the response is separate.
async fn slow(request: Request) -> Result<Response, Rejection> {
    let ms = request.argument("ms").unwrap_or("3000").parse()?;
    tokio::time::sleep(Duration::from_millis(ms)).await;
    Ok(Response::content("done"))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| String::from("[::]:5683"));
    let count = Arc::new(AtomicU64::new(0));
    let note = Arc::new(Mutex::new(String::from("nothing yet")));

    let (read, write) = (note.clone(), note);
    let router = Router::new()
        .get("/greetings/{name}", greet)
        .get("/slow", slow)
        .get("/count", move |_| {
            let count = count.fetch_add(1, Ordering::Relaxed);
            async move { Ok::<_, Rejection>(Response::content(count.to_string())) }
        })
        .get("/note", move |_| {
            let note = read.lock().unwrap_or_else(PoisonError::into_inner).clone();
            async move { Ok::<_, Rejection>(Response::content(note)) }
        })
        .put("/note", move |request: Request| {
            let written = request.text().map(|text| {
                text.clone_into(&mut write.lock().unwrap_or_else(PoisonError::into_inner));
                Response::changed()
            });
            async move { written }
        });

    let server = Server::bind(address)?;
    println!("listening on {}", server.local_addr()?);
    let handle = server.handle();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            println!("{:?}", handle.stats());
            handle.shutdown();
        }
    });
    server.serve(router).await?;
    Ok(())
}
