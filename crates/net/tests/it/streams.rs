//! Behaviour that is the same over TCP, TLS and WebSockets.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::certified::Authority;
use crate::common::{Running, echo, run};
use coapace_net::{
    Bounds, Certificates, Client, Code, Error, Rejection, Request, Resource, Response, Router, Server,
    ServerConfig, TransferError,
};
use tokio::time::{sleep, timeout};

const SCHEMES: [&str; 4] = ["coap+tcp", "coaps+tcp", "coap+ws", "coaps+ws"];

/// A server with a resource that changes, and its client.
struct Changing {
    running: Running,
    client: Client,
    count: Arc<AtomicU32>,
    resource: Resource,
}

impl Deref for Changing {
    type Target = Running;
    fn deref(&self) -> &Running {
        &self.running
    }
}

impl Changing {
    fn change(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.resource.changed();
    }
}

fn serve(scheme: &'static str, config: ServerConfig) -> Changing {
    let authority = Authority::new();
    let own = authority.issue(&["127.0.0.1"]);
    let own = Certificates::new().identity(own.certificate.as_bytes(), own.key.as_bytes()).unwrap();
    let roots = Certificates::new().trust(authority.pem.as_bytes()).unwrap();
    let (count, resource) = (Arc::new(AtomicU32::new(0)), Resource::new());
    let (read, large) = (count.clone(), count.clone());
    let router = Router::new()
        .get("/hello", |_| async { Ok::<_, Rejection>(Response::content("Hello!")) })
        .get("/slow", |_| async {
            sleep(Duration::from_millis(200)).await;
            Ok::<_, Rejection>(Response::content("done"))
        })
        .post("/echo", echo)
        .observe("/count", &resource, move |request: Request| {
            let text = read.load(Ordering::Relaxed).to_string();
            let age = request.argument("age").map_or(Ok(60), str::parse);
            async move { Ok::<_, Rejection>(Response::content(text).max_age(age?)) }
        })
        .observe("/large", &resource, move |_| {
            let body = vec![large.load(Ordering::Relaxed) as u8; 150_000];
            async move { Ok::<_, Rejection>(Response::content(body)) }
        });
    let at = "127.0.0.1:0";
    let server = match scheme {
        "coap+tcp" => Server::bind_tcp(at, config),
        "coaps+tcp" => Server::bind_tls(at, config, &own),
        "coap+ws" => Server::bind_ws(at, config),
        _ => Server::bind_wss(at, config, &own),
    };
    let client = Client::builder().certificates(&roots).unwrap().build();
    Changing { running: run(scheme, server, router), client, count, resource }
}

fn all() -> impl Iterator<Item = Changing> {
    SCHEMES.into_iter().map(|scheme| serve(scheme, ServerConfig::default()))
}

#[tokio::test]
async fn concurrent_requests_share_a_connection_and_finish_in_any_sequence() {
    for server in all() {
        let client = &server.client;
        let (slow, hello) = (server.uri("/slow"), server.uri("/hello"));
        let (slow, hello) = tokio::join!(client.get(&slow).into_future(), client.get(&hello).into_future());
        let (slow, hello) = (slow.unwrap(), hello.unwrap());
        assert_eq!((slow.text().as_ref(), hello.text().as_ref()), ("done", "Hello!"), "{}", server.scheme);
        assert!(hello.elapsed < slow.elapsed);
        client.ping(&server.uri("/")).await.unwrap();
        assert_eq!(client.get(&server.uri("/nowhere")).await.unwrap().code, Code::NOT_FOUND);
        let counted = server.handle.stats().tcp;
        assert_eq!((counted.connections, counted.requests), (1, 3));
    }
}

#[tokio::test]
async fn bodies_larger_than_a_message_are_sent_and_received_in_blocks() {
    for server in all() {
        for len in [0_usize, 1, 1_152, 65_400, 65_600, 200_000] {
            let body: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            let call = server.client.post(&server.uri("/echo")).payload(body.clone());
            assert_eq!(call.await.unwrap().payload, body, "{} {len}", server.scheme);
        }
        let call = server.client.post(&server.uri("/echo")).payload(vec![7; 5_000]).block_size(256);
        assert_eq!(call.await.unwrap().payload, vec![7; 5_000], "{}", server.scheme);
        let error = server.client.get(&server.uri("/large")).max_body(100_000).await.unwrap_err();
        assert!(matches!(error, Error::Transfer(TransferError::TooLarge)), "{error:?}");
        assert_eq!(server.handle.stats().tcp.too_large, 0);
    }
}

#[tokio::test]
async fn a_body_larger_than_the_server_takes_is_answered_4_13() {
    let bodies = Bounds { max_body: 100_000, ..ServerConfig::default().bodies };
    let server = serve("coap+tcp", ServerConfig { bodies, ..ServerConfig::default() });
    let response = server.client.post(&server.uri("/echo")).payload(vec![7; 150_000]).await.unwrap();
    assert_eq!(response.code, Code::REQUEST_ENTITY_TOO_LARGE);
}

