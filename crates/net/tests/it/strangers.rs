//! Programs that send in the names of others, and the little that they can take from honest clients.

use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use coapace_net::{
    Budget, Client, Code, Profile, Rejection, Request, Resource, Response, Router, Server, ServerConfig,
    Verify,
};
use coapace_proto::{Kind, Message, Options};

use crate::common::{Running, run, serve_with};

/// A source of loopback that sends datagrams as they are.
pub(crate) struct Source {
    socket: UdpSocket,
}

impl Source {
    /// Binds to 127.`net`.`host`, and sends to this address.
    pub(crate) fn at(net: u8, host: u16, to: SocketAddr) -> Self {
        let [high, low] = host.to_be_bytes();
        let socket = UdpSocket::bind((std::net::Ipv4Addr::new(127, net, high, low), 0)).expect("loopback");
        socket.connect(to).expect("loopback");
        Self { socket }
    }

    pub(crate) fn send(&self, kind: Kind, code: Code, id: u16, token: &[u8], options: &Options) -> usize {
        let mut tail = Vec::new();
        options.write(b"", &mut tail);
        let token = coapace_proto::Token::new(token).expect("at most 8 bytes");
        let message = Message { code, token, tail: &tail, ..Message::empty(kind, id) };
        let mut bytes = Vec::new();
        message.write(&mut bytes);
        self.socket.send(&bytes).expect("loopback")
    }

    /// Returns the next datagram that arrives within a time.
    pub(crate) fn receive(&self, within: Duration) -> Option<Vec<u8>> {
        self.socket.set_read_timeout(Some(within.max(Duration::from_millis(1)))).expect("a timeout");
        crate::common::received(&self.socket)
    }

    /// Sends a request until it is answered. Returns the code of the answer and its Echo value.
    pub(crate) fn ask(&self, code: Code, id: u16, options: &Options) -> (Code, Option<Vec<u8>>) {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(30) {
            self.send(Kind::Confirmable, code, id, &id.to_be_bytes(), options);
            while let Some(bytes) = self.receive(Duration::from_secs(2)) {
                let answer = Message::parse(&bytes).expect("CoAP");
                if answer.code != Code::EMPTY && answer.token[..] == id.to_be_bytes() {
                    return (answer.code, answer.echo().map(<[u8]>::to_vec));
                }
            }
        }
        panic!("no answer within 30 s");
    }
}

/// Returns a server with room to remember 128 requests of anybody and 128 of verified clients, and how often it carries out each.
fn counting() -> (Running, Arc<Mutex<HashMap<String, u32>>>) {
    let done: Arc<Mutex<HashMap<String, u32>>> = Arc::default();
    let count = done.clone();
    let router = Router::new().post("/n/{n}", move |request: Request| {
        let n = request.parameter("n").unwrap_or_default().to_owned();
        *count.lock().unwrap().entry(n).or_default() += 1;
        async { Ok::<_, Rejection>(Response::new(Code::CHANGED)) }
    });
    let budget = Budget::new(1 << 20);
    let mut profile = Profile::default();
    profile.config = budget.bound(profile.config);
    let config = ServerConfig { cores: 1, budget, profile, ..ServerConfig::default() };
    (serve_with(router, config), done)
}

