//! Observations: a server whose resources change, and clients that want to know.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::common::{Running, one_core, received, run, serve, serve_with};
use coapace_net::{
    Client, Code, Error, Observation, Rejection, Request, Resource, Response, Router, Server, ServerConfig,
    Verify,
};

/// A number that can be observed, as text or in `len` bytes; 4.04 once it is 99.
#[derive(Clone)]
struct Counter {
    value: Arc<AtomicU64>,
    calls: Arc<AtomicU64>,
    resource: Resource,
}

impl Counter {
    fn new(resource: Resource) -> Self {
        Self { value: Arc::default(), calls: Arc::default(), resource }
    }

    fn set(&self, value: u64) {
        self.value.store(value, Ordering::Relaxed);
        self.resource.changed();
    }

    fn read(&self, request: &Request) -> Result<Response, Rejection> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        match self.value.load(Ordering::Relaxed) {
            99 => Err(Rejection::not_found()),
            value => {
                let len = request.argument("len").map_or(Ok(1), str::parse)?;
                let age = request.argument("age").map_or(Ok(60), str::parse)?;
                Ok(Response::content(format!("{value:0len$}")).max_age(age))
            }
        }
    }

    fn router(&self) -> Router {
        let (now, later) = (self.clone(), self.clone());
        Router::new()
            .observe("/counter", &self.resource, move |request| {
                let response = now.read(&request);
                async move { response }
            })
            .observe("/slow", &self.resource, move |request| {
                let later = later.clone();
                async move {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    later.read(&request)
                }
            })
            .get("/fixed", async |_| Ok::<_, Rejection>(Response::content("fixed")))
    }
}

fn started() -> (Running, Counter) {
    let counter = Counter::new(Resource::new());
    (serve(counter.router()), counter)
}

/// The next representation, which is to come soon.
async fn next(observation: &mut Observation) -> Option<String> {
    let next = tokio::time::timeout(Duration::from_secs(3), observation.next());
    next.await.expect("in time").map(|next| next.unwrap().text().into_owned())
}

async fn is_quiet(observation: &mut Observation) -> bool {
    tokio::time::timeout(Duration::from_millis(200), observation.next()).await.is_err()
}

#[tokio::test]
async fn an_observer_gets_the_current_state_and_then_every_change() {
    let (server, counter) = started();
    let client = Client::new();
    for path in ["/counter", "/slow"] {
        counter.set(0);
        let mut observation = client.observe(&server.uri(path)).await.unwrap();
        assert_eq!(observation.first().text(), "0");
        for value in 1..4 {
            counter.set(value);
            assert_eq!(next(&mut observation).await, Some(value.to_string()), "{path}");
        }
        assert!(is_quiet(&mut observation).await);
    }
}

#[tokio::test]
async fn observers_on_all_threads_of_a_server_are_notified() {
    let counter = Counter::new(Resource::new());
    let server = serve_with(counter.router(), ServerConfig { cores: 3, ..ServerConfig::default() });
    let mut observations = Vec::new();
    for _ in 0..20 {
        observations.push(Client::new().observe(&server.uri("/counter")).await.unwrap());
    }
    counter.set(7);
    for observation in &mut observations {
        assert_eq!(next(observation).await.as_deref(), Some("7"));
    }
}

#[tokio::test]
async fn one_call_of_the_handler_serves_all_observers_with_equal_requests() {
    let (server, counter) = started();
    let client = Client::new();
    let mut observations = Vec::new();
    for query in ["?len=3", "?len=3", "?len=3000"] {
        observations.push(client.observe(&server.uri(&format!("/counter{query}"))).await.unwrap());
    }
    let before = counter.calls.load(Ordering::Relaxed);
    counter.set(5);
    let [short, same, long] = &mut observations[..] else { panic!("three") };
    assert_eq!(next(short).await.as_deref(), Some("005"));
    assert_eq!(next(same).await.as_deref(), Some("005"));
    let text = next(long).await.unwrap();
    assert_eq!((text.len(), text.parse()), (3000, Ok(5)));
    assert_eq!(counter.calls.load(Ordering::Relaxed) - before, 2);
}

