//! The log of a server, and what must not be in it.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{Scratch, Serving, coapace, command};
use serde_json::Value;

fn json(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

#[test]
fn a_request_is_one_line_with_peer_method_path_code_bytes_time_and_transport() {
    let mut server = Serving::new(&["--demo", "--tcp", "127.0.0.1:0", "-v", "--log", "json"]);
    for uri in [server.uri.clone(), server.others[0].clone()] {
        coapace(&["put", &format!("{uri}/echo?secret=1"), "-e", "a payload"]).success();
        let line = server.says(&["coapace_net::access"]);
        let told = json(&line);
        assert_eq!((&told["level"], &told["message"]), (&"INFO".into(), &"request".into()), "{line}");
        assert_eq!((&told["method"], &told["path"]), (&"PUT".into(), &"/echo".into()), "{line}");
        assert_eq!((&told["code"], &told["transport"]), (&"2.04".into(), &uri.split(':').next().into()));
        assert!(told["peer"].as_str().is_some_and(|peer| peer.starts_with("127.0.0.1:")), "{line}");
        assert!(told["bytes"].as_u64().is_some_and(|bytes| bytes >= 9), "{line}");
        assert!(told["duration_ms"].as_f64().is_some_and(|ms| (0.0..60_000.0).contains(&ms)), "{line}");
        assert!(!line.contains("payload") && !line.contains("secret"), "{line}");
    }
    // A delayed response is logged when it is sent. A refused request is logged too.
    coapace(&["get", &server.at("/delayed?s=1")]).success();
    let told = json(&server.says(&["/delayed"]));
    assert!(told["duration_ms"].as_f64().is_some_and(|ms| ms >= 1_000.0), "{told}");
    coapace(&["get", &server.at("/nowhere")]);
    assert_eq!(json(&server.says(&["/nowhere"]))["code"], "4.04");
}

#[test]
fn each_block_of_a_body_is_a_request_as_in_the_metrics() {
    let server = Serving::new(&["--demo", "-v"]);
    coapace(&["get", &server.at("/large?bytes=5000")]).success();
    let (_, said) = server.interrupt();
    assert_eq!(said.matches("path=\"/large\"").count(), 5, "{said}");
}

#[test]
fn text_from_peers_is_escaped() {
    let mut server = Serving::new(&["--demo", "-v", "-u", "known", "-k", "secret"]);
    coapace(&["get", &server.at("/%1b%5b31m%0aFORGED%20line")]);
    let line = server.says(&["coapace_net::access"]);
    assert!(line.contains(r#"path="/\u{1b}[31m\nFORGED line""#), "{line:?}");
    coapace(&["get", &format!("{}/clock", server.others[0]), "-u", "\u{1b}]0;x\u{7}", "-k", "x"]);
    let line = server.says(&["handshake failed"]);
    assert!(!line.contains('\u{1b}') && line.contains(r"\u{1b}]0;x\u{7}"), "{line:?}");
}

#[test]
fn a_failed_handshake_says_why_and_many_are_one_line_a_second() {
    let mut server = Serving::new(&["--demo", "-u", "lamp-7", "-k", "a long secret"]);
    let uri = format!("{}/clock", server.others[0]);
    coapace(&["get", &uri, "-u", "lamp-7", "-k", "another"]);
    let line = server.says(&["handshake failed"]);
    assert!(line.contains(" WARN ") && line.contains("why=\"wrong key\""), "{line}");
    assert!(line.contains("identity=\"lamp-7\"") && !line.contains("secret"), "{line}");
    std::thread::sleep(Duration::from_secs(1));
    coapace(&["get", &uri, "-u", "lamp-8", "-k", "x"]);
    let line = server.says(&["handshake failed"]);
    assert!(line.contains("why=\"unknown identity\"") && line.contains("identity=\"lamp-8\""), "{line}");
    let begun = Instant::now();
    for _ in 0..30 {
        coapace(&["get", &uri, "-u", "lamp-7", "-k", "another"]);
    }
    let seconds = begun.elapsed().as_secs();
    let (_, said) = server.interrupt();
    let lines = said.matches("handshake failed").count() as u64;
    assert!(lines <= seconds + 2, "{lines} lines in {seconds} s: {said}");
}

#[test]
fn the_start_names_what_is_served_and_each_limit_and_the_end_what_was_done() {
    let mut server = Serving::new(&["--resource", "/a=1", "--resource", "/b=2", "--cc", "fasor"]);
    let line = server.says(&["serving"]);
    for part in [&format!("uris=\"{}\"", server.uri), "resources=2", "cc=\"fasor\"", "threads=1", "version="]
    {
        assert!(line.contains(part), "{part}: {line}");
    }
    let line = server.says(&["limits"]);
    for part in ["max_peers=", "max_observers=", "max_connections=", "max_body_bytes="] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let (code, said) = server.interrupt();
    assert_eq!(code, Some(0));
    assert!(said.contains("stopping") && said.contains("stopped: 0 datagrams"), "{said}");
    assert_eq!(Serving::new(&["-q"]).interrupt(), (Some(0), String::new()));
}

#[test]
fn a_limit_that_is_reached_is_told_with_a_count() {
    let mut server = Serving::new(&["--demo"]);
    // This is longer than any message that the server accepts.
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    for _ in 0..50 {
        socket.send_to(&[0x40; 3_000], server.uri.trim_start_matches("coap://")).expect("sent");
    }
    let line = server.says(&["limit reached"]);
    assert!(line.contains(" WARN ") && line.contains("what=\"datagrams longer than is taken\""), "{line}");
    let (_, said) = server.interrupt();
    let counts = [&line].into_iter().map(String::as_str).chain(said.lines());
    let count = |line: &str| -> Option<u64> {
        line.split_once("limit reached")?.1.split_once("count=")?.1.trim().parse().ok()
    };
    let sum: u64 = counts.filter_map(count).sum();
    assert_eq!(sum, 50, "{line} {said}");
}

#[test]
fn the_journal_gets_priorities_and_neither_times_nor_colours() {
    let scratch = Scratch::new();
    let path = scratch.file("journal");
    let file = File::create(&path).expect("a file");
    let metadata = file.metadata().expect("there");
    let mut child = command()
        .args(["serve", "--bind", "127.0.0.1:0"])
        .env("JOURNAL_STREAM", format!("{}:{}", metadata.dev(), metadata.ino()))
        .stdout(Stdio::null())
        .stderr(Stdio::from(file))
        .spawn()
        .expect("the command starts");
    let begun = Instant::now();
    let said = loop {
        let said = fs::read_to_string(&path).expect("text");
        if said.contains("limits") {
            break said;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{said}");
        std::thread::sleep(Duration::from_millis(20));
    };
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert!(said.lines().all(|line| line.starts_with("<6>coapace::")), "{said}");
}
