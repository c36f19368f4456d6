//! The log of a server, and what must not be in it.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{Scratch, Serving, coapace, command};
use crate::device::json;

#[test]
fn the_log_has_a_line_for_each_request_with_peer_method_path_code_size_time_and_transport() {
    let mut server = Serving::new(&["--demo", "--tcp", "127.0.0.1:0", "-v", "--log", "json"]);
    for uri in [server.uri.clone(), server.others[0].clone()] {
        coapace(&["put", &format!("{uri}/echo?secret=1"), "-e", "a payload"]).success();
        let line = server.says(&["coapace_net::access"]);
        let event = json(&line);
        assert_eq!((&event["level"], &event["message"]), (&"INFO".into(), &"request".into()), "{line}");
        assert_eq!((&event["method"], &event["path"]), (&"PUT".into(), &"/echo".into()), "{line}");
        assert_eq!((&event["code"], &event["transport"]), (&"2.04".into(), &uri.split(':').next().into()));
        assert!(event["peer"].as_str().is_some_and(|peer| peer.starts_with("127.0.0.1:")), "{line}");
        assert!(event["bytes"].as_u64().is_some_and(|bytes| bytes >= 9), "{line}");
        assert!(event["duration_ms"].as_f64().is_some_and(|ms| (0.0..60_000.0).contains(&ms)), "{line}");
        assert!(!line.contains("payload") && !line.contains("secret"), "{line}");
    }
    // A delayed response is logged when it is sent. A refused request is logged too.
    coapace(&["get", &server.at("/delayed?s=1")]).success();
    let event = json(&server.says(&["/delayed"]));
    assert!(event["duration_ms"].as_f64().is_some_and(|ms| ms >= 1_000.0), "{event}");
    coapace(&["get", &server.at("/nowhere")]);
    assert_eq!(json(&server.says(&["/nowhere"]))["code"], "4.04");
}

#[test]
fn the_log_and_the_metrics_count_each_block_of_a_body_as_a_request() {
    let server = Serving::new(&["--demo", "-v"]);
    coapace(&["get", &server.at("/large?bytes=5000")]).success();
    let (_, said) = server.interrupt();
    assert_eq!(said.matches("path=\"/large\"").count(), 5, "{said}");
}

#[test]
fn text_from_peers_is_escaped_in_the_log() {
    let mut server = Serving::new(&["--demo", "-v", "-u", "known", "-k", "secret"]);
    coapace(&["get", &server.at("/%1b%5b31m%0aFORGED%20line")]);
    let line = server.says(&["coapace_net::access"]);
    assert!(line.contains(r#"path="/\u{1b}[31m\nFORGED line""#), "{line:?}");
    coapace(&["get", &format!("{}/clock", server.others[0]), "-u", "\u{1b}]0;x\u{7}", "-k", "x"]);
    let line = server.says(&["handshake failed"]);
    assert!(!line.contains('\u{1b}') && line.contains(r"\u{1b}]0;x\u{7}"), "{line:?}");
}

#[test]
fn a_failed_handshake_is_logged_with_its_reason_at_most_once_a_second() {
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
fn the_log_begins_with_resources_and_limits_and_ends_with_counters() {
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
fn the_log_reports_a_reached_limit_with_a_count() {
    let mut server = Serving::new(&["--demo"]);
    // This is longer than any message that the server accepts.
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    for _ in 0..50 {
        socket.send_to(&[0x40; 3_000], server.uri.trim_start_matches("coap://")).expect("sent");
    }
    let line = server.says(&["limit reached"]);
    assert!(line.contains(" WARN ") && line.contains("what=\"datagrams longer than accepted\""), "{line}");
    let (_, said) = server.interrupt();
    let counts = [&line].into_iter().map(String::as_str).chain(said.lines());
    let count = |line: &str| -> Option<u64> {
        line.split_once("limit reached")?.1.split_once("count=")?.1.trim().parse().ok()
    };
    let sum: u64 = counts.filter_map(count).sum();
    assert_eq!(sum, 50, "{line} {said}");
}

#[test]
fn lines_for_the_systemd_journal_have_priorities_but_no_times_or_colours() {
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