#[tokio::test]
async fn a_slow_observer_gets_only_the_newest_state() {
    let (server, counter) = started();
    let mut observation = Client::new().observe(&server.uri("/counter")).await.unwrap();
    for value in 1..=30 {
        counter.set(value);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(next(&mut observation).await.as_deref(), Some("30"));
    assert!(is_quiet(&mut observation).await);
}

#[tokio::test]
async fn an_error_response_is_the_last_notification() {
    let (server, counter) = started();
    let mut observation = Client::new().observe(&server.uri("/counter")).await.unwrap();
    counter.set(99);
    let last = observation.next().await.unwrap().unwrap();
    assert_eq!(last.code, Code::NOT_FOUND);
    assert!(observation.next().await.is_none());
}

#[tokio::test]
async fn observing_a_resource_without_observe_gives_one_response() {
    let (server, counter) = started();
    let client = Client::new();
    let mut fixed = client.observe(&server.uri("/fixed")).await.unwrap();
    assert_eq!(fixed.first().text(), "fixed");
    assert!(fixed.next().await.is_none());
    counter.set(99);
    // A loop over the notifications would never see an error that came before them.
    let missing = client.observe(&server.uri("/counter")).await;
    assert!(
        matches!(&missing, Err(Error::NotObserved(response)) if response.code == Code::NOT_FOUND),
        "{missing:?}"
    );
    assert_eq!(missing.unwrap_err().to_string(), "the server answered 4.04 Not Found");
    let started = server.handle.stats().endpoint.started;
    counter.set(1);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(server.handle.stats().endpoint.started, started, "nobody is notified");
}

#[tokio::test]
async fn the_server_forgets_an_observation_that_is_dropped_or_ended() {
    let (server, counter) = started();
    let client = Client::new();
    let dropped = client.observe(&server.uri("/counter")).await.unwrap();
    let ended = client.observe(&server.uri("/counter")).await.unwrap();
    drop(dropped);
    ended.end().await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    counter.set(1);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(server.handle.stats().endpoint.started, 0, "no notification");
    assert_eq!(client.stats().endpoint.completed, 4);
}

#[tokio::test]
async fn an_observation_continues_after_its_client_is_dropped() {
    let (server, counter) = started();
    let mut observation = Client::new().observe(&server.uri("/counter")).await.unwrap();
    counter.set(3);
    assert_eq!(next(&mut observation).await.as_deref(), Some("3"));
}

#[tokio::test]
async fn a_stale_observation_registers_again_even_if_its_reader_cancelled_the_wait() {
    let (server, counter) = started();
    let mut observation = Client::new().observe(&server.uri("/counter?age=0")).await.unwrap();
    assert_eq!(counter.calls.load(Ordering::Relaxed), 1);
    counter.value.store(5, Ordering::Relaxed);
    let mut waited = 0;
    let news = loop {
        // 5 to 15 s after Max-Age (RFC 7641 §3.3.1).
        assert!(waited < 170);
        waited += 1;
        if let Ok(news) = tokio::time::timeout(Duration::from_millis(100), observation.next()).await {
            break news.unwrap().unwrap();
        }
    };
    assert!(waited > 45, "too early");
    assert_eq!((news.text().as_ref(), counter.calls.load(Ordering::Relaxed)), ("5", 2));
    counter.set(6);
    assert_eq!(next(&mut observation).await.as_deref(), Some("6"), "it goes on");
}

#[tokio::test]
async fn an_observer_verifies_its_address_before_it_gets_a_large_response() {
    let counter = Counter::new(Resource::new());
    let config = ServerConfig { cores: 1, verify: Verify::Everybody, ..ServerConfig::default() };
    let server = serve_with(counter.router(), config);
    let mut observation = Client::new().observe(&server.uri("/counter?len=2000")).await.unwrap();
    assert_eq!(observation.first().payload.len(), 2000);
    assert_eq!(server.handle.stats().net.challenged, 1);
    counter.set(4);
    assert_eq!(next(&mut observation).await.unwrap().parse(), Ok(4));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notifications_to_an_unverified_client_have_at_most_136_bytes() {
    let config = ServerConfig { cores: 1, verify: Verify::Everybody, ..ServerConfig::default() };
    let (len, resource) = (Arc::new(AtomicU64::new(5)), Resource::new());
    let shown = len.clone();
    let router = Router::new().observe("/text", &resource, move |_: Request| {
        let text = "x".repeat(shown.load(Ordering::Relaxed) as usize);
        async move { Ok::<_, Rejection>(Response::content(text)) }
    });
    let change = |bytes| {
        len.store(bytes, Ordering::Relaxed);
        resource.changed();
    };
    let server = serve_with(router, config);
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.connect(server.address).unwrap();
    stranger.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    stranger.send(b"\x41\x01\0\x01t\x60\x54text").unwrap();
    assert!(received(&stranger).is_some_and(|bytes| bytes.ends_with(b"\xffxxxxx")));

    let mut honest = Client::new().observe(&server.uri("/text")).await.unwrap();
    change(500);
    let news = next(&mut honest).await.unwrap();
    assert_eq!(news.len(), 500, "it has repeated its registration with the Echo value");
    let last = received(&stranger).unwrap();
    assert!(last.len() < 40 && last[..2] == [0x51, 0x81], "4.01, non-confirmable: {last:02x?}");
    change(600);
    assert_eq!(next(&mut honest).await.unwrap().len(), 600);
    assert_eq!(received(&stranger), None, "it observes no longer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unverified_observers_have_few_slots_and_leave_one_for_a_verified_client() {
    let counter = Counter::new(Resource::new());
    let mut config = one_core();
    config.profile.config.max_observers = 100;
    let server = serve_with(counter.router(), config);
    // Sources that do not answer: eight of them, and no more, have a place.
    let register = [0x40, 1, 0, 1, 0x60, 0x57, b'c', b'o', b'u', b'n', b't', b'e', b'r'];
    let silent: Vec<UdpSocket> = (0..50).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    let mut asked = 0;
    for socket in &silent {
        socket.send_to(&register, server.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut answer = [0; 64];
        socket.recv(&mut answer).unwrap();
        asked += usize::from(answer[1] == 0x81);
    }
    assert_eq!(asked, 42);
    let mut observations = Vec::new();
    for _ in 0..40 {
        observations.push(Client::new().observe(&server.uri("/counter")).await.unwrap());
    }
    counter.set(5);
    for observation in &mut observations {
        assert_eq!(next(observation).await.as_deref(), Some("5"));
    }
    assert_eq!(server.handle.stats().net.observers_refused, 0);
}

#[tokio::test]
async fn an_observer_refused_for_lack_of_slots_is_answered_and_counted() {
    let counter = Counter::new(Resource::new());
    let mut config = one_core();
    config.profile.config.max_observers = 10;
    let server = serve_with(counter.router(), config);
    let mut observed = 0;
    let mut observations = Vec::new();
    for _ in 0..12 {
        let observation = Client::new().observe(&server.uri("/counter")).await.unwrap();
        assert_eq!(observation.first().text(), "0");
        observed += usize::from(observation.first().options.uint(6).is_some());
        observations.push(observation);
        // Each shows its address, or is one of the strangers, who make room.
    }
    counter.set(1);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let stats = server.handle.stats();
    let notified = stats.endpoint.notifications;
    assert_eq!(notified + stats.endpoint.observers_displaced, observed as u64, "{stats:?}");
    assert!(notified <= 10, "{stats:?}");
}

#[tokio::test]
async fn notifications_may_be_non_confirmable() {
    let counter = Counter::new(Resource::non_confirmable());
    let server = serve_with(counter.router(), one_core());
    let mut observation = Client::new().observe(&server.uri("/counter")).await.unwrap();
    counter.set(1);
    assert_eq!(next(&mut observation).await.as_deref(), Some("1"));
    let counters = server.handle.stats().endpoint;
    assert_eq!((counters.started, counters.completed, counters.converted), (1, 0, 0));
}

#[tokio::test]
async fn a_stopping_server_notifies_its_observers_without_waiting_for_vanished_ones() {
    for resource in [Resource::new(), Resource::non_confirmable()] {
        let counter = Counter::new(resource);
        let shutdown_timeout = Duration::from_secs(2);
        let config = ServerConfig { cores: 2, shutdown_timeout, ..ServerConfig::default() };
        let mut server = serve_with(counter.router(), config);
        let mut observations = Vec::new();
        for _ in 0..10 {
            let call = Client::new().get(&server.uri("/counter")).once();
            observations.push(call.observe().await.unwrap());
        }
        // One that will answer to nothing.
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        silent.send_to(b"\x41\x01\x00\x01t\x60\x57counter", server.address).unwrap();
        crate::common::until(|| server.handle.metrics().observers == 11).await;
        let begun = std::time::Instant::now();
        server.handle.shutdown();
        for observation in &mut observations {
            let next = tokio::time::timeout(Duration::from_secs(5), observation.next());
            let last = next.await.expect("in time").expect("a last one").unwrap();
            assert_eq!(last.code, Code::SERVICE_UNAVAILABLE, "5.03");
            assert_eq!(last.options.value(coap_numbers::option::MAX_AGE), Some(&[5][..]));
            assert!(observation.next().await.is_none());
        }
        server.ended().await.unwrap();
        assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn an_observation_continues_after_its_server_stopped_and_returned() {
    let (retry_after, shutdown_timeout) = (Duration::from_secs(1), Duration::from_secs(2));
    let config = ServerConfig { cores: 1, retry_after, shutdown_timeout, ..ServerConfig::default() };
    for scheme in ["coap", "coap+tcp"] {
        let bind = |address: SocketAddr| match scheme {
            "coap" => Server::bind_with(address, config.clone()),
            _ => Server::bind_tcp(address, config.clone()),
        };
        let before = Counter::new(Resource::new());
        let mut server = run(scheme, bind(([127, 0, 0, 1], 0).into()), before.router());
        let mut observation = Client::new().observe(&server.uri("/counter")).await.unwrap();
        let address = server.address;
        server.handle.shutdown();
        server.ended().await.unwrap();
        drop(server);
        let mut next = Box::pin(observation.next());
        // Meanwhile nobody listens. The observation goes on after its first attempt to register again, or a later one.
        let waited = tokio::time::timeout(Duration::from_secs(2), &mut next).await;
        assert!(waited.is_err(), "{scheme}: {waited:?}");
        let after = Counter::new(Resource::new());
        after.set(7);
        let bound = async {
            loop {
                match bind(address) {
                    Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                    bound => break bound,
                }
            }
        };
        let bound = tokio::time::timeout(Duration::from_secs(60), bound).await.expect("free within 60 s");
        let _server = run(scheme, bound, after.router());
        let back = tokio::time::timeout(Duration::from_secs(60), next).await.expect("it is back");
        assert_eq!(back.unwrap().unwrap().text(), "7", "{scheme}");
        after.set(8);
        assert_eq!(self::next(&mut observation).await.as_deref(), Some("8"), "{scheme}");
        observation.end().await.unwrap();
    }
}

/// A server that is bytes.
#[tokio::test]
async fn a_notification_of_a_dropped_observation_is_rejected() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    let uri = format!("coap://{}/x", socket.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        let mut receive = || {
            let (len, from) = socket.recv_from(&mut buffer).unwrap();
            (buffer[..len].to_vec(), from)
        };
        let answer = |request: &[u8], options: &[u8]| {
            let token = usize::from(request[0] & 15);
            [&[0x60 | request[0] & 15, 0x45][..], &request[2..4 + token], options].concat()
        };
        let (registration, client) = receive();
        assert!(registration.ends_with(b"\x60\x51x"), "Observe: 0, Uri-Path: x");
        socket.send_to(&answer(&registration, b"\x61\x05"), client).unwrap();
        let (farewell, _) = receive();
        assert!(farewell.ends_with(b"\x61\x01\x51x"), "Observe: 1, Uri-Path: x");
        let token = &farewell[4..4 + usize::from(farewell[0] & 15)];
        assert_eq!(&registration[4..4 + token.len()], token);
        socket.send_to(&answer(&farewell, b""), client).unwrap();
        let notification =
            [&[0x50 | farewell[0] & 15, 0x45, 0xab, 0xcd][..], token, b"\x61\x06\xff!"].concat();
        socket.send_to(&notification, client).unwrap();
        receive().0
    });
    let observation = Client::new();
    let client = observation.clone();
    drop(client.observe(&uri).await.unwrap());
    let rejected = tokio::task::spawn_blocking(|| server.join().unwrap()).await.unwrap();
    assert_eq!(rejected, [0x70, 0, 0xab, 0xcd]);
}

/// A server that is bytes.
#[tokio::test]
async fn a_notification_with_an_unknown_critical_option_is_rejected_and_ends_the_observation() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    let uri = format!("coap://{}/x", socket.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        let (_, client) = socket.recv_from(&mut buffer).unwrap();
        let token = buffer[4..4 + usize::from(buffer[0] & 15)].to_vec();
        let len = token.len() as u8;
        let answer = [&[0x60 | len, 0x45, buffer[2], buffer[3]][..], &token, b"\x61\x05"].concat();
        socket.send_to(&answer, client).unwrap();
        // Observe, and option 9, which is critical and nobody's.
        let notification = [&[0x40 | len, 0x45, 0xab, 0xcd][..], &token, b"\x61\x06\x30"].concat();
        socket.send_to(&notification, client).unwrap();
        let (len, _) = socket.recv_from(&mut buffer).unwrap();
        buffer[..len].to_vec()
    });
    let mut observation = Client::new().observe(&uri).await.unwrap();
    let error = observation.next().await.unwrap().unwrap_err();
    assert!(matches!(error, coapace_net::Error::BadOption(9)), "{error}");
    assert!(observation.next().await.is_none());
    let rejected = tokio::task::spawn_blocking(|| server.join().unwrap()).await.unwrap();
    assert_eq!(rejected, [0x70, 0, 0xab, 0xcd]);
}
