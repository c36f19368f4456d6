//! Clients that write files: how much, how fast, where, and the records of it.
#![allow(clippy::float_cmp)] // Counts.

use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{Outcome, Scratch, Serving, coapace};
use crate::metrics::{scrape, serving, value};

fn writable(scratch: &Scratch) -> [String; 3] {
    let directory = scratch.path().to_str().expect("UTF-8").to_owned();
    ["--directory".to_owned(), directory, "--writable".to_owned()]
}

/// Starts a server of a writable directory, and returns it with the address of its metrics.
fn measured(scratch: &Scratch, arguments: &[&str]) -> (Serving, String) {
    let writable = writable(scratch);
    let writable: Vec<&str> = writable.iter().map(String::as_str).collect();
    serving(&[&writable, arguments].concat())
}

fn put(uri: &str, bytes: usize) -> Outcome {
    coapace(&["put", uri, "-e", &"x".repeat(bytes)])
}

#[test]
fn a_client_that_fills_the_directory_is_sent_the_bound_that_it_reached() {
    let scratch = Scratch::new();
    fs::write(scratch.path().join("old"), vec![0; 5_000]).expect("a file");
    let bounds = ["--max-stored", "10K/4K", "--max-files", "4/3"];
    let (server, metrics) = measured(&scratch, &bounds);
    put(&server.at("/a"), 3_000).success();
    let refusal = "4.13 Request Entity Too Large: no room: ";
    let by_client = format!("{refusal}the files of one client may have 4096 bytes");
    assert_eq!(put(&server.at("/b"), 2_000).failure(3), by_client);
    put(&server.at("/b"), 1_000).success();
    put(&server.at("/a"), 3_096).success();
    assert_eq!(put(&server.at("/a"), 3_097).failure(3), by_client, "what it has written counts once");
    put(&server.at("/c"), 0).success();
    assert_eq!(put(&server.at("/d"), 0).failure(3), format!("{refusal}there may be 4 files"));
    coapace(&["delete", &server.at("/old")]).success();
    assert_eq!(put(&server.at("/d"), 0).failure(3), format!("{refusal}one client may have 3 files"));
    coapace(&["delete", &server.at("/c")]).success();
    put(&server.at("/d"), 0).success();
    let text = scrape(&metrics);
    for (sample, expected) in [
        ("coap_stored_files", 3.0),
        ("coap_stored_files_max", 4.0),
        ("coap_stored_bytes", 4_096.0),
        ("coap_stored_bytes_max", 10_240.0),
        ("coap_file_writes_total{result=\"created\"}", 4.0),
        ("coap_file_writes_total{result=\"deleted\"}", 2.0),
        ("coap_file_writes_total{result=\"no_room\"}", 4.0),
    ] {
        assert_eq!(value(&text, sample), expected, "{sample} in {text}");
    }
    let page = include_str!("../../../../docs/metrics.md");
    let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    names.for_each(|name| assert!(page.contains(name), "{name} is not in docs/metrics.md"));
}

#[test]
fn a_client_has_one_share_of_storage_over_all_transports_and_each_identity_its_own() {
    let scratch = Scratch::new();
    let keys = ["-u", "lamp-7", "-k", "secret", "--tcp", "127.0.0.1:0"];
    let arguments = [&keys[..], &["--max-stored", "10K/4K"]].concat();
    let writable = writable(&scratch);
    let writable: Vec<&str> = writable.iter().map(String::as_str).collect();
    let server = Serving::new(&[&writable, &arguments[..]].concat());
    let [dtls, tcp] = server.others.as_slice() else { panic!("{:?}", server.others) };
    put(&server.at("/a"), 4_000).success();
    assert!(put(&format!("{tcp}/b"), 4_000).failure(3).contains("the files of one client"));
    let own = ["put", &format!("{dtls}/b"), "-u", "lamp-7", "-k", "secret", "-e", &"x".repeat(4_000)];
    coapace(&own).success();
    let third = coapace(&["put", &format!("{tcp}/c"), "-e", &"x".repeat(96)]);
    third.success();
    fs::write(scratch.path().join("by another program"), vec![0; 9_000]).expect("a file");
    assert!(fs::read(scratch.path().join("b")).expect("a file").len() == 4_000);
}

#[test]
fn files_present_at_the_start_count_towards_the_total_but_for_no_client() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path().join("sub/.hidden")).expect("folders");
    fs::write(scratch.path().join("sub/.hidden/old"), vec![0; 9_000]).expect("a file");
    let (server, _) = measured(&scratch, &["--max-stored", "10K"]);
    let refusal = "4.13 Request Entity Too Large: no room: all files together may have 10240 bytes";
    assert_eq!(put(&server.at("/a"), 2_000).failure(3), refusal);
    put(&server.at("/a"), 1_240).success();
}