#[tokio::test]
async fn observers_over_a_connection_get_the_newest_state() {
    for server in all() {
        let mut seen = server.client.observe(&server.uri("/count")).await.unwrap();
        let mut large = server.client.observe(&server.uri("/large")).await.unwrap();
        assert_eq!((seen.first().text().as_ref(), large.first().payload.len()), ("0", 150_000));
        for nth in 1..=3_u8 {
            server.change();
            let notification = timeout(Duration::from_secs(60), seen.next()).await.expect("within 60 s");
            let notification = notification.unwrap().unwrap();
            assert_eq!(notification.text(), nth.to_string(), "{}", server.scheme);
            // Observe: 1 was in the first response.
            assert_eq!(notification.options.value(6), Some(&[nth + 1][..]), "{}", server.scheme);
            let notification = timeout(Duration::from_secs(60), large.next()).await.expect("within 60 s");
            assert_eq!(notification.unwrap().unwrap().payload, vec![nth; 150_000], "{}", server.scheme);
        }
        let counted = server.handle.stats().tcp;
        assert_eq!((counted.registered, counted.notifications), (2, 6));
        seen.end().await.unwrap();
        drop(large);
        server.client.get(&server.uri("/hello")).await.unwrap();
        server.change();
        sleep(Duration::from_millis(50)).await;
        assert_eq!(server.handle.stats().tcp.notifications, 6, "{}", server.scheme);
        // Once more, and the server says that it goes.
        let mut seen = server.client.get(&server.uri("/count")).once().observe().await.unwrap();
        server.handle.shutdown();
        let notification = timeout(Duration::from_secs(60), seen.next()).await.expect("within 60 s");
        let notification = notification.expect("a last notification").unwrap();
        assert_eq!(notification.code, Code::SERVICE_UNAVAILABLE, "{}: 5.03 (RFC 7641 §4.2)", server.scheme);
        assert!(seen.next().await.is_none());
    }
}

#[tokio::test]
async fn observing_a_resource_without_observe_over_a_connection_gives_one_response() {
    for server in all() {
        let mut seen = server.client.observe(&server.uri("/hello")).await.unwrap();
        assert_eq!(seen.first().text(), "Hello!");
        assert!(seen.next().await.is_none());
    }
}

#[tokio::test]
async fn a_shutdown_answers_running_requests_and_then_closes_the_connection() {
    for mut server in all() {
        let call = tokio::spawn(server.client.get(&server.uri("/slow")).into_future());
        while server.handle.stats().tcp.requests < 1 {
            sleep(Duration::from_millis(5)).await;
        }
        server.handle.shutdown();
        assert_eq!(call.await.unwrap().unwrap().text(), "done", "{}", server.scheme);
        timeout(Duration::from_secs(5), server.running.ended()).await.expect("it ends").unwrap();
        let error = server.client.get(&server.uri("/hello")).await.unwrap_err();
        assert!(matches!(error, Error::Connection(_)), "{error:?}");
    }
}

#[tokio::test]
async fn an_idle_connection_is_kept_only_while_its_observers_are_alive() {
    for scheme in SCHEMES {
        let idle_timeout = Duration::from_millis(100);
        let server = serve(scheme, ServerConfig { idle_timeout, ..ServerConfig::default() });
        let mut seen = server.client.observe(&server.uri("/count")).await.unwrap();
        sleep(Duration::from_millis(500)).await;
        server.change();
        let notification = timeout(Duration::from_secs(60), seen.next()).await.expect("within 60 s");
        assert_eq!(notification.unwrap().unwrap().text(), "1", "{scheme}");
        assert_eq!(server.handle.stats().tcp.idle, 0);
        seen.end().await.unwrap();
        sleep(Duration::from_millis(500)).await;
        assert_eq!(server.handle.stats().tcp.idle, 1, "{scheme}");
    }
}

#[tokio::test]
async fn a_connection_above_the_limit_replaces_an_idle_one() {
    let config = ServerConfig { max_connections: 1, ..ServerConfig::default() };
    let server = serve("coap+ws", config);
    let first = Client::new();
    first.get(&server.uri("/hello")).await.unwrap();
    let second = Client::new();
    for client in [&second, &first].into_iter().cycle().take(20) {
        let answer = client.get(&server.uri("/hello")).timeout(Duration::from_secs(5)).await;
        assert_eq!(answer.unwrap().text(), "Hello!", "each takes the place of the other");
    }
}

#[tokio::test]
async fn an_endless_handshake_occupies_one_connection_and_does_not_disturb_others() {
    for server in all() {
        let silent = tokio::net::TcpStream::connect(server.address).await.unwrap();
        let response = server.client.get(&server.uri("/hello")).timeout(Duration::from_secs(5)).await;
        assert_eq!(response.unwrap().text(), "Hello!", "{}", server.scheme);
        drop(silent);
    }
}

#[tokio::test]
async fn a_stale_observation_registers_again() {
    let server = serve("coap+tcp", ServerConfig::default());
    let mut seen = server.client.observe(&server.uri("/count?age=0")).await.unwrap();
    // The server does not say that it has changed.
    server.count.store(5, Ordering::Relaxed);
    let begun = std::time::Instant::now();
    let mut news = None;
    while news.is_none() && begun.elapsed() < Duration::from_secs(25) {
        news = timeout(Duration::from_millis(100), seen.next()).await.ok();
    }
    let news = news.expect("5 to 15 s after Max-Age (RFC 7641 §3.3.1)").unwrap().unwrap();
    assert_eq!(news.text(), "5");
    assert!(begun.elapsed() > Duration::from_millis(4_500), "too early");
    server.change();
    let notification = timeout(Duration::from_secs(60), seen.next()).await.expect("within 60 s");
    assert_eq!(notification.unwrap().unwrap().text(), "6", "it goes on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_body_with_an_unknown_critical_option_is_refused_at_its_first_block() {
    let server = serve("coap+tcp", ServerConfig::default());
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    // A CSM, and POST /echo with Block1: 0/1/16 and option 65001
    let post = b"\x00\xe1\xd0\x0f\x02\xb4echo\xd1\x03\x08\xe0\xfc\xc1\xff";
    stream.write_all(&[&post[..], &[7; 16]].concat()).unwrap();
    let mut answer = [0; 6 + 3 + 31];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer[6..], [&b"\xd0\x12\x82\xff"[..], b"option 65001 is not understood"].concat());
}