fn post(n: impl std::fmt::Display) -> Options {
    Options::default().uri_path("n").uri_path(&n.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_posts_do_not_cause_a_genuine_post_to_be_executed_twice() {
    let (server, done) = counting();
    let honest = Source::at(1, 1, server.address);
    for id in 0..20 {
        assert_eq!(honest.ask(Code::POST, id, &post(id)).0, Code::CHANGED);
    }
    for host in 0..40 {
        let forged = Source::at(2, host, server.address);
        (0..20).for_each(|id| drop(forged.ask(Code::POST, id, &post("forged"))));
    }
    for id in 0..20 {
        assert_eq!(honest.ask(Code::POST, id, &post(id)).0, Code::CHANGED, "a copy");
    }
    let later = honest.ask(Code::POST, 100, &post(100));
    let (Code::UNAUTHORIZED, Some(echo)) = later else { panic!("{later:?}") };
    assert_eq!(honest.ask(Code::POST, 101, &post(100).echo(&echo)).0, Code::CHANGED, "a verified source");
    assert_eq!(honest.ask(Code::POST, 101, &post(100).echo(&echo)).0, Code::CHANGED, "a copy");
    let done = done.lock().unwrap();
    assert_eq!(done["forged"], 128 - 20, "no more than can be remembered");
    assert!((0..20).chain([100]).all(|id| done[&id.to_string()] == 1), "{done:?}");
    let stats = server.handle.stats();
    assert_eq!((stats.endpoint.forgotten_early, stats.net.unremembered), (0, 800 - 108 + 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verified_client_waits_if_the_server_cannot_remember_more_posts() {
    let (server, done) = counting();
    let client = Source::at(1, 1, server.address);
    let mut echo = None;
    let answers: Vec<Code> = (0..300)
        .map(|id| {
            let options = echo.iter().fold(post(id), |options, value: &Vec<u8>| options.echo(value));
            let (code, asked) = client.ask(Code::POST, id, &options);
            echo = asked.or(echo.take());
            code
        })
        .collect();
    let count = |code| answers.iter().filter(|&&answer| answer == code).count();
    let carried_out = done.lock().unwrap().len();
    assert_eq!(count(Code::UNAUTHORIZED), 1);
    assert_eq!(count(Code::CHANGED), carried_out);
    assert_eq!(count(Code::SERVICE_UNAVAILABLE), 300 - 1 - carried_out);
    assert!(
        (200..256).contains(&carried_out),
        "{carried_out}: a source leaves a ninth of the places to others"
    );
}

/// The headers of IPv4 and UDP.
const HEADERS: usize = 28;

/// Returns the bytes that arrive at a source within a time, headers included.
fn heard(source: &Source, within: Duration) -> usize {
    let end = Instant::now() + within;
    let mut bytes = 0;
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        bytes += source.receive(left).map_or(0, |datagram| HEADERS + datagram.len());
    }
    bytes
}

fn everybody() -> ServerConfig {
    ServerConfig { cores: 1, verify: Verify::Everybody, ..ServerConfig::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unverified_observer_is_sent_at_most_three_times_its_registration() {
    let resource = Resource::new();
    let text = async |_: Request| Ok::<_, Rejection>(Response::content("21.5"));
    let server = serve_with(Router::new().observe("/t", &resource, text), everybody());
    let victim = Source::at(3, 1, server.address);
    let options = Options::default().observe(0).uri_path("t");
    let asked = HEADERS + victim.send(Kind::Confirmable, Code::GET, 1, b"a", &options);
    let mut bytes = 0;
    for _ in 0..40 {
        bytes += heard(&victim, Duration::from_millis(200));
        resource.changed();
    }
    assert!(bytes > asked && bytes <= 3 * asked, "{bytes} bytes for {asked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unverified_client_is_sent_at_most_three_times_its_request_if_the_response_is_late() {
    let late = async |_: Request| {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Ok::<_, Rejection>(Response::content("a response of thirty-one bytes"))
    };
    let config = ServerConfig { acknowledge_after: Duration::from_millis(1), ..everybody() };
    let server = serve_with(Router::new().get("/late", late).post("/late", late), config);
    for (host, code) in [(1, Code::GET), (2, Code::POST)] {
        let victim = Source::at(4, host, server.address);
        let asked =
            HEADERS + victim.send(Kind::Confirmable, code, 1, b"a", &Options::default().uri_path("late"));
        let bytes = heard(&victim, Duration::from_secs(8));
        assert!(bytes > asked && bytes <= 3 * asked, "{bytes} bytes for {asked}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_method_or_response_option_gets_an_unverified_client_more_than_three_times_its_bytes() {
    let methods = [Code::GET, Code::POST, Code::PUT, Code::DELETE, Code::FETCH, Code::PATCH, Code::IPATCH];
    let large = async |_: Request| {
        let response = Response::content(vec![b'x'; 700]);
        Ok::<_, Rejection>(response.option(8, &[b'y'; 200]).option(4, &[7; 8]))
    };
    let router = methods.into_iter().fold(Router::new(), |router, code| router.route(code, "/", large));
    let server = serve_with(router, everybody());
    for (host, code) in methods.into_iter().enumerate() {
        let victim = Source::at(5, host as u16 + 1, server.address);
        for (id, options) in (1..).zip([Options::default(), Options::default().observe(0)]) {
            let asked = HEADERS + victim.send(Kind::Confirmable, code, id, b"", &options);
            let bytes = HEADERS + victim.receive(Duration::from_secs(10)).expect("an answer").len();
            assert!(bytes <= 3 * asked, "{code}: {bytes} bytes for {asked}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_hop_limit_is_answered_4_00() {
    let router = Router::new().get("/a", async |_: Request| Ok::<_, Rejection>(Response::content("a")));
    let config = crate::common::one_core();
    let stream = run("coap+tcp", Server::bind_tcp("127.0.0.1:0", config.clone()), router.clone());
    let server = serve_with(router, config);
    let source = Source::at(6, 1, server.address);
    for (id, value, code) in [
        (1, &[1][..], Code::CONTENT),
        (2, &[255], Code::CONTENT),
        (3, &[0], Code::BAD_REQUEST),
        (4, &[], Code::BAD_REQUEST),
        (5, &[1, 0], Code::BAD_REQUEST),
    ] {
        let options = Options::default().uri_path("a").with(16, value);
        assert_eq!(source.ask(Code::GET, id, &options).0, code, "{value:?}");
        if value.len() == 1 {
            let response = Client::new().get(&stream.uri("/a")).option(16, value).await.unwrap();
            assert_eq!(response.code, code, "{value:?} over TCP");
        }
    }
}