/// Returns the code of the answer to a PUT of one byte, and the answer.
fn put_once(socket: &UdpSocket, number: u8) -> (u8, Vec<u8>) {
    let request = [&[0x41, 0x03, 0, number, number, 0xb1, b'a', 0xff][..], b"x"].concat();
    let mut answer = [0; 1_500];
    loop {
        socket.send(&request).expect("sent");
        // A request may be acknowledged first.
        while let Ok(len) = socket.recv(&mut answer) {
            if len > 5 && answer[4] == number {
                return (answer[1], answer[..len].to_vec());
            }
        }
    }
}

#[test]
fn a_client_that_writes_too_fast_gets_4_29_with_a_pause() {
    let scratch = Scratch::new();
    let (server, metrics) = measured(&scratch, &["--max-writes", "8/2"]);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.connect(server.uri.trim_start_matches("coap://")).expect("an address");
    socket.set_read_timeout(Some(Duration::from_secs(2))).expect("a time");
    let began = Instant::now();
    let answers: Vec<_> = (0..40).map(|number| put_once(&socket, number)).collect();
    let most = 2 * (began.elapsed().as_secs() + 2);
    let written = answers.iter().filter(|(code, _)| matches!(code, 0x41 | 0x44)).count() as u64;
    assert!((2..=most).contains(&written), "{written} of 40, and at most {most}");
    let (_, refused) = answers.iter().find(|(code, _)| *code == 0x9d).expect("one is answered 4.29");
    assert!(refused.ends_with(b"a client may write 2 times a second"), "{refused:?}");
    // Max-Age is option 14, here of one byte: 1.
    assert!(refused.windows(3).any(|bytes| bytes == [0xd1, 1, 1]), "{refused:?}");
    assert!(value(&scrape(&metrics), "coap_file_writes_total{result=\"too_fast\"}") > 0.0);
}

#[test]
fn symbolic_links_of_the_operator_are_not_replaced_by_writes() {
    let scratch = Scratch::new();
    let path = |name: &str| scratch.path().join(name);
    fs::create_dir_all(path("v1")).expect("a folder");
    fs::write(path("v1/a"), "one").expect("a file");
    for (name, to) in [("current", "v1"), ("a", "v1/a"), ("gone", "nowhere")] {
        symlink(to, path(name)).expect("a link");
    }
    let (server, _) = measured(&scratch, &[]);
    for name in ["current", "a", "gone"] {
        let before = fs::read_link(path(name)).expect("a link");
        for method in ["put", "delete"] {
            for condition in [&[][..], &["-O", "1"], &["-O", "5"]] {
                let uri = server.at(&format!("/{name}"));
                let outcome = coapace(&[&[method, &uri, "-e", "x"], condition].concat());
                assert_eq!(outcome.failure(3), "4.03 Forbidden: it is a symbolic link", "{method} {name}");
            }
        }
        assert_eq!(fs::read_link(path(name)).expect("it is there"), before);
    }
    assert_eq!(fs::read(path("v1/a")).expect("a file"), b"one");
    // Files behind a link to a directory are files like others.
    put(&server.at("/current/a"), 1).success();
    assert_eq!(fs::read(path("v1/a")).expect("a file"), b"x");
}

