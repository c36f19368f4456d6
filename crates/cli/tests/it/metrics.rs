//! `coapace serve --metrics`, with requests as Prometheus sends them, and with bad ones.
#![allow(clippy::float_cmp)] // Counts.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::common::{Serving, coapace};

/// Starts a server with metrics, and returns it with their address.
pub(crate) fn serving(arguments: &[&str]) -> (Serving, String) {
    let mut server = Serving::new(&[&["--metrics", "127.0.0.1:0"], arguments].concat());
    let uri = server.line();
    let address = uri.strip_prefix("http://").and_then(|uri| uri.strip_suffix("/metrics"));
    let address = address.unwrap_or_else(|| panic!("{uri:?}")).to_owned();
    (server, address)
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).expect("somebody listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a time");
    stream
}

/// Sends these bytes. Returns the head of the answer and the body.
pub(crate) fn ask(address: &str, bytes: &[u8]) -> (String, String) {
    let mut stream = connect(address);
    stream.write_all(bytes).expect("taken");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?}"));
    (head.to_owned(), body.to_owned())
}

pub(crate) fn scrape(address: &str) -> String {
    let (head, body) = ask(address, b"GET /metrics HTTP/1.1\r\nHost: here\r\nAccept: text/plain\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{head}");
    assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())), "{head}");
    body
}

pub(crate) fn value(text: &str, sample: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{sample} in {text}")).parse().expect("a number")
}

#[test]
fn metrics_of_requests_and_rto_estimates_are_exported_and_keep_counting() {
    let (server, address) = serving(&["--demo", "--cc", "cocoa"]);
    let gets = "coap_requests_total{method=\"GET\",code=\"2.05\"}";
    coapace(&["get", &server.at("/clock"), "--repeat", "5"]).success();
    // The acknowledgement of the separate response gives the server a round-trip time.
    coapace(&["get", &server.at("/delayed?s=1")]).success();
    assert_eq!(coapace(&["get", &server.at("/nowhere")]).code, Some(3));
    let text = scrape(&address);
    assert_eq!(value(&text, gets), 6.0);
    assert_eq!(value(&text, "coap_requests_total{method=\"GET\",code=\"4.04\"}"), 1.0);
    assert_eq!(value(&text, "coap_rtt_seconds_count{sample=\"strong\"}"), 1.0);
    assert_eq!(value(&text, "coap_rto_seconds_bucket{le=\"2\"}"), 1.0);
    let info = "coap_cc_info{mechanism=\"cocoa\",nstart=\"1\",ack_timeout_seconds=\"2\"}";
    assert_eq!(value(&text, info), 1.0);
    coapace(&["get", &server.at("/clock"), "--repeat", "2"]).success();
    assert_eq!(value(&scrape(&address), gets), 8.0);
    assert_eq!(server.interrupt().0, Some(0));
}

#[test]
fn every_exported_metric_is_documented() {
    let (_server, address) = serving(&["--demo"]);
    let page = include_str!("../../../../docs/metrics.md");
    for line in scrape(&address).lines().filter(|line| line.starts_with("# TYPE ")) {
        let name = line.split(' ').nth(2).expect("a name");
        let documented = [format!("`{name}`"), format!("`{name}{{")];
        assert!(documented.iter().any(|text| page.contains(text)), "{name} is not in docs/metrics.md");
    }
}

