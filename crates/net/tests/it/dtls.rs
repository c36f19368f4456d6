//! `coaps` over loopback: clients and servers of this crate, and what strangers do to them.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::{Running, echo, run, until};
use crate::secured::{KEY, keys};
use coapace_net::{
    Client, Datagram, Direction, Dtls, Error, Identity, Interceptor, Refused, Rejection, Request, Resource,
    Response, Router, Server, ServerConfig,
};
use proptest::prelude::*;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::sync::oneshot::{self, Sender};
use tokio::time::{sleep, timeout};

fn router() -> Router {
    Router::new()
        .get("/hello", |_| async { Ok::<_, Rejection>(Response::content("Hello!")) })
        .get("/slow", |_| async {
            sleep(Duration::from_millis(400)).await;
            Ok::<_, Rejection>(Response::content("done"))
        })
        .post("/echo", echo)
}

fn serve() -> Running {
    crate::secured::serve(router(), &keys())
}

fn client(identity: &str, key: &[u8]) -> Client {
    Client::builder().dtls(Dtls::client(identity, key)).build()
}

#[tokio::test]
async fn the_first_request_opens_a_dtls_session_for_all_requests() {
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
async fn a_handler_gets_the_psk_identity_of_the_client() {
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
async fn separate_responses_pings_and_the_largest_payloads_work_over_dtls() {
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
async fn many_tasks_share_one_dtls_session() {
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
async fn a_wrong_key_or_identity_fails_the_request_at_once_with_a_clear_error() {
    let server = serve();
    for (nth, client) in [client("lamp-7", b"another"), client("lamp-8", KEY)].iter().enumerate() {
        let call = timeout(Duration::from_secs(60), client.get(&server.uri("/hello")).into_future());
        let error = call.await.expect("no timeout").unwrap_err();
        assert!(matches!(error, Error::Session(Refused::Alert(51))), "{error:?}");
        assert_eq!(error.to_string(), "the server does not accept the identity or the key");
        let counted = server.handle.stats().dtls;
        assert_eq!((counted.handshakes, counted.handshakes_failed), (0, nth as u64 + 1));
        assert_eq!(counted.alerts_sent, nth as u64 + 1);
    }
}

#[tokio::test]
async fn without_keys_no_request_is_sent_over_dtls() {
    let error = Client::new().get("coaps://127.0.0.1/hello").await.unwrap_err();
    assert!(matches!(error, Error::Session(Refused::NoKeys)), "{error:?}");
}

#[tokio::test]
async fn a_handshake_with_a_silent_server_ends_with_an_error() {
    let dtls = Dtls::client("lamp-7", KEY).handshake_timeout(Duration::from_millis(300));
    let client = Client::builder().dtls(dtls).build();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let error = client.get(&format!("coaps://{}/", silent.local_addr().unwrap())).await.unwrap_err();
    assert!(matches!(error, Error::Session(Refused::TimedOut)), "{error:?}");
}

#[tokio::test]
async fn after_the_server_closes_a_dtls_session_the_next_request_opens_another() {
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

/// Returns a client whose first timeout is short.
fn hasty() -> Client {
    let mechanism = "default:ack_timeout=200ms".parse().unwrap();
    Client::builder().dtls(Dtls::client("lamp-7", KEY)).mechanism(mechanism).build()
}

/// Returns a server that can be killed, so that it closes no session.
fn mortal(router: Router) -> (Running, Arc<Mute>) {
    let mute = Arc::new(Mute::default());
    let (interceptor, shutdown_timeout) = (Some(mute.clone() as Arc<_>), Duration::from_millis(50));
    let config = ServerConfig { cores: 1, interceptor, shutdown_timeout, ..ServerConfig::default() };
    (run("coaps", Server::bind_dtls("127.0.0.1:0", config, &keys()), router), mute)
}

/// Kills a server, and starts another that knows nothing of it.
async fn restart((mut server, mute): (Running, Arc<Mute>), router: Router) -> Running {
    mute.0.store(true, Ordering::Relaxed);
    let address = server.address;
    server.crash().await;
    drop(server);
    let config = crate::common::one_core();
    let bound = async {
        loop {
            match Server::bind_dtls(address, config.clone(), &keys()) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    sleep(Duration::from_millis(5)).await;
                }
                bound => break bound,
            }
        }
    };
    run("coaps", timeout(Duration::from_secs(60), bound).await.expect("free within 60 s"), router)
}

#[tokio::test]
async fn requests_to_a_restarted_server_are_answered_in_a_new_dtls_session() {
    let mortal = mortal(router());
    let (client, uri) = (hasty(), mortal.0.uri("/hello"));
    assert_eq!(client.get(&uri).await.unwrap().text(), "Hello!");
    let restarted = restart(mortal, router()).await;
    let response = client.get(&uri).await.unwrap();
    assert_eq!(response.text(), "Hello!");
    assert!(response.transmissions > 1);
    let response = client.post(&restarted.uri("/echo")).payload("a").await.unwrap();
    assert_eq!((response.text().as_ref(), response.transmissions), ("a", 1));
    let (here, there) = (client.stats().dtls, restarted.handle.stats().dtls);
    assert_eq!((here.lost, here.handshakes, here.handshakes_failed, there.handshakes), (1, 2, 0, 1));
}

#[tokio::test]
async fn observations_register_again_in_a_new_dtls_session() {
    let observed = |resource: &Resource, text: &'static str| {
        router().observe("/text", resource, move |_| async move {
            Ok::<_, Rejection>(Response::content(text).max_age(3_600))
        })
    };
    let mortal = mortal(observed(&Resource::new(), "before"));
    let (client, uri) = (hasty(), mortal.0.uri("/text"));
    let mut observation = client.observe(&uri).await.unwrap();
    assert_eq!(observation.first().text(), "before");
    let resource = Resource::new();
    let restarted = restart(mortal, observed(&resource, "after")).await;
    assert_eq!(client.get(&restarted.uri("/hello")).await.unwrap().text(), "Hello!");
    for _ in 0..2 {
        let next = timeout(Duration::from_secs(30), observation.next()).await.expect("long before Max-Age");
        assert_eq!(next.unwrap().unwrap().text(), "after");
        resource.changed();
    }
    assert_eq!(restarted.handle.metrics().observers, 1);
}

/// Forwards datagrams between a client and a server from a port of its own. For each channel that comes, it takes another port.
async fn translate(inside: tokio::net::UdpSocket, server: SocketAddr, mut again: Receiver<Sender<()>>) {
    let open = || async {
        let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("a port");
        socket.connect(server).await.expect("an address");
        socket
    };
    let (mut outside, mut client) = (open().await, None);
    let (mut there, mut back) = ([0; 2_048], [0; 2_048]);
    loop {
        tokio::select! {
            Ok((len, from)) = inside.recv_from(&mut there) => {
                client = Some(from);
                let _ = outside.send(&there[..len]).await;
            }
            Ok(len) = outside.recv(&mut back) => {
                let _ = inside.send_to(&back[..len], client.expect("it has sent")).await;
            }
            Some(tell) = again.recv() => {
                outside = open().await;
                let _ = tell.send(());
            }
        }
    }
}

#[tokio::test]
async fn a_new_nat_port_interrupts_neither_requests_nor_observations_over_dtls() {
    let resource = Resource::new();
    let text = |_| async { Ok::<_, Rejection>(Response::content("text").max_age(0)) };
    let server = crate::secured::serve(router().observe("/text", &resource, text), &keys());
    let inside = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let uri = |path| format!("coaps://{}{path}", inside.local_addr().unwrap());
    let (hello, text) = (uri("/hello"), uri("/text"));
    let (rebind, again) = channel(1);
    let nat = tokio::spawn(translate(inside, server.address, again));
    let rebind = || async {
        let (done, is_done) = oneshot::channel();
        rebind.send(done).await.unwrap();
        is_done.await.unwrap();
    };
    let client = hasty();
    assert_eq!(client.get(&hello).await.unwrap().text(), "Hello!");
    rebind().await;
    assert_eq!(client.get(&hello).await.unwrap().text(), "Hello!");
    assert_eq!((client.stats().dtls.lost, server.handle.stats().dtls.handshakes), (1, 2));

    let mut observation = client.observe(&text).await.unwrap();
    rebind().await;
    resource.changed();
    let next = timeout(Duration::from_secs(60), observation.next()).await;
    assert_eq!(next.expect("some 15 s after Max-Age").unwrap().unwrap().text(), "text");
    assert!(client.stats().dtls.lost >= 2);
    nat.abort();
}

/// Drops the records of a server that are no part of a handshake, until one is that is.
#[derive(Debug, Default)]
struct Deaf {
    begun: AtomicBool,
    over: AtomicBool,
}

impl Interceptor for Deaf {
    fn pass(&self, datagram: &Datagram<'_>) -> bool {
        let is_received = datagram.direction == Direction::Received;
        if is_received && self.begun.load(Ordering::Relaxed) && datagram.bytes.first() == Some(&22) {
            self.over.store(true, Ordering::Relaxed);
        }
        !is_received
            || datagram.bytes.first() == Some(&22)
            || !self.begun.load(Ordering::Relaxed)
            || self.over.load(Ordering::Relaxed)
    }
}

#[tokio::test]
async fn packet_loss_does_not_end_a_dtls_session_while_a_second_handshake_runs() {
    let server = serve();
    let deaf = Arc::new(Deaf::default());
    let mechanism = "default:ack_timeout=100ms".parse().unwrap();
    let client = Client::builder().dtls(Dtls::client("lamp-7", KEY)).mechanism(mechanism);
    let client = client.interceptor(deaf.clone()).build();
    let uri = server.uri("/hello");
    assert_eq!(client.get(&uri).await.unwrap().text(), "Hello!");
    deaf.begun.store(true, Ordering::Relaxed);
    assert_eq!(client.get(&uri).await.unwrap().text(), "Hello!");
    assert!(deaf.over.load(Ordering::Relaxed), "the server has answered another handshake");
    assert_eq!(client.get(&uri).await.unwrap().transmissions, 1);
    let (here, there) = (client.stats().dtls, server.handle.stats().dtls);
    assert_eq!((here.lost, here.handshakes, there.handshakes, there.cookies_asked), (0, 1, 1, 2));
}

#[tokio::test]
async fn a_dropped_client_closes_its_dtls_session() {
    let server = serve();
    let client = client("lamp-7", KEY);
    client.get(&server.uri("/hello")).await.unwrap();
    drop(client);
    until(|| server.handle.stats().dtls.closed_by_peer == 1).await;
}

#[tokio::test]
async fn the_least_recently_used_dtls_session_is_replaced_and_can_be_opened_again() {
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
fn ten_thousand_client_hellos_without_a_cookie_take_no_memory() {
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
            // HelloVerifyRequest: shorter than the ClientHello.
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
fn garbage_datagrams_end_neither_a_dtls_session_nor_the_server() {
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
