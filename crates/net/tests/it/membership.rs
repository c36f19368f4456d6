//! Servers that are members of groups, asked by clients on the same host.
//!
//! Where no network takes datagrams to groups, the tests say that they are skipped.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use crate::common::{Running, serve_at, until};
use coap_numbers::option;
use coapace_net::{
    ALL_COAP_NODES, Client, Code, Membership, NotJoined, Options, Rejection, Request, Response, Router,
    Server, ServerConfig,
};
use tokio::time::{sleep, timeout};

const GET: u8 = 1;

fn config() -> ServerConfig {
    let groups = vec![Membership::of(ALL_COAP_NODES)];
    ServerConfig { groups, cores: 1, leisure: Duration::from_millis(50), ..ServerConfig::default() }
}

fn router() -> Router {
    Router::new()
        .get("/here", |_: Request| async { Ok::<_, Rejection>(Response::content("here")) })
        .get("/later", |_: Request| async {
            sleep(Duration::from_millis(300)).await;
            Ok::<_, Rejection>(Response::content("later"))
        })
        .get("/empty", |_: Request| async { Ok::<_, Rejection>(Response::content("")) })
        .put("/here", |_: Request| async { Ok::<_, Rejection>(Response::changed()) })
        .get("/large", |_: Request| async { Ok::<_, Rejection>(Response::content(vec![b'x'; 3_000])) })
}

/// A server at a port of all addresses, and one who asks it through the group.
fn member(config: ServerConfig) -> Option<(Running, UdpSocket)> {
    member_at("0.0.0.0:0", config)
}

fn member_at(address: &str, config: ServerConfig) -> Option<(Running, UdpSocket)> {
    let probe = UdpSocket::bind("0.0.0.0:0").expect("a port");
    let reachable = probe
        .join_multicast_v4(&ALL_COAP_NODES, &Ipv4Addr::UNSPECIFIED)
        .and_then(|()| probe.send_to(b"", (ALL_COAP_NODES, probe.local_addr()?.port())))
        .and_then(|_| probe.set_read_timeout(Some(Duration::from_secs(1))))
        .and_then(|()| probe.recv_from(&mut []));
    if let Err(error) = reachable {
        println!("skipped: no network takes datagrams to groups ({error})");
        return None;
    }
    let server = serve_at(address, router(), config);
    let stranger = UdpSocket::bind("0.0.0.0:0").expect("a port");
    stranger.set_read_timeout(Some(Duration::from_secs(5))).expect("a time");
    Some((server, stranger))
}

/// Asks the group for this.
fn ask(stranger: &UdpSocket, server: &Running, message: &[u8]) {
    stranger.send_to(message, (ALL_COAP_NODES, server.address.port())).expect("a network");
}

/// A request of this first byte and Message ID.
fn request(first: u8, code: u8, id: u8, path: &str, options: Options) -> Vec<u8> {
    let mut message = vec![first, code, 0, id];
    options.uri_path(path).write(&[], &mut message);
    message
}

fn get(id: u8, path: &str) -> Vec<u8> {
    request(0x50, GET, id, path, Options::default())
}

