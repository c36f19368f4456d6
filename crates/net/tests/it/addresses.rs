//! A name with several addresses, only one of which answers.

use std::future::IntoFuture;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use coapace_net::{Client, ClientBuilder, Error, Rejection, Request, Resource, Response, Router, Server};
use tokio::time::timeout;

use crate::common::{Running, one_core, run, until};

const LONG: Duration = Duration::from_secs(60);
const BOTH: [IpAddr; 2] = [IpAddr::V6(Ipv6Addr::LOCALHOST), IpAddr::V4(Ipv4Addr::LOCALHOST)];

fn router(puts: &Arc<AtomicU32>) -> Router {
    let puts = puts.clone();
    Router::new()
        .observe("/x", &Resource::new(), async |_| Ok::<_, Rejection>(Response::content("here")))
        .get("/large", async |_: Request| Ok::<_, Rejection>(Response::content(vec![b'x'; 3_000])))
        .put("/x", move |_| {
            puts.fetch_add(1, Ordering::Relaxed);
            async { Ok::<_, Rejection>(Response::changed()) }
        })
}

/// A server on IPv4 alone, which has counted its PUTs, and a socket at the same port of IPv6.
fn on_ipv4() -> (Running, Arc<AtomicU32>, UdpSocket) {
    let puts = Arc::default();
    loop {
        let v6 = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).expect("IPv6 of loopback");
        let place = (Ipv4Addr::LOCALHOST, v6.local_addr().unwrap().port());
        match Server::bind_with(place, one_core()) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            bound => return (run("coap", bound, router(&puts)), puts, v6),
        }
    }
}

/// Returns the builder of a client that knows the host `both`.
fn knowing() -> ClientBuilder {
    Client::builder().resolve("both", &BOTH)
}

fn uri(server: &Running, path: &str) -> String {
    format!("{}://both:{}{path}", server.scheme, server.address.port())
}

/// Returns how many datagrams have come to a socket.
fn received(socket: &UdpSocket) -> usize {
    socket.set_nonblocking(true).unwrap();
    std::iter::from_fn(|| socket.recv(&mut [0; 64]).ok()).count()
}

#[tokio::test]
async fn a_client_tries_the_second_address_of_a_name_if_the_first_refuses() {
    let (server, puts, v6) = on_ipv4();
    drop(v6);
    let client = knowing().build();
    let get = timeout(LONG, client.get(&uri(&server, "/x")).into_future()).await.unwrap().unwrap();
    assert_eq!(get.text(), "here");
    for number in 1..3 {
        let client = knowing().build();
        let put = client.put(&uri(&server, "/x")).payload("1").into_future();
        assert!(timeout(LONG, put).await.unwrap().unwrap().is_success());
        assert_eq!(puts.load(Ordering::Relaxed), number);
    }
    let client = knowing().build();
    assert!(timeout(LONG, client.ping(&uri(&server, "/"))).await.unwrap().is_ok());
    let client = knowing().build();
    let observation = timeout(LONG, client.observe(&uri(&server, "/x"))).await.unwrap().unwrap();
    assert_eq!(observation.first().text(), "here");
    let client = knowing().fail_fast().build();
    assert!(timeout(LONG, client.get(&uri(&server, "/x")).into_future()).await.unwrap().is_ok());
}

#[tokio::test]
async fn a_silent_first_address_costs_one_timeout_and_no_request_is_executed_twice() {
    let (server, puts, v6) = on_ipv4();
    let client = knowing().build();
    let get = timeout(LONG, client.get(&uri(&server, "/large")).into_future()).await.unwrap().unwrap();
    assert_eq!(get.payload.len(), 3_000, "all blocks are from the address that has answered");
    assert!(get.elapsed < Duration::from_secs(20), "{:?}", get.elapsed);
    assert!(received(&v6) > 0);
    for _ in 0..3 {
        client.put(&uri(&server, "/x")).payload("1").await.unwrap();
    }
    assert_eq!((puts.load(Ordering::Relaxed), received(&v6)), (3, 0), "the address is remembered");
    let other = knowing().build();
    other.put(&uri(&server, "/x")).payload("1").await.unwrap();
    assert_eq!(puts.load(Ordering::Relaxed), 4);
    v6.set_nonblocking(true).unwrap();
    let mut bytes = [0; 64];
    while let Ok(len) = v6.recv(&mut bytes) {
        assert_eq!((len, bytes[1]), (4, 0), "only pings look for the address of a PUT");
    }
}

