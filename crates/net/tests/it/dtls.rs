//! `coaps` over loopback: clients and servers of this crate, and what strangers do to them.

use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::{Running, run, until};
use crate::secured::{KEY, keys};
use coapace_net::{
    Client, Datagram, Dtls, Error, Identity, Interceptor, Refused, Rejection, Request, Response, Router,
    Server, ServerConfig,
};
use proptest::prelude::*;
use tokio::time::{sleep, timeout};

fn router() -> Router {
    Router::new()
        .get("/hello", |_| async { Ok::<_, Rejection>(Response::content("Hello!")) })
        .get("/slow", |_| async {
            sleep(Duration::from_millis(400)).await;
            Ok::<_, Rejection>(Response::content("done"))
        })
        .post("/echo", |request: Request| async move {
            Ok::<_, Rejection>(Response::content(request.payload().to_vec()))
        })
}

fn serve() -> Running {
    crate::secured::serve(router(), &keys())
}

fn client(identity: &str, key: &[u8]) -> Client {
    Client::builder().dtls(Dtls::client(identity, key)).build()
}

#[tokio::test]
async fn a_session_begins_with_the_first_request_and_serves_all() {
    let server = serve();
    let client = client("lamp-7", KEY);
    for _ in 0..20 {
        let response = client.get(&server.uri("/hello")).await.unwrap();
        assert_eq!((response.text().as_ref(), response.transmissions), ("Hello!", 1));
    }
    let (here, there) = (client.stats().dtls, server.handle.stats().dtls);
    assert_eq!((here.handshakes, there.handshakes, there.cookies_asked), (1, 1, 1));
    assert_eq!((there.handshakes_failed, there.evicted, there.strays), (0, 0, 0));
}

#[tokio::test]
async fn a_handler_knows_the_identity_of_whoever_asks() {
    let who = |request: Request| async move {
        let Some(Identity::Psk(identity)) = request.peer_identity() else {
            return Err(Rejection::not_found());
        };
        Ok::<_, Rejection>(Response::content(identity.clone()))
    };
    let keys = Dtls::server(|identity| identity.starts_with(b"lamp-").then(|| KEY.to_vec()));
    let server = crate::secured::serve(Router::new().get("/who", who), &keys);
    let (seven, eight) = (client("lamp-7", KEY), client("lamp-8", KEY));
    for _ in 0..2 {
        assert_eq!(seven.get(&server.uri("/who")).await.unwrap().text(), "lamp-7");
        assert_eq!(eight.get(&server.uri("/who")).await.unwrap().text(), "lamp-8");
    }
}

#[tokio::test]
async fn separate_responses_pings_and_the_largest_payloads_pass() {
    let server = serve();
    let client = client("lamp-7", KEY);
    assert_eq!(client.get(&server.uri("/slow")).await.unwrap().text(), "done");
    client.ping(&server.uri("/")).await.unwrap();
    for len in [0, 1, 1_024, 1_152, 1_900] {
        let payload = vec![7; len];
        let response = client.post(&server.uri("/echo")).payload(payload.clone()).await.unwrap();
        assert_eq!(response.payload, payload, "{len}");
    }
}

#[tokio::test]
async fn many_tasks_share_one_session() {
    let server = serve();
    let client = client("lamp-7", KEY);
    let uri = server.uri("/hello");
    let calls: Vec<_> = (0..50).map(|_| tokio::spawn(client.get(&uri).into_future())).collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().text(), "Hello!");
    }
    assert_eq!(server.handle.stats().dtls.handshakes, 1);
}

#[tokio::test]
async fn a_wrong_key_and_a_wrong_identity_are_one_clear_error_at_once() {
    let server = serve();
    for (nth, client) in [client("lamp-7", b"another"), client("lamp-8", KEY)].iter().enumerate() {
        let call = timeout(Duration::from_secs(5), client.get(&server.uri("/hello")).into_future());
        let error = call.await.expect("no timeout").unwrap_err();
        assert!(matches!(error, Error::Session(Refused::Alert(51))), "{error:?}");
        assert_eq!(error.to_string(), "the server does not accept the identity or the key");
        let counted = server.handle.stats().dtls;
        assert_eq!((counted.handshakes, counted.handshakes_failed), (0, nth as u64 + 1));
        assert_eq!(counted.alerts_sent, nth as u64 + 1);
    }
}

