//! A server and a client with a lossy network between them.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::{serve, until};
use coapace_net::{Client, Error, Rejection, Request, Response, Router};

/// Passes datagrams on between one client and a server, if `passes` says so for the direction (true: to the server) and
/// the ordinal there. It ends with the process.
pub(crate) fn proxy(
    server: SocketAddr,
    passes: impl Fn(bool, u32) -> bool + Send + Sync + 'static,
) -> SocketAddr {
    let near = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
    let far = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
    far.connect(server).unwrap();
    let address = near.local_addr().unwrap();
    let passes = Arc::new(passes);
    thread::spawn({
        let (near, far, passes) = (near.clone(), far.clone(), passes.clone());
        move || {
            let mut buffer = [0; 2048];
            for nth in 0.. {
                let Ok((len, from)) = near.recv_from(&mut buffer) else { return };
                // The way back is known from now on.
                near.connect(from).unwrap();
                if passes(true, nth) {
                    far.send(&buffer[..len]).unwrap();
                }
            }
        }
    });
    thread::spawn(move || {
        let mut buffer = [0; 2048];
        for nth in 0.. {
            let Ok(len) = far.recv(&mut buffer) else { return };
            if passes(false, nth) {
                near.send(&buffer[..len]).unwrap();
            }
        }
    });
    address
}

fn impatient() -> Client {
    Client::builder().mechanism("default:ack_timeout=60ms".parse().unwrap()).build()
}

#[tokio::test]
async fn a_lost_request_is_retransmitted_and_executed_once() {
    let count = Arc::new(AtomicU32::new(0));
    let handled = count.clone();
    let server = serve(Router::new().post("/count", move |_: Request| {
        let nth = handled.fetch_add(1, Ordering::Relaxed);
        async move { Ok::<_, Rejection>(Response::changed().payload(nth.to_string())) }
    }));
    // Every third request is lost, and every fourth response.
    let address = proxy(server.address, |to_server, nth| nth % if to_server { 3 } else { 4 } != 0);
    let client = impatient();
    let mut transmissions = 0;
    for nth in 0..40 {
        let response = client.post(&format!("coap://{address}/count")).payload("x").await.unwrap();
        assert_eq!(response.text(), nth.to_string());
        transmissions += u64::from(response.transmissions);
    }
    assert_eq!(count.load(Ordering::Relaxed), 40, "each was carried out once");
    let (sent, received) = (client.stats().endpoint, server.handle.stats().endpoint);
    assert_eq!((transmissions, sent.started), (40 + sent.retransmissions, 40));
    assert!(sent.retransmissions > 20, "{sent:?}");
    assert!(received.duplicates > 10, "{received:?}");
}

#[tokio::test]
async fn a_separate_response_is_sent_again_until_it_is_acknowledged() {
    let server = serve(Router::new().get("/slow", |_: Request| async {
        tokio::time::sleep(Duration::from_millis(400)).await;
        Ok::<_, Rejection>(Response::content("late"))
    }));
    // To the client: the acknowledgement, then the response, whose first copy is lost.
    let address = proxy(server.address, |to_server, nth| to_server || nth != 1);
    let response = Client::new().get(&format!("coap://{address}/slow")).await.unwrap();
    assert_eq!((response.text().as_ref(), response.transmissions), ("late", 1));
    until(|| server.handle.stats().endpoint.completed == 1).await;
    let server = server.handle.stats().endpoint;
    assert_eq!((server.started, server.retransmissions, server.completed), (1, 1, 1));
}

#[tokio::test]
async fn a_non_confirmable_request_that_is_lost_is_not_sent_again() {
    let server =
        serve(Router::new().get("/x", |_: Request| async { Ok::<_, Rejection>(Response::content("x")) }));
    let address = proxy(server.address, |_, _| false);
    let uri = format!("coap://{address}/x");
    let call = impatient().get(&uri).non_confirmable().timeout(Duration::from_millis(600));
    assert!(matches!(call.await, Err(Error::TimedOut)));
    assert_eq!(server.handle.stats().endpoint.received, 0);
}

#[tokio::test]
async fn oversized_and_unexpected_datagrams_are_counted_and_the_server_keeps_running() {
    let server =
        serve(Router::new().get("/x", |_: Request| async { Ok::<_, Rejection>(Response::content("x")) }));
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.send_to(&[0x40; 4_000], server.address).unwrap();
    for bytes in [&b""[..], b"\xff", b"GET / HTTP/1.1", &[0x4f, 1, 0, 0], &[0x41, 1, 0, 0]] {
        stranger.send_to(bytes, server.address).unwrap();
    }
    let response = impatient().get(&server.uri("/x")).await.unwrap();
    assert_eq!(response.text(), "x");
    let stats = server.handle.stats();
    assert_eq!((stats.net.truncated, stats.endpoint.malformed, stats.endpoint.received), (1, 5, 6));
}