#[tokio::test]
async fn one_thread_of_a_server_answers_a_group_request_from_its_own_address() {
    let Some((server, _)) = member(ServerConfig { cores: 4, ..config() }) else { return };
    for path in ["/here", "/later"] {
        // The group has a rate, which would keep the next request of the same client back.
        let client = Client::new();
        let uri = format!("coap://{ALL_COAP_NODES}:{}{path}", server.address.port());
        let mut answers = client.get(&uri).group().await.unwrap();
        let (from, response) = timeout(Duration::from_secs(60), answers.next()).await.unwrap().unwrap();
        assert_eq!((response.code, &path[1..]), (Code::CONTENT, response.text().as_ref()));
        assert!(!from.ip().is_multicast() && from.port() == server.address.port(), "{from}");
        assert!(timeout(Duration::from_millis(500), answers.next()).await.is_err(), "once");
    }
    let stats = server.handle.stats();
    assert_eq!((stats.net.group_requests, stats.endpoint.received), (2, 2), "no core heard a copy");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_member_does_not_answer_errors_empty_results_copies_or_confirmable_requests() {
    let Some((server, stranger)) = member(config()) else { return };
    let silent = [
        request(0x40, GET, 1, "here", Options::default()),
        // An empty confirmable message, a ping to anyone else; a datagram that is not CoAP, and a format error.
        vec![0x40, 0, 0, 2],
        vec![0xff; 9],
        vec![0x49, GET, 0, 3],
        get(4, "nowhere"),
        get(5, "empty"),
        request(0x50, 3, 6, "here", Options::default()),
        request(0x50, GET, 7, "here", Options::default().no_response(2)),
        // A critical option that nobody knows: 4.02.
        request(0x50, GET, 8, "here", Options::default().with(2_049, b"x")),
        get(9, "here"),
        get(9, "here"),
    ];
    for message in &silent {
        ask(&stranger, &server, message);
    }
    until(|| server.handle.stats().endpoint.received == 11).await;
    sleep(Duration::from_millis(200)).await;
    let mut answer = [0; 64];
    let (len, _) = stranger.recv_from(&mut answer).unwrap();
    assert_eq!((answer[0], answer[1], &answer[len - 4..len]), (0x50, 0x45, &b"here"[..]));
    stranger.set_nonblocking(true).unwrap();
    assert!(stranger.recv_from(&mut answer).is_err(), "one answer to all of these: {:?}", &answer[..len]);
    let stats = server.handle.stats();
    assert_eq!((stats.net.group_requests, stats.endpoint.duplicates, stats.endpoint.malformed), (6, 1, 4));
    let metrics = server.handle.metrics();
    assert_eq!(metrics.requests.get(Code(GET), Code::CONTENT), 1);
    assert!(metrics.to_string().contains("coap_group_requests_total 6\n"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_to_a_group_request_are_spread_over_the_leisure() {
    let Some((server, stranger)) = member(ServerConfig { leisure: Duration::from_secs(2), ..config() })
    else {
        return;
    };
    let begun = Instant::now();
    for id in 0..40 {
        ask(&stranger, &server, &get(id, "here"));
    }
    let mut answer = [0; 64];
    let moments: Vec<Duration> = (0..40)
        .map(|_| {
            stranger.recv_from(&mut answer).unwrap();
            begun.elapsed()
        })
        .collect();
    // Of 40 draws all are in one half of the time once in 10¹².
    assert!(moments[0] < Duration::from_secs(1) && moments[39] > Duration::from_secs(1), "{moments:?}");
    assert!(moments[39] < Duration::from_secs(3), "{moments:?}");
    let at_once = moments.iter().filter(|moment| **moment < Duration::from_millis(500)).count();
    assert!((1..=25).contains(&at_once), "ten are to be expected: {moments:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_to_a_group_request_that_exceed_the_queue_are_counted() {
    let config = ServerConfig { leisure: Duration::from_millis(500), max_delayed: 3, ..config() };
    let Some((server, stranger)) = member(config) else { return };
    for id in 0..8 {
        ask(&stranger, &server, &get(id, "here"));
    }
    until(|| server.handle.stats().net.group_responses_dropped == 5).await;
    for _ in 0..3 {
        stranger.recv_from(&mut [0; 64]).unwrap();
    }
    assert!(server.handle.metrics().to_string().contains("coap_group_responses_dropped_total 5\n"));
    ask(&stranger, &server, &get(9, "here"));
    stranger.recv_from(&mut [0; 64]).expect("there is room again");
}

#[tokio::test]
async fn a_group_member_sends_the_first_block_of_a_large_representation() {
    let Some((server, _)) = member(config()) else { return };
    let client = Client::new();
    let uri = format!("coap://{ALL_COAP_NODES}:{}/large", server.address.port());
    let mut answers = client.get(&uri).group().await.unwrap();
    let (from, first) = timeout(Duration::from_secs(60), answers.next()).await.unwrap().unwrap();
    let block = first.options.iter().find(|&(number, _)| number == option::BLOCK2).map(|(_, value)| value);
    // From this host's address to itself, but not over loopback: a stranger, who is sent 136 bytes at most.
    assert_eq!((first.code, first.payload.len()), (Code::CONTENT, 64), "{first:?}");
    assert_eq!(block.map(|value| value[0] & 0x0f), Some(0x0a), "block 0 of 64 bytes, and there is more");
    assert_eq!(server.handle.stats().net.challenged, 0);
    let whole = answers.whole(from, first).await.unwrap();
    assert_eq!(whole.payload.len(), 3_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_to_a_group_begins_no_observation() {
    let Some((server, stranger)) = member(config()) else { return };
    ask(&stranger, &server, &request(0x50, GET, 1, "here", Options::default().observe(0)));
    let mut answer = [0; 64];
    let (len, _) = stranger.recv_from(&mut answer).unwrap();
    assert_eq!(&answer[4..len], b"\xffhere", "no option");
    assert_eq!(server.handle.metrics().observers, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_outside_a_group_gets_no_requests_although_another_server_of_the_host_joined() {
    let Some((server, stranger)) = member(ServerConfig { groups: Vec::new(), ..config() }) else { return };
    let other = UdpSocket::bind("0.0.0.0:0").unwrap();
    other.join_multicast_v4(&ALL_COAP_NODES, &Ipv4Addr::UNSPECIFIED).unwrap();
    ask(&stranger, &server, &get(1, "here"));
    stranger.send_to(&get(2, "here"), ("127.0.0.1", server.address.port())).unwrap();
    stranger.recv_from(&mut [0; 64]).expect("the other request is answered");
    sleep(Duration::from_millis(100)).await;
    assert_eq!(server.handle.stats().endpoint.received, 1);
}

#[tokio::test]
async fn a_server_on_ipv6_and_ipv4_joins_groups_of_both() {
    let groups = Membership::all_coap_nodes().to_vec();
    let Some((server, _)) = member_at("[::]:0", ServerConfig { groups, cores: 2, ..config() }) else {
        return;
    };
    let (client, port) = (Client::new(), server.address.port());
    let zone = nix::net::if_::if_nameindex().unwrap().iter().find_map(|interface| {
        let index = interface.index();
        let own = std::fs::read_to_string("/proc/net/if_inet6").ok()?;
        let link_local = |line: &str| line.starts_with("fe80") && line.contains(&format!(" {index:02x} "));
        own.lines().any(link_local).then_some(index)
    });
    let mut uris = vec![format!("coap://{ALL_COAP_NODES}:{port}/here")];
    match zone {
        Some(zone) => uris.push(format!("coap://[ff02::fd%25{zone}]:{port}/here")),
        None => println!("skipped in part: no interface has a link-local address"),
    }
    for uri in uris {
        let mut answers = client.get(&uri).group().await.unwrap();
        let (from, response) = timeout(Duration::from_secs(60), answers.next()).await.expect(&uri).unwrap();
        assert!(response.text() == "here" && !from.ip().is_multicast(), "{from}");
        assert!(timeout(Duration::from_millis(200), answers.next()).await.is_err(), "once");
    }
}

#[test]
fn an_error_about_joining_a_group_names_the_group_in_one_line() {
    for (address, group, expected) in [
        ("0.0.0.0:0", Membership::of(ALL_COAP_NODES).on("nowhere0"), "this host has no interface nowhere0"),
        ("0.0.0.0:0", Membership::of(ALL_COAP_NODES).on("65000"), "this host has no interface 65000"),
        ("127.0.0.1:0", Membership::of(ALL_COAP_NODES), "only a server bound to every address"),
        ("0.0.0.0:0", "ff02::fd".parse().unwrap(), "the server is bound to IPv4 only; bind it to [::]"),
        ("0.0.0.0:0", Membership::of(Ipv4Addr::new(192, 0, 2, 7)), "it is not the address of a group"),
        ("127.0.0.1:0", Membership::of(ALL_COAP_NODES).if_possible(), "only a server bound to every address"),
    ] {
        let config = ServerConfig { groups: vec![group.clone()], ..config() };
        let error = Server::bind_with(address, config).expect_err("no member");
        assert!(matches!(error.get_ref(), Some(inner) if inner.is::<NotJoined>()), "{error:?}");
        let line = error.to_string();
        assert!(line.starts_with(&format!("cannot join the group {group}: {expected}")), "{line}");
    }
}