#[tokio::test]
async fn without_keys_there_is_no_request() {
    let error = Client::new().get("coaps://127.0.0.1/hello").await.unwrap_err();
    assert!(matches!(error, Error::Session(Refused::NoKeys)), "{error:?}");
}

#[tokio::test]
async fn a_server_that_is_not_there_or_keeps_silent_ends_the_handshake() {
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let dtls = Dtls::client("lamp-7", KEY).handshake_timeout(Duration::from_millis(300));
    let client = Client::builder().dtls(dtls).build();
    let error = client.get(&format!("coaps://{closed}/")).await.unwrap_err();
    if cfg!(target_os = "linux") {
        assert!(matches!(error, Error::Session(Refused::Unreachable(_))), "{error:?}");
    }
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let error = client.get(&format!("coaps://{}/", silent.local_addr().unwrap())).await.unwrap_err();
    assert!(matches!(error, Error::Session(Refused::TimedOut)), "{error:?}");
}

#[tokio::test]
async fn a_session_closed_by_the_server_begins_anew() {
    let keys = keys().idle_timeout(Duration::from_millis(100));
    let server = crate::secured::serve(router(), &keys);
    let client = client("lamp-7", KEY);
    for nth in 1..=3 {
        assert_eq!(client.get(&server.uri("/hello")).await.unwrap().text(), "Hello!");
        until(|| server.handle.stats().dtls.idle == nth && client.stats().dtls.closed_by_peer == nth).await;
    }
    assert_eq!(server.handle.stats().dtls.handshakes, 3);
}

/// Drops everything once it is set.
#[derive(Debug, Default)]
struct Mute(AtomicBool);

impl Interceptor for Mute {
    fn pass(&self, _: &Datagram<'_>) -> bool {
        !self.0.load(Ordering::Relaxed)
    }
}

#[tokio::test]
async fn a_server_that_was_restarted_is_found_by_the_next_request_but_one() {
    let mute = Arc::new(Mute::default());
    let config = ServerConfig { cores: 1, interceptor: Some(mute.clone()), ..ServerConfig::default() };
    let mut server = run("coaps", Server::bind_dtls("127.0.0.1:0", config, &keys()), router());
    let dtls = Dtls::client("lamp-7", KEY).lost_after(Duration::from_millis(100));
    let mechanism = "default:ack_timeout=20ms".parse().unwrap();
    let client = Client::builder().dtls(dtls).mechanism(mechanism).build();
    let uri = server.uri("/hello");
    assert_eq!(client.get(&uri).await.unwrap().text(), "Hello!");

    // Killed: it closes no session, and forgets all.
    mute.0.store(true, Ordering::Relaxed);
    let address = server.address;
    server.crash().await;
    drop(server);
    let config = ServerConfig { cores: 1, ..ServerConfig::default() };
    let restarted = loop {
        match Server::bind_dtls(address, config.clone(), &keys()) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => sleep(Duration::from_millis(5)).await,
            bound => break run("coaps", bound, router()),
        }
    };
    let _ = timeout(Duration::from_secs(10), client.get(&uri).into_future()).await.expect("given up");
    assert_eq!(client.get(&uri).await.unwrap().text(), "Hello!");
    assert_eq!((client.stats().dtls.lost, restarted.handle.stats().dtls.handshakes), (1, 1));
}

#[tokio::test]
async fn a_client_that_is_dropped_closes_its_session() {
    let server = serve();
    let client = client("lamp-7", KEY);
    client.get(&server.uri("/hello")).await.unwrap();
    drop(client);
    until(|| server.handle.stats().dtls.closed_by_peer == 1).await;
}