#[test]
fn a_client_writes_only_where_its_permission_allows_and_a_stranger_nowhere() {
    let scratch = Scratch::new();
    let (top, rights) = (scratch.path().join("top"), scratch.file("rights"));
    fs::create_dir_all(top.join("up/lamp-7")).expect("folders");
    fs::create_dir_all(top.join("up/lamp-77")).expect("folders");
    fs::write(&rights, "# who writes where\n/up/lamp-7 lamp-7\n/shared *\n").expect("a file");
    let mut server = Serving::new(&[
        "--directory",
        top.to_str().expect("UTF-8"),
        "--writable",
        "--rights",
        &rights,
        "-u",
        "lamp-7",
        "-k",
        "secret",
        "-u",
        "lamp-8",
        "-k",
        "other",
    ]);
    let dtls = server.others[0].clone();
    let as_client = |words: &[&str], path: &str, keys: [&str; 4]| {
        let uri = format!("{dtls}{path}");
        coapace(&[words, &[&uri, "-e", "x"], &keys].concat())
    };
    let lamp_7 = ["-u", "lamp-7", "-k", "secret"];
    as_client(&["put"], "/up/lamp-7/a", lamp_7).success();
    as_client(&["put"], "/shared", lamp_7).success();
    as_client(&["delete"], "/up/lamp-7/a", lamp_7).success();
    for (path, keys) in
        [("/up/lamp-77/a", lamp_7), ("/a", lamp_7), ("/up/lamp-7/a", ["-u", "lamp-8", "-k", "other"])]
    {
        for method in ["put", "delete"] {
            let outcome = as_client(&[method], path, keys);
            let refusal = format!("4.03 Forbidden: {} may not write here", keys[1]);
            assert_eq!(outcome.failure(3), refusal, "{method} {path}");
        }
    }
    let stranger = coapace(&["put", &server.at("/shared"), "-e", "y"]);
    assert_eq!(stranger.failure(3), "4.01 Unauthorized: only clients with an identity may write here");
    assert_eq!(coapace(&["get", &server.at("/shared")]).success(), "x", "everybody may read");
    fs::write(&rights, "/up/lamp-77 lamp-7\n").expect("a file");
    server.signal("-HUP");
    assert!(server.says(&["reloaded"]).contains("rights=1"));
    as_client(&["put"], "/up/lamp-77/a", lamp_7).success();
    assert!(as_client(&["put"], "/shared", lamp_7).failure(3).starts_with("4.03"));
    fs::write(&rights, "/up/lamp-77\n").expect("a file");
    server.signal("-HUP");
    let line = server.says(&["not reloaded"]);
    assert!(line.contains("line 1: expected PATH IDENTITY"), "{line}");
    as_client(&["put"], "/up/lamp-77/a", lamp_7).success();
    let (_, said) = server.interrupt();
    assert!(!said.contains("anybody may write"), "{said}");
}

#[test]
fn an_error_in_the_file_of_permissions_is_reported_with_its_line() {
    let scratch = Scratch::new();
    let (rights, directory) = (scratch.file("rights"), scratch.path().to_str().expect("UTF-8"));
    fs::write(&rights, "/a lamp-7\nb lamp-7\n").expect("a file");
    let serve = ["serve", "--bind", "127.0.0.1:0", "--directory", directory];
    let outcome = coapace(&[&serve[..], &["--writable", "--rights", &rights]].concat());
    assert_eq!(outcome.failure(1), format!("{rights}, line 2: the path must begin with a slash"));
    assert!(coapace(&[&serve[..], &["--rights", &rights]].concat()).failure(2).contains("--writable"));
    let outcome = coapace(&[&serve[..], &["--writable", "--max-files", "1/2"]].concat());
    assert!(outcome.failure(2).contains("the limit of a client must not exceed the total"), "{outcome:?}");
}

#[test]
fn every_write_is_logged_with_its_client_and_one_refused_write_a_second() {
    let scratch = Scratch::new();
    let directory = scratch.path().to_str().expect("UTF-8");
    let mut server = Serving::new(&[
        "--directory",
        directory,
        "--writable",
        "-u",
        "lamp-7",
        "-k",
        "a long secret",
        "--log",
        "json",
    ]);
    let uri = format!("{}/a", server.others[0]);
    coapace(&["put", &uri, "-u", "lamp-7", "-k", "a long secret", "-e", "a payload"]).success();
    let line = server.says(&["coapace::audit"]);
    let event: Value = serde_json::from_str(&line).expect("JSON");
    for (field, expected) in [
        ("level", "INFO"),
        ("message", "write"),
        ("transport", "coaps"),
        ("identity", "lamp-7"),
        ("method", "PUT"),
        ("path", "/a"),
        ("code", "2.01"),
        ("result", "created"),
    ] {
        assert_eq!(event[field], expected, "{field} in {line}");
    }
    assert_eq!(event["bytes"], 9, "{line}");
    assert!(event["peer"].as_str().is_some_and(|peer| peer.starts_with("127.0.0.1:")), "{line}");
    assert!(!line.contains("payload") && !line.contains("secret"), "{line}");
    coapace(&["delete", &server.at("/a")]).success();
    assert!(server.says(&["coapace::audit"]).contains("\"deleted\""));
    for _ in 0..5 {
        coapace(&["put", &server.at("/no/such/folder"), "-e", "x"]);
    }
    let line = server.says(&["write refused"]);
    assert!(
        line.contains("\"WARN\"") && line.contains("\"4.04\"") && line.contains("\"suppressed\":0"),
        "{line}"
    );
}
