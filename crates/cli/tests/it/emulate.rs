//! `coapace emulate` between sockets. `tests/check-emulate` has the checks that need namespaces.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use crate::common::{Scratch, Serving, coapace, command};

/// An emulator in front of a server. It is killed when it goes.
struct Emulating {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
}

impl Emulating {
    fn new(arguments: &[&str]) -> Self {
        let mut child = command()
            .arg("emulate")
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, out }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }
}

impl Drop for Emulating {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn emulate_forwards_counts_and_captures_a_request() {
    let server = Serving::new(&["--resource", "/hello=Hello"]);
    let to = server.uri.trim_start_matches("coap://");
    let scratch = Scratch::new();
    let file = scratch.file("link.pcapng");
    let mut emulator = Emulating::new(&[
        "nb-iot",
        "--listen",
        "127.0.0.1:0",
        "--to",
        to,
        "--metrics",
        "127.0.0.1:0",
        "--duration",
        "3s",
        "--pcap",
        &file,
    ]);
    let (uri, metrics) = (emulator.line(), emulator.line());
    let answer = coapace(&["get", &format!("{uri}/hello")]).success();
    assert_eq!(answer.trim_end(), "Hello");
    let address = metrics.trim_start_matches("http://").trim_end_matches("/metrics");
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").expect("taken");
    let mut body = String::new();
    stream.read_to_string(&mut body).expect("text");
    assert!(body.contains("coap_emulator_packets_total{event=\"entered\"} "), "{body}");
    assert!(body.contains("coap_emulator_sources 1"), "{body}");
    let mut rest = String::new();
    emulator.out.read_to_string(&mut rest).expect("text");
    assert_eq!(emulator.child.wait().expect("it ends").code(), Some(0));
    assert!(rest.starts_with("1 sources, "), "{rest}");
    assert!(
        rest.contains("\nup.radio: ") && rest.contains("\nlateness: 50 % of departures within "),
        "{rest}"
    );
    let capture = std::fs::read(&file).expect("a capture");
    assert!(capture.windows(5).any(|bytes| bytes == b"Hello"), "{} bytes", capture.len());
}

#[test]
fn a_scenario_that_cannot_be_emulated_is_refused_in_one_line() {
    let ends = ["--listen", "127.0.0.1:0", "--to", "127.0.0.1:9"];
    let refusal = |arguments: &[&str]| coapace(&[&["emulate"], arguments].concat()).failure(2).to_owned();
    assert!(refusal(&[&["mesh-grid"], &ends[..]].concat()).starts_with("a mesh cannot be emulated"));
    assert!(refusal(&["nb-iot"]).starts_with("emulate needs --listen and --to"));
    assert!(refusal(&["nb-iot", "--listen", "127.0.0.1:7"]).contains("--to"));
    assert!(
        refusal(&["nb-iot", "--listen", "here", "--to", "127.0.0.1:9"])
            .contains("--listen takes ADDRESS:PORT")
    );
    assert!(
        refusal(&["nb-iot", "--tun", "--listen", "127.0.0.1:7", "--to", "127.0.0.1:9"])
            .contains("cannot be used with")
    );
}
