//! Servers that are started before they answer, and whether they live.

use std::net::{TcpListener, UdpSocket};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use coapace_net::{Client, Rejection, Request, Response, Router, Server, ServerConfig};
use tokio::time::timeout;

async fn hello(_: Request) -> Result<Response, Rejection> {
    Ok(Response::content("hello"))
}

fn two_cores() -> ServerConfig {
    ServerConfig { cores: 2, ..ServerConfig::default() }
}

#[tokio::test]
async fn a_started_server_also_answers_requests_that_arrived_before_it_ran() {
    let router = Router::new().get("/", hello);
    for (scheme, server) in [
        ("coap", Server::bind_with("127.0.0.1:0", two_cores()).unwrap()),
        ("coap+tcp", Server::bind_tcp("127.0.0.1:0", two_cores()).unwrap()),
    ] {
        let uri = format!("{scheme}://{}/", server.local_addr().unwrap());
        let started = server.start(&router).unwrap();
        let handle = started.handle();
        let asked = tokio::spawn(async move { Client::new().get(&uri).await });
        let running = tokio::spawn(started.run());
        assert_eq!(asked.await.unwrap().unwrap().text(), "hello");
        timeout(Duration::from_secs(60), handle.pulse()).await.unwrap();
        handle.shutdown();
        running.await.unwrap().unwrap();
        // Cores that have ended do not keep anybody waiting.
        timeout(Duration::from_secs(60), handle.pulse()).await.unwrap();
    }
}

#[tokio::test]
async fn a_dropped_server_releases_its_port() {
    let server = Server::bind_with("127.0.0.1:0", two_cores()).unwrap();
    let address = server.local_addr().unwrap();
    drop(server.start(&Router::new()).unwrap());
    let bound = || UdpSocket::bind(address).is_ok();
    timeout(Duration::from_secs(60), async {
        while !bound() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_handler_that_blocks_its_thread_stops_the_servers_sign_of_life() {
    let (release, released) = mpsc::channel::<()>();
    let released = Arc::new(Mutex::new(released));
    let (entered, mut has_entered) = tokio::sync::mpsc::unbounded_channel();
    let router = Router::new().get("/", move |_| {
        let (released, entered) = (released.clone(), entered.clone());
        async move {
            entered.send(()).unwrap();
            // This blocks the thread and not the task.
            let _ = released.lock().unwrap().recv();
            Ok::<_, Rejection>(Response::content("at last"))
        }
    });
    let config = crate::common::one_core();
    let server = Server::bind_with("127.0.0.1:0", config).unwrap();
    let uri = format!("coap://{}/", server.local_addr().unwrap());
    let started = server.start(&router).unwrap();
    let handle = started.handle();
    tokio::spawn(started.run());
    timeout(Duration::from_secs(60), handle.pulse()).await.unwrap();
    let asked = tokio::spawn(async move { Client::new().get(&uri).await });
    has_entered.recv().await.unwrap();
    assert!(timeout(Duration::from_millis(300), handle.pulse()).await.is_err());
    drop(release);
    timeout(Duration::from_secs(60), handle.pulse()).await.unwrap();
    assert_eq!(asked.await.unwrap().unwrap().text(), "at last");
}

#[tokio::test]
async fn a_server_answers_on_sockets_bound_by_the_caller() {
    let router = Router::new().get("/", hello);
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let uris = [
        format!("coap://{}/", udp.local_addr().unwrap()),
        format!("coap+tcp://{}/", tcp.local_addr().unwrap()),
    ];
    tokio::spawn(Server::adopt(vec![udp], two_cores()).unwrap().serve(router.clone()));
    tokio::spawn(Server::adopt_tcp(tcp, two_cores()).unwrap().serve(router));
    for uri in uris {
        assert_eq!(Client::new().get(&uri).await.unwrap().text(), "hello");
    }
    assert!(Server::adopt(Vec::new(), two_cores()).is_err());
}