#[tokio::test]
async fn an_address_that_stops_answering_loses_its_preference() {
    let (mut server, puts, v6) = on_ipv4();
    drop(v6);
    let client = knowing().mechanism("default:ack_timeout=50ms".parse().unwrap()).build();
    client.get(&uri(&server, "/x")).await.unwrap();
    let (uri, address) = (uri(&server, "/x"), server.address);
    server.crash().await;
    drop(server);
    until(|| UdpSocket::bind(address).is_ok()).await;
    assert!(client.get(&uri).await.is_err());
    let moved = SocketAddr::new(BOTH[0], address.port());
    let _server = run("coap", Server::bind_with(moved, one_core()), router(&puts));
    assert_eq!(client.get(&uri).await.unwrap().text(), "here");
}

#[test]
fn the_blocking_client_also_tries_all_addresses() {
    let (server, v6) = {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let inside = runtime.enter();
        let (server, _, v6) = on_ipv4();
        drop(inside);
        std::mem::forget(runtime);
        (server, v6)
    };
    let mut client = knowing().build_blocking();
    assert_eq!(client.get(&uri(&server, "/large")).unwrap().payload.len(), 3_000);
    assert!(client.put(&uri(&server, "/x"), "1").unwrap().is_success());
    drop(v6);
    let mut client = knowing().build_blocking();
    assert!(client.put(&uri(&server, "/x"), "1").unwrap().is_success());
}

#[tokio::test]
async fn a_tcp_connection_is_opened_to_the_address_that_accepts_it() {
    let bound = Server::bind_tcp((Ipv4Addr::LOCALHOST, 0), one_core());
    let server = run("coap+tcp", bound, router(&Arc::default()));
    let get = || async {
        let client = knowing().build();
        timeout(LONG, client.get(&uri(&server, "/x")).into_future()).await.unwrap().unwrap()
    };
    assert_eq!(get().await.text(), "here", "refused at the first");

    // A listener whose queue is full drops what asks for a connection.
    let socket = socket2::Socket::new(socket2::Domain::IPV6, socket2::Type::STREAM, None).unwrap();
    socket.set_only_v6(true).unwrap();
    socket.bind(&SocketAddr::new(BOTH[0], server.address.port()).into()).unwrap();
    socket.listen(0).unwrap();
    let hole = TcpListener::from(socket);
    let connect = std::net::TcpStream::connect_timeout;
    let full: Vec<_> =
        std::iter::from_fn(|| connect(&hole.local_addr().unwrap(), Duration::from_millis(300)).ok())
            .take(16)
            .collect();
    let begun = std::time::Instant::now();
    assert_eq!(get().await.text(), "here", "silence at the first");
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?} beside {} connections",
        begun.elapsed(),
        full.len()
    );
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn a_dtls_handshake_is_made_with_the_address_that_answers() {
    use crate::secured::{KEY, keys};
    let v6 = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).expect("IPv6 of loopback");
    let place = (Ipv4Addr::LOCALHOST, v6.local_addr().unwrap().port());
    let server = run("coaps", Server::bind_dtls(place, one_core(), &keys()), router(&Arc::default()));
    let client = || knowing().dtls(coapace_net::Dtls::client("lamp-7", KEY)).build();
    let get = timeout(LONG, client().get(&uri(&server, "/x")).into_future()).await.unwrap();
    assert_eq!(get.unwrap().text(), "here", "silence at the first");
    drop(v6);
    let get = timeout(LONG, client().get(&uri(&server, "/x")).into_future()).await.unwrap();
    assert_eq!(get.unwrap().text(), "here", "nobody at the first");
}

#[tokio::test]
async fn requests_to_a_link_local_address_without_a_zone_fail() {
    let client = Client::new();
    for uri in ["coap://[fe80::1]/", "coap+tcp://[fe80::1]/", "coap://[fe80::1%25no-such]/"] {
        let error = client.get(uri).await.unwrap_err();
        assert!(matches!(error, Error::Zone(_)), "{uri}: {error:?}");
    }
}