#[tokio::test]
async fn the_session_unused_for_longest_makes_room_and_comes_back() {
    let server = crate::secured::serve(router(), &keys().max_sessions(2));
    let clients: Vec<_> = (0..3).map(|_| client("lamp-7", KEY)).collect();
    for client in &clients {
        client.get(&server.uri("/hello")).await.unwrap();
    }
    assert_eq!(server.handle.stats().dtls.evicted, 1);
    until(|| clients[0].stats().dtls.closed_by_peer == 1).await;
    clients[0].get(&server.uri("/hello")).await.unwrap();
    assert_eq!(server.handle.stats().dtls.handshakes, 4);
}

/// A ClientHello as it leaves a client of this crate.
fn hello() -> Vec<u8> {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    silent.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let uri = format!("coaps://{}/", silent.local_addr().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let call = client("lamp-7", KEY).get(&uri).timeout(Duration::from_millis(50));
    let _ = runtime.block_on(call.into_future());
    let mut bytes = [0; 2048];
    let len = silent.recv(&mut bytes).unwrap();
    bytes[..len].to_vec()
}

#[test]
fn ten_thousand_hellos_without_a_cookie_leave_nothing_behind() {
    let hello = hello();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let _inside = runtime.enter();
    // With room for one session: none of the hellos takes it from the client.
    let server = crate::secured::serve(router(), &keys().max_sessions(1));
    let client = client("lamp-7", KEY);
    let get = || runtime.block_on(client.get(&server.uri("/hello")).into_future()).unwrap();
    get();
    let mut answers = 0_u64;
    for nth in 0_u32..100 {
        let source = UdpSocket::bind("127.0.0.1:0").unwrap();
        source.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        for other in 0_u32..100 {
            let mut hello = hello.clone();
            // Another random, as of another client.
            hello[27..31].copy_from_slice(&(nth * 100 + other).to_be_bytes());
            source.send_to(&hello, server.address).unwrap();
            let mut answer = [0; 2048];
            let len = source.recv(&mut answer).unwrap();
            // HelloVerifyRequest: shorter than what it answers.
            assert_eq!((len, answer[13]), (60, 3));
            assert!(len < hello.len());
            answers += 1;
        }
    }
    get();
    let counted = server.handle.stats().dtls;
    assert_eq!(answers, 10_000);
    assert_eq!((counted.cookies_asked, counted.evicted, counted.handshakes), (10_001, 0, 1));
}

#[test]
fn garbage_ends_no_session_and_no_server() {
    let hello = hello();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let _inside = runtime.enter();
    let server = crate::secured::serve(router(), &keys());
    let client = client("lamp-7", KEY);
    let get = || runtime.block_on(client.get(&server.uri("/hello")).into_future()).unwrap();
    get();
    let source = UdpSocket::bind("127.0.0.1:0").unwrap();
    let changed = (Just(hello.clone()), prop::collection::vec((0..hello.len(), any::<u8>()), 1..8)).prop_map(
        |(mut bytes, changes)| {
            for (place, byte) in changes {
                bytes[place] = byte;
            }
            bytes
        },
    );
    let record =
        (20_u8..26, 0_u8..3, prop::collection::vec(any::<u8>(), 0..200)).prop_map(|(kind, epoch, body)| {
            let mut bytes = vec![kind, 0xfe, 0xfd, 0, epoch, 0, 0, 0, 0, 0, 9];
            bytes.extend_from_slice(&(body.len() as u16).to_be_bytes());
            bytes.extend(body);
            bytes
        });
    let garbage = prop_oneof![changed, record, prop::collection::vec(any::<u8>(), 0..300)];
    let config = ProptestConfig { cases: 2_000, ..ProptestConfig::default() };
    proptest!(config, |(bytes in garbage)| {
        source.send_to(&bytes, server.address).unwrap();
    });
    assert_eq!(get().text(), "Hello!");
    assert_eq!(server.handle.stats().dtls.handshakes, 1);
    assert_eq!(server.handle.stats().dtls.evicted, 0);
}