#[test]
fn metrics_include_the_build_the_process_and_its_health() {
    let (server, address) = serving(&["--demo"]);
    let text = scrape(&address);
    let build = text.lines().find(|line| line.starts_with("coap_build_info{")).expect("a build");
    let version = coapace(&["--version"]).success();
    let (version, commit) = version.trim_end().trim_start_matches("coapace ").split_once(' ').expect("both");
    let commit = commit.trim_matches(['(', ')']);
    assert_eq!(build, format!("coap_build_info{{version=\"{version}\",commit=\"{commit}\"}} 1"));
    if cfg!(target_os = "linux") {
        assert!(value(&text, "process_resident_memory_bytes") > 1e6, "{text}");
        assert!(value(&text, "process_open_fds") > 4.0, "{text}");
        assert!(value(&text, "process_max_fds") >= value(&text, "process_open_fds"), "{text}");
        assert!(value(&text, "process_cpu_seconds_total") < 60.0, "{text}");
    }
    assert!(value(&text, "process_start_time_seconds") > 1.6e9, "{text}");
    let (head, body) = ask(&address, b"GET /healthz HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert_eq!(body, "ok\n");
    // A pending response delays the end of the server, and `/healthz` fails meanwhile.
    let delayed = std::thread::spawn({
        let uri = server.at("/delayed?s=3");
        move || coapace(&["get", &uri])
    });
    while value(&scrape(&address), "coap_handlers_waiting") < 1.0 {
        std::thread::sleep(Duration::from_millis(20));
    }
    server.signal("-TERM");
    let (head, body) = loop {
        let health = ask(&address, b"GET /healthz HTTP/1.1\r\n\r\n");
        if !health.0.starts_with("HTTP/1.1 200") {
            break health;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(head.starts_with("HTTP/1.1 503 Service Unavailable\r\n") && body == "stopping\n", "{head}");
    assert_eq!(delayed.join().expect("no panic").success(), "3 s later");
}

#[test]
fn the_metrics_show_retransmissions_to_a_lost_observer_until_it_is_given_up() {
    let (server, address) = serving(&["--demo", "--cc", "default:ack_timeout=50ms"]);
    let uri = server.at("/clock");
    // This observer never answers. Its socket stays open, so no port unreachable message reports it.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let to = uri.trim_start_matches("coap://").trim_end_matches("/clock").to_owned();
    silent.send_to(b"\x41\x01\x00\x01t\x60\x55clock", to).expect("sent");
    let began = Instant::now();
    let text = loop {
        let text = scrape(&address);
        if value(&text, "coap_observers_removed_total{reason=\"given_up\"}") == 1.0 {
            break text;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{text}");
        std::thread::sleep(Duration::from_millis(100));
    };
    assert_eq!(value(&text, "coap_retransmissions_total"), 4.0);
    assert_eq!(value(&text, "coap_exchanges_ended_total{outcome=\"given_up\"}"), 1.0);
    assert_eq!(
        (value(&text, "coap_observers"), value(&text, "coap_rtt_seconds_count{sample=\"weak\"}")),
        (0.0, 0.0)
    );
}

#[test]
fn the_metrics_endpoint_answers_unknown_paths_with_an_explanation() {
    let (server, address) = serving(&[]);
    let long = format!("GET /metrics HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(20_000));
    for (bytes, status) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], "404 Not Found"),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "405 Method Not Allowed"),
        (b"\x00\xff nonsense\r\n\r\n", "400 Bad Request"),
        (long.as_bytes(), "431 Request Header Fields Too Large"),
    ] {
        let (head, body) = ask(&address, bytes);
        assert!(head.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{head}");
        assert!(body.ends_with('\n') && body.len() < 100, "{body}");
    }
    let (head, body) = ask(&address, b"HEAD /metrics?x HTTP/1.0\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && body.is_empty(), "{head}");
    coapace(&["get", &server.at("/clock")]).success();
    scrape(&address);
}

#[test]
fn silent_connections_to_the_metrics_endpoint_delay_nobody_and_are_closed() {
    let (server, address) = serving(&[]);
    let mut idle: Vec<_> = (0..50).map(|_| connect(&address)).collect();
    for stream in &mut idle[..25] {
        stream.write_all(b"GET /metr").expect("taken");
    }
    let began = Instant::now();
    coapace(&["get", &server.at("/clock"), "--repeat", "20"]).success();
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    // The newest connection closed the oldest. The others have two seconds to send a request.
    for place in [0, 40] {
        let closed = idle[place].read(&mut [0]);
        assert!(matches!(closed, Ok(0) | Err(_)), "closed by the server: {closed:?}");
    }
    assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
    drop(idle);
    assert!(value(&scrape(&address), "coap_datagrams_received_total") >= 20.0);
}

#[test]
fn an_unusable_address_for_metrics_is_reported_in_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("bound").to_string();
    let refused = |code, metrics: &str| {
        let outcome = coapace(&["serve", "--bind", "127.0.0.1:0", "--metrics", metrics]);
        assert_eq!(outcome.stdout, "");
        outcome.failure(code).to_owned()
    };
    assert_eq!(
        refused(1, &address),
        format!("{address} is in use; name another port with --metrics (0 takes any free one)")
    );
    assert!(refused(2, "9683").starts_with("--metrics takes ADDRESS:PORT, such as 127.0.0.1:9683"));
}
