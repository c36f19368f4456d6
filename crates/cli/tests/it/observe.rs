//! Observations: lost notifications, and their end by either side.

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use crate::common::{self, Serving, command, interrupt};
use crate::metrics::scrape;

/// Starts `coapace observe` and reads its first line.
fn observing(uri: &str, more: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let mut child = command()
        .args(["observe", uri])
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe"));
    assert!(lines.read_line(&mut String::new()).expect("text") > 0, "a first line");
    (child, lines)
}

fn stderr(child: &mut Child) -> String {
    let mut said = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    said
}

fn value(text: &str, sample: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{sample} in {text}")).parse().expect("a number")
}

#[test]
fn sigint_and_sigterm_deregister_an_observation_on_every_transport() {
    let keys = ["-u", "lamp-7", "-k", "secret"];
    let arguments = ["--demo", "--tcp", "127.0.0.1:0", "--ws", "127.0.0.1:0", "--metrics", "127.0.0.1:0"];
    let mut server = Serving::new(&[&arguments[..], &keys].concat());
    let metrics = server.line();
    let metrics = metrics.trim_start_matches("http://").trim_end_matches("/metrics").to_owned();
    let uris = [&[server.uri.clone()][..], &server.others].concat();
    for (count, (uri, signal)) in uris.iter().zip(["-TERM", "-INT", "-TERM", "-TERM"]).enumerate() {
        let (mut child, _lines) = observing(&format!("{uri}/clock"), &keys);
        if count < 2 {
            assert_eq!(value(&scrape(&metrics), "coap_observers"), 1, "{uri}");
        }
        common::signal(&child, signal);
        assert_eq!(child.wait().expect("it ends").code(), Some(0), "{uri}: {}", stderr(&mut child));
    }
    let text = scrape(&metrics);
    assert_eq!(value(&text, "coap_observers"), 0);
    assert_eq!(value(&text, "coap_observers_removed_total{reason=\"deregistered\"}"), 2);
}

#[test]
fn an_observation_continues_after_a_restart_of_the_server_and_reports_the_wait_once() {
    let server = Serving::new(&["--demo"]);
    let address = server.uri.strip_prefix("coap://").expect("its scheme").to_owned();
    let (mut child, mut lines) = observing(&format!("{}/clock", server.uri), &[]);
    assert_eq!(server.interrupt().0, Some(0));
    let _restarted = Serving::listening(&address, &["--demo"]);
    let mut line = String::new();
    // Max-Age is 5 s.
    for _ in 0..3 {
        lines.read_line(&mut line).expect("text");
    }
    assert!(line.lines().count() >= 3, "{line}");
    interrupt(&child);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    let said = stderr(&mut child);
    assert_eq!(said.matches("the server is unavailable; registering again").count(), 1, "{said}");
}

#[test]
fn a_stopping_server_ends_observations_with_5_03_for_clients_that_do_not_register_again() {
    let server = Serving::new(&["--demo", "--tcp", "127.0.0.1:0"]);
    let observers =
        [&server.uri, &server.others[0]].map(|uri| observing(&format!("{uri}/clock"), &["--once"]));
    let begun = Instant::now();
    let (code, said) = server.interrupt();
    assert_eq!(code, Some(0), "{said}");
    for (mut child, _lines) in observers {
        assert_eq!(child.wait().expect("it ends").code(), Some(3));
        let said = stderr(&mut child);
        assert!(said.contains("5.03 Service Unavailable"), "{said}");
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn a_client_registers_again_when_notifications_stop() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.set_read_timeout(Some(Duration::from_mins(1))).expect("a time");
    let uri = format!("coap://{}/x", socket.local_addr().expect("bound"));
    let server = std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        let mut answer = |number: u8| {
            let (len, client) = socket.recv_from(&mut buffer).expect("a registration");
            let registration = &buffer[..len];
            assert!(registration.ends_with(b"\x60\x51x"), "Observe: 0, Uri-Path: x");
            let token = usize::from(registration[0] & 15);
            let head = [0x60 | registration[0] & 15, 0x45];
            // Observe with this number, Max-Age 1.
            let rest = [0x61, number, 0x81, 1, 0xff, b'0' + number];
            let answer = [&head[..], &registration[2..4 + token], &rest].concat();
            socket.send_to(&answer, client).expect("sent");
            registration[4..4 + token].to_vec()
        };
        let first = answer(1);
        let begun = Instant::now();
        assert_eq!(first, answer(2), "the token is the first one (RFC 7641 §3.3.1)");
        begun.elapsed()
    });
    let (mut child, mut lines) = observing(&uri, &["--count", "2"]);
    let mut line = String::new();
    lines.read_line(&mut line).expect("text");
    assert_eq!(line, "2\n");
    let waited = server.join().expect("no panic");
    assert!(waited >= Duration::from_millis(5_500), "{waited:?}: Max-Age and 5 to 15 s");
    let _ = child.wait();
    let said = stderr(&mut child);
    assert!(said.starts_with("no notification has come in time; registering again"), "{said}");
}
