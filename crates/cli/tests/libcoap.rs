//! Against libcoap, where its tools without TLS are installed (Debian: libcoap3-bin).

mod common;

use std::fs;
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::{Scratch, Serving, coapace};

/// libcoap's server at a port of loopback, until it is dropped.
struct CoapServer {
    child: Child,
    uri: String,
}

impl CoapServer {
    /// Nothing where it is not installed.
    fn new(arguments: &[&str]) -> Option<Self> {
        let port =
            UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
        let mut server = Command::new("coap-server-notls");
        server.args(["-A", "127.0.0.1", "-p", &port.to_string(), "-v", "0"]).args(arguments);
        let Ok(child) = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
            println!("skipped: no coap-server-notls");
            return None;
        };
        let server = Self { child, uri: format!("coap://127.0.0.1:{port}") };
        let begun = Instant::now();
        while coapace(&["ping", &server.uri, "--ack-timeout", "50ms"]).code != Some(0) {
            assert!(begun.elapsed() < Duration::from_secs(20), "coap-server-notls does not answer");
            thread::sleep(Duration::from_millis(50));
        }
        Some(server)
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.uri)
    }
}

impl Drop for CoapServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What libcoap's client prints on both of its outputs; nothing where it is not installed.
fn coap_client(arguments: &[&str]) -> Option<String> {
    let client = Command::new("coap-client-notls").args(arguments).stdin(Stdio::null()).output();
    let Ok(output) = client else {
        println!("skipped: no coap-client-notls");
        return None;
    };
    Some(String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_resource_of_libcoap_is_made_read_changed_and_removed() {
    let Some(server) = CoapServer::new(&["-d", "10"]) else { return };
    let uri = server.at("/made");
    assert_eq!(coapace(&["get", &uri]).failure(3).split(':').next(), Some("4.04 Not Found"));
    assert!(coapace(&["put", &uri, "-e", "one", "--json"]).success().contains("\"code\":\"2.01\""));
    assert_eq!(coapace(&["get", &uri]).success(), "one");
    assert!(coapace(&["put", &uri, "-e", "two", "--json"]).success().contains("\"code\":\"2.04\""));
    assert_eq!(coapace(&["get", &uri, "--cc", "fasor-token"]).success(), "two");
    assert!(coapace(&["delete", &uri, "--json"]).success().contains("\"code\":\"2.02\""));
    assert_eq!(coapace(&["get", &uri]).failure(3).split(':').next(), Some("4.04 Not Found"));
}

#[test]
fn a_separate_response_of_libcoap_is_waited_for() {
    let Some(server) = CoapServer::new(&[]) else { return };
    let answer = coapace(&["get", &server.at("/async?4"), "--json"]).success();
    assert!(answer.contains("\"payload\":\"done\"") && answer.contains("\"transmissions\":1"), "{answer}");
}

/// 200 confirmable requests, one after the other, to a server that loses three responses in ten.
fn all_are_answered(cc: &str) {
    let Some(server) = CoapServer::new(&["-l", "30%"]) else { return };
    let outcome = coapace(&[
        "get",
        &server.at("/time"),
        "--repeat",
        "200",
        "--cc",
        cc,
        // Of five transmissions all are lost once in 400 exchanges.
        "--max-retransmit",
        "12",
        "--ack-timeout",
        "100ms",
    ]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let sum = outcome.stderr.trim_end();
    println!("{cc}: {sum}");
    assert!(sum.starts_with("200 of 200 answered in "), "{sum}");
    let retransmissions: u32 = sum
        .rsplit_once("; ")
        .and_then(|(_, last)| last.split(' ').next()?.parse().ok())
        .expect("a count of retransmissions");
    // 86 are to be expected, with a standard deviation of 11.
    assert!((40..=140).contains(&retransmissions), "{sum}");
}

#[test]
fn every_request_to_a_lossy_server_is_answered_under_default() {
    all_are_answered("default");
}

#[test]
fn every_request_to_a_lossy_server_is_answered_under_fasor() {
    all_are_answered("fasor");
}

#[test]
fn the_client_of_libcoap_finds_our_resources() {
    let server = Serving::new(&["--resource", "/greeting=Hello", "--demo"]);
    let ask = |method: &str, path: &str, more: &[&str]| {
        coap_client(&[&["-m", method, "-B", "15"][..], more, &[&server.at(path)]].concat())
    };
    let Some(greeting) = ask("get", "/greeting", &[]) else { return };
    let ask = |method: &str, path: &str, more: &[&str]| ask(method, path, more).unwrap_or_default();
    assert_eq!(greeting.trim_end(), "Hello");
    assert!(ask("get", "/.well-known/core", &[]).contains("</greeting>;title="));
    ask("put", "/store/a", &["-e", "21.5"]);
    assert_eq!(ask("get", "/store/a", &[]).trim_end(), "21.5");
    assert_eq!(ask("post", "/counter", &[]).trim_end(), "1");
    ask("delete", "/store/a", &[]);
    assert!(ask("get", "/store/a", &[]).contains("4.04"));
    assert_eq!(ask("get", "/delayed?s=4", &[]).trim_end(), "4 s later");
    // The first transmission is lost, the second arrives.
    assert_eq!(ask("post", "/counter", &["-l", "1"]).trim_end(), "2");
}

#[test]
fn blocks_go_up_and_down_to_libcoap_and_from_it() {
    let scratch = Scratch::new();
    let (sent, received) = (scratch.file("sent"), scratch.file("received"));
    let lines: Vec<_> = (0..700).map(|line| format!("line {line:04}\n")).collect();
    let text = lines.concat();
    fs::write(&sent, &text).expect("a file");
    let is_whole = |path: &str| fs::read_to_string(path).expect("a file") == text;
    if let Some(server) = CoapServer::new(&["-d", "10"]) {
        for size in ["64", "512"] {
            coapace(&["put", &server.at("/a"), "-f", &sent, "-b", size]).success();
            coapace(&["get", &server.at("/a"), "-o", &received, "-b", size]).success();
            assert!(is_whole(&received), "{size}");
        }
    }
    let server = Serving::new(&[]);
    for size in ["64", "512"] {
        let uri = server.at("/store/a");
        let Some(_) = coap_client(&["-m", "put", "-f", &sent, "-b", size, "-B", "20", &uri]) else { return };
        assert_eq!(coapace(&["get", &uri]).success(), text, "{size}");
        fs::remove_file(&received).expect("there since the last");
        coap_client(&["-m", "get", "-o", &received, "-b", size, "-B", "20", &uri]);
        assert!(is_whole(&received), "{size}");
        // Up and down in one.
        fs::remove_file(&received).expect("there since the last");
        let echo = server.at("/echo");
        coap_client(&["-m", "post", "-f", &sent, "-o", &received, "-b", size, "-B", "20", &echo]);
        assert!(is_whole(&received), "{size}");
    }
}

#[test]
fn observations_of_libcoap_and_by_libcoap_go_on() {
    if let Some(server) = CoapServer::new(&[]) {
        let seen = coapace(&["observe", &server.at("/time"), "--count", "3"]).success();
        assert_eq!(seen.lines().count(), 3, "{seen}");
    }
    let server = Serving::new(&[]);
    let Some(seen) = coap_client(&["-s", "4", "-w", "-B", "10", &server.at("/clock")]) else { return };
    let seconds: Vec<u64> = seen.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert!(seconds.len() >= 4 && seconds.is_sorted(), "{seen}");
}
