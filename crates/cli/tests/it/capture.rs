//! Captures of commands, read by tshark. Tests that need tshark are skipped without it.

use crate::common::{Scratch, Serving, coapace};

/// Returns the packets of a capture as tshark reads them: one per line, with the fields separated by tabs.
fn tshark(file: &str, fields: &[&str], port: &str) -> Option<String> {
    let decode = format!("udp.port=={port},coap");
    read(file, &["-d", &decode, "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"], fields)
}

/// Runs tshark on a capture with further arguments. Returns the fields of each packet, or nothing without tshark.
fn read(file: &str, more: &[&str], fields: &[&str]) -> Option<String> {
    let mut tshark = std::process::Command::new("tshark");
    tshark.args(["-r", file]).args(more);
    tshark.args(["-T", "fields"]).args(fields.iter().flat_map(|field| ["-e", field]));
    let Ok(output) = tshark.output() else {
        println!("skipped: no tshark");
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn a_capture_of_a_client_has_every_datagram_with_its_addresses_and_valid_checksums() {
    let (server, scratch) = (Serving::new(&["--resource", "/a=1"]), Scratch::new());
    let file = scratch.file("capture.pcapng");
    coapace(&["get", &server.at("/a"), "--repeat", "2", "--pcap", &file]).success();
    let port = server.uri.rsplit(':').next().expect("a port");
    let fields = [
        "ip.src",
        "ip.dst",
        "ip.checksum.status",
        "udp.checksum.status",
        "coap.code",
        "coap.type",
        "udp.dstport",
    ];
    let Some(read) = tshark(&file, &fields, port) else { return };
    let lines: Vec<Vec<&str>> = read.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines.len(), 4, "{read}");
    for (place, line) in lines.iter().enumerate() {
        let (code, kind) = if place % 2 == 0 { ("1", "0") } else { ("69", "2") };
        assert_eq!(line[..6], ["127.0.0.1", "127.0.0.1", "1", "1", code, kind], "{read}");
        assert_eq!(line[6] == port, place % 2 == 0, "{read}");
    }
    ping_is_captured(&server, &scratch.file("ping.pcapng"), port);
    a_load_is_captured(&server, &scratch.file("load.pcapng"), port);
}

/// Checks the capture of a load. A datagram that `--loss` drops on the way out is in it. One dropped on the way in is not.
fn a_load_is_captured(server: &Serving, file: &str, port: &str) {
    let lossy = ["--loss", "0.2", "--ack-timeout", "10ms", "--max-retransmit", "20", "--duration", "2"];
    let uri = server.at("/a");
    let load = [&["load", &uri, "--pcap", file, "--json"][..], &lossy].concat();
    let result: serde_json::Value = serde_json::from_str(&coapace(&load).success()).expect("an object");
    let read = tshark(file, &["coap.code"], port).unwrap_or_default();
    let count = |code: &str| read.lines().filter(|line| *line == code).count() as u64;
    let answered = result["answered"].as_u64().expect("a number");
    assert!(answered > 0 && count("69") >= answered, "{result} {read}");
    assert!(count("1") > count("69"), "{result} {read}");
}

#[test]
fn a_capture_of_a_server_has_requests_and_responses_with_the_address_that_was_asked() {
    let scratch = Scratch::new();
    let file = scratch.file("serve.pcapng");
    let server = Serving::new(&["--resource", "/a=1", "--pcap", &file]);
    coapace(&["get", &server.at("/a"), "--repeat", "3"]).success();
    let port = server.uri.rsplit(':').next().expect("a port").to_owned();
    assert_eq!(server.interrupt().0, Some(0));
    let fields = ["ip.src", "ip.checksum.status", "udp.checksum.status", "coap.code", "udp.srcport"];
    let Some(read) = tshark(&file, &fields, &port) else { return };
    assert_eq!(read.lines().count(), 6, "{read}");
    let answer = format!("127.0.0.1\t1\t1\t69\t{port}");
    assert_eq!(read.lines().filter(|line| *line == answer).count(), 3, "{read}");
}

#[test]
fn a_capture_has_the_records_of_dtls_in_both_directions() {
    let (server, scratch) = (Serving::new(&["-u", "a", "-k", "b"]), Scratch::new());
    let (file, uri) = (scratch.file("records.pcapng"), format!("{}/clock", server.others[0]));
    coapace(&["get", &uri, "-u", "a", "-k", "b", "--pcap", &file]).success();
    let port = server.others[0].rsplit(':').next().expect("a port");
    let Some(read) = tshark(&file, &["udp.srcport"], port) else { return };
    let theirs = read.lines().filter(|line| *line == port).count();
    // The server sends the cookie, its hello, the end of the handshake, and the response. The client sends as many,
    // or one more to close the session.
    assert_eq!(theirs, 4, "{read}");
    assert!((4..=5).contains(&(read.lines().count() - theirs)), "{read}");
}

fn ping_is_captured(server: &Serving, file: &str, port: &str) {
    coapace(&["ping", &server.uri, "--pcap", file]).success();
    let read = tshark(file, &["coap.code", "coap.type"], port).unwrap_or_default();
    assert_eq!(read, "0\t0\n0\t3\n");
}

/// Returns the codes of the CoAP messages that tshark finds by port numbers alone.
fn by_itself(file: &str, more: &[&str]) -> Option<String> {
    read(file, more, &["coap.code"])
}

#[test]
fn a_capture_of_an_unusual_port_tells_how_to_decode_it_or_is_written_with_the_coap_port() {
    let scratch = Scratch::new();
    let [file, at_server, plain] =
        ["a.pcapng", "served.pcapng", "plain.pcapng"].map(|name| scratch.file(name));
    let server = Serving::new(&["--resource", "/a=1", "--pcap", &at_server, "--pcap-as-coap"]);
    let port = server.uri.rsplit(':').next().expect("a port").to_owned();
    let outcome = coapace(&["get", &server.at("/a"), "--pcap", &plain]);
    let decode = format!("-d udp.port=={port},coap");
    assert_eq!(
        outcome.stderr,
        format!("the packets are captured; to read them: tshark -r {plain} {decode}\n")
    );
    assert_eq!(coapace(&["-q", "get", &server.at("/a"), "--pcap", &plain]).stderr, "");
    let outcome = coapace(&["get", &server.at("/a"), "--pcap", &file, "--pcap-as-coap"]);
    assert_eq!(outcome.stderr, "");
    assert_eq!(server.interrupt().0, Some(0));
    let text = String::from_utf8_lossy(&std::fs::read(&plain).expect("a capture")).into_owned();
    assert!(text.contains(&format!("CoAP on UDP port {port} ({decode})")), "the interfaces say so");
    let Some(read) = by_itself(&plain, &[]) else { return };
    assert_eq!(read, "\n\n", "tshark does not know this port");
    let arguments: Vec<&str> = decode.split(' ').collect();
    assert_eq!(by_itself(&plain, &arguments).as_deref(), Some("1\n69\n"));
    assert_eq!(by_itself(&file, &[]).as_deref(), Some("1\n69\n"));
    assert_eq!(by_itself(&at_server, &[]).as_deref(), Some("1\n69\n1\n69\n1\n69\n"));
}

#[test]
fn a_capture_that_cannot_be_written_is_reported() {
    let server = Serving::new(&[]);
    let (uri, scratch) = (server.at("/counter"), Scratch::new());
    let missing = scratch.file("no-such-folder/file");
    let outcome = coapace(&["post", &uri, "--pcap", &missing]);
    assert!(outcome.failure(1).starts_with(&format!("cannot write {missing}: ")), "{outcome:?}");
    assert_eq!(coapace(&["get", &uri]).success(), "0");
    if cfg!(target_os = "linux") {
        let outcome = coapace(&["post", &uri, "--pcap", "/dev/full"]);
        assert_eq!((outcome.stdout.as_str(), outcome.code), ("1", Some(1)));
        assert!(outcome.failure(1).starts_with("cannot write /dev/full: "), "{outcome:?}");
    }
}
