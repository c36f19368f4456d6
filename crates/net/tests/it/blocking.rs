//! A client without a runtime.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use coapace_net::blocking::Client;
use coapace_net::{
    Code, Datagram, Direction, Error, Interceptor, Rejection, Request, Resource, Response, Router, Server,
};

/// A server in a thread of its own, as the client has no runtime to share. Returns where it is.
fn serve() -> String {
    let (count, written) = (Arc::new(AtomicU32::new(0)), Resource::new());
    let read = count.clone();
    let router = Router::new()
        .observe("/count", &written.clone(), move |_| {
            let count = read.load(Ordering::Relaxed);
            async move { Ok::<_, Rejection>(Response::content(count.to_string()).max_age(60)) }
        })
        .post("/count", move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            written.changed();
            async { Ok::<_, Rejection>(Response::changed()) }
        })
        .get("/hello", async |_: Request| Ok::<_, Rejection>(Response::content("Hello")))
        .get("/large", async |_: Request| Ok::<_, Rejection>(Response::content("0123456789".repeat(500))))
        .get("/later", async |_: Request| {
            tokio::time::sleep(Duration::from_millis(300)).await;
            Ok::<_, Rejection>(Response::content("at last"))
        })
        .put("/length", async |request: Request| {
            Ok::<_, Rejection>(Response::changed().payload(request.payload().len().to_string()))
        });
    let config = crate::common::one_core();
    let server = Server::bind_with("127.0.0.1:0", config).unwrap();
    let uri = format!("coap://{}", server.local_addr().unwrap());
    std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(server.serve(router))
    });
    uri
}

#[test]
fn the_blocking_client_fetches_small_and_large_representations() {
    let (server, mut client) = (serve(), Client::new());
    for _ in 0..3 {
        assert_eq!(client.get(&format!("{server}/hello")).unwrap().text(), "Hello");
    }
    assert_eq!(client.get(&format!("{server}/large")).unwrap().payload.len(), 5_000);
    let put =
        client.request(Code::PUT, &format!("{server}/length"), |call| call.payload(vec![7; 30_000])).unwrap();
    assert_eq!(put.text(), "30000");
    assert_eq!(client.stats().endpoint.given_up, 0);
    assert_eq!(client.destinations().len(), 1);
}

#[test]
fn the_blocking_client_waits_for_a_separate_response_and_measures_the_time() {
    let (server, mut client) = (serve(), Client::new());
    let response = client.get(&format!("{server}/later")).unwrap();
    assert_eq!(response.text(), "at last");
    let elapsed = response.elapsed.as_millis();
    assert!((300..3_000).contains(&elapsed), "{elapsed} ms");
}

/// Loses the first transmission of each request.
#[derive(Debug, Default)]
struct Loss {
    sent: AtomicU32,
}

impl Interceptor for Loss {
    fn pass(&self, datagram: &Datagram<'_>) -> bool {
        datagram.direction == Direction::Received || self.sent.fetch_add(1, Ordering::Relaxed) % 2 == 1
    }
}

#[test]
fn the_blocking_client_retransmits_a_lost_request_after_its_timeout() {
    let server = serve();
    let tap = Arc::new(Loss::default());
    let builder = Client::builder().mechanism("default:ack_timeout=50ms".parse().unwrap());
    let mut client = builder.interceptor(tap).build_blocking();
    for _ in 0..3 {
        let response = client.get(&format!("{server}/hello")).unwrap();
        assert_eq!((response.text().as_ref(), response.transmissions), ("Hello", 2));
        assert!(response.elapsed >= Duration::from_millis(50), "{:?}", response.elapsed);
    }
}

#[test]
fn the_blocking_client_gives_up_at_the_timeout_of_the_call() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let uri = format!("coap://{}/x", silent.local_addr().unwrap());
    let mut client = Client::new();
    let begun = Instant::now();
    let timed_out = client.request(Code::PUT, &uri, |call| call.timeout(Duration::from_millis(100)));
    assert!(matches!(timed_out, Err(Error::TimedOut)), "{timed_out:?}");
    assert!((100..1_500).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());

    let hello = client.get(&format!("{}/hello", serve()));
    assert_eq!(hello.unwrap().text(), "Hello", "it goes on");
}

#[test]
fn the_blocking_client_rejects_unsupported_schemes_and_invalid_uris_at_once() {
    let mut client = Client::new();
    assert!(matches!(client.get("coaps://[::1]/x"), Err(Error::Scheme(_))));
    assert!(matches!(client.get("coap+tcp://[::1]/x"), Err(Error::Scheme(_))));
    assert!(matches!(client.get("coap:/x"), Err(Error::Uri(_))));
    assert!(matches!(client.get("coap://host.invalid/x"), Err(Error::NotFound { .. })));
}

#[test]
fn the_blocking_client_has_a_function_for_every_method() {
    let (server, mut client) = (serve(), Client::new());
    let (count, length) = (format!("{server}/count"), format!("{server}/length"));
    assert_eq!(client.post(&count, "").unwrap().code, Code::CHANGED);
    assert_eq!(client.put(&length, "21.5").unwrap().text(), "4");
    for refused in [client.delete(&length), client.fetch(&length, "x"), client.patch(&length, "x")] {
        assert_eq!(refused.unwrap().code, Code::METHOD_NOT_ALLOWED);
    }
    assert_eq!(client.ipatch(&length, "x").unwrap().code, Code::METHOD_NOT_ALLOWED);
    assert_eq!(client.ping(&server).unwrap().code, Code::EMPTY);
    assert_eq!(client.metrics().stats.endpoint.given_up, 0);
}

#[test]
fn the_blocking_client_receives_notifications_that_arrived_between_calls() {
    let (server, mut client, mut other) = (serve(), Client::new(), Client::new());
    let uri = format!("{server}/count");
    let mut seen = client.observe(&uri).unwrap();
    assert_eq!(seen.first().text(), "0");
    for count in 1..=3 {
        other.post(&uri, "").unwrap();
        assert_eq!(seen.next().unwrap().unwrap().text(), count.to_string());
    }
    let nothing = seen.next_within(Duration::from_millis(50)).unwrap();
    assert!(matches!(nothing, Err(Error::TimedOut)), "{nothing:?}");
    other.post(&uri, "").unwrap();
    assert_eq!(seen.next().unwrap().unwrap().text(), "4", "it goes on");
    seen.end().unwrap();
    assert_eq!(client.get(&uri).unwrap().text(), "4", "the client is free again");
}

#[test]
fn the_blocking_client_does_not_wait_for_an_observation_that_has_ended() {
    let (server, mut client) = (serve(), Client::new());
    let refused = client.observe(&format!("{server}/nothing"));
    assert!(
        matches!(&refused, Err(Error::NotObserved(response)) if response.code == Code::NOT_FOUND),
        "{refused:?}"
    );
    drop(refused);
    let mut once = client.observe(&format!("{server}/hello")).unwrap();
    assert_eq!(once.first().text(), "Hello");
    assert!(once.next().is_none());
}

#[test]
fn a_dropped_observation_does_not_delay_the_next_request() {
    let (server, silent) = (serve(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let mut client = Client::new();
    drop(client.observe(&format!("{server}/count")).unwrap());
    let uri = format!("coap://{}/x", silent.local_addr().unwrap());
    let other = client.request(Code::GET, &uri, |call| call.timeout(Duration::from_millis(20)));
    assert!(matches!(other, Err(Error::TimedOut)), "{other:?}");
    assert_eq!(client.get(&format!("{server}/hello")).unwrap().text(), "Hello");
}
