//! Bodies that are too large for the server, and a response that fills a large datagram.

use std::fs;
use std::net::UdpSocket;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use crate::common::{Scratch, Serving, coapace, command, interrupt};
use crate::device::refused;

/// Starts a server that answers every request with this code, and these options and this payload. Returns its URI.
fn answering(code: u8, tail: &'static [u8]) -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let uri = format!("coap://{}", socket.local_addr().expect("an address"));
    std::thread::spawn(move || {
        let mut buffer = [0; 2_048];
        while let Ok((len, from)) = socket.recv_from(&mut buffer) {
            let end = len.min(4 + usize::from(buffer[0] & 15));
            let head = [0x60 | buffer[0] & 15, code, buffer[2], buffer[3]];
            socket.send_to(&[&head[..], &buffer[4..end], tail].concat(), from).expect("loopback");
        }
    });
    uri
}

#[test]
fn an_upload_fails_if_the_server_took_its_first_block_for_the_whole_body() {
    let (server, scratch) = (answering(0x44, b""), Scratch::new());
    let relay = Serving::relay(&server, &["--cc", "default"]);
    let file = scratch.file("payload");
    fs::write(&file, [7; 3_000]).expect("a file");
    for uri in [&server, &relay.uri] {
        for method in ["put", "post", "fetch", "patch", "ipatch"] {
            let said = refused(1, &["request", "-m", method, uri, "-f", &file]);
            assert!(said.contains("2.04 Changed to the first 1024 of 3000 bytes"), "{said}");
        }
        let said = refused(1, &["put", uri, "-f", &file, "-b", "64"]);
        assert!(said.contains("the first 64 of 3000 bytes"), "{said}");
    }
}

#[test]
fn a_refusal_of_a_large_body_names_the_servers_limit_and_the_block_size_that_was_tried() {
    // Size1: 64
    let server = answering(0x8d, b"\xd1\x2f\x40");
    let payload = "x".repeat(500);
    let put = ["put", &server, "-e", &payload];
    assert_eq!(
        refused(3, &put),
        "4.13 Request Entity Too Large; the server takes 64 bytes at most; -b 64 was tried, -b 32 may work"
    );
    assert_eq!(
        refused(3, &[&put[..], &["-b", "32"]].concat()),
        "4.13 Request Entity Too Large; the server takes 64 bytes at most"
    );
}

#[test]
fn a_response_in_a_large_datagram_is_printed_but_is_too_long_for_a_relay() {
    let tail: &'static [u8] = [&[0xff][..], &[b'x'; 8_000]].concat().leak();
    let server = answering(0x45, tail);
    assert_eq!(coapace(&["get", &server]).success(), "x".repeat(8_000));
    let relay = Serving::relay(&server, &["--cc", "default"]);
    assert_eq!(
        refused(3, &["get", &relay.uri]),
        "5.02 Bad Gateway: the response is too long for one datagram; ask for blocks (Block2)"
    );
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    let address = relay.uri.strip_prefix("coap://").expect("a URI");
    let request = [&b"\x40\x03\x00\x07\xff"[..], &[7; 3_000]].concat();
    socket.send_to(&request, address).expect("loopback");
    let mut answer = [0; 200];
    let len = socket.recv(&mut answer).expect("an answer");
    assert_eq!(answer[..7], *b"\x60\x8d\x00\x07\xd2\x2f\x04", "4.13 with Size1: 1024");
    assert!(answer[..len].ends_with(b"(Block1)"));
    let (_, said) = relay.interrupt();
    assert!(said.contains(", 2 datagrams longer than accepted"), "{said}");
}

#[test]
fn a_file_is_uploaded_and_downloaded_with_every_bulk_mechanism() {
    let scratch = Scratch::new();
    let body: Vec<u8> = (0..100_000_u32).map(|at| (at * 7 % 251) as u8).collect();
    let (file, got) = (scratch.file("body"), scratch.file("got"));
    fs::write(&file, &body).expect("a file");
    let stored = scratch.path().join("stored");
    fs::create_dir(&stored).expect("a directory");
    let directory = stored.to_str().expect("UTF-8");
    let server = Serving::new(&["--directory", directory, "--writable"]);
    let without = &["--no-q-block"][..];
    for (file_name, bulk, more) in [
        ("a", "tide", &[][..]),
        ("b", "newreno", &[]),
        ("c", "none", &[]),
        ("d", "tide", without),
        ("e", "rtt-coap", &[]),
    ] {
        let uri = server.at(&format!("/{file_name}"));
        let terms = [&["--bulk", bulk, &uri][..], more].concat();
        coapace(&[&["put", "-f", &file][..], &terms].concat()).success();
        assert!(fs::read(stored.join(file_name)).is_ok_and(|written| written == body), "{bulk}");
        coapace(&[&["get", "-o", &got][..], &terms].concat()).success();
        assert!(fs::read(&got).is_ok_and(|read| read == body), "{bulk}");
    }
    assert_eq!(
        refused(2, &["get", &server.at("/tide"), "--bulk", "ebb"]),
        "ebb is a mechanism for single exchanges (--cc); bulk mechanisms: tide, newreno, rfc9177, rtt-coap"
    );
}

/// Passes datagrams on to a server, and as many of its answers as are `left`. Returns its URI.
fn breaking(server: &str, left: Arc<AtomicI32>) -> String {
    let [near, far] = [(); 2].map(|()| Arc::new(UdpSocket::bind("127.0.0.1:0").expect("a port")));
    far.connect(server.strip_prefix("coap://").expect("a URI")).expect("an address");
    let uri = format!("coap://{}", near.local_addr().expect("an address"));
    let back = near.clone();
    let client = Arc::new(std::sync::Mutex::new(None));
    let (to, answers) = (client.clone(), far.clone());
    std::thread::spawn(move || {
        let mut buffer = [0; 2_048];
        while let Ok(len) = answers.recv(&mut buffer) {
            if left.fetch_sub(1, Ordering::Relaxed) > 0 {
                let to = to.lock().expect("no panic").expect("it has asked");
                back.send_to(&buffer[..len], to).expect("loopback");
            }
        }
    });
    std::thread::spawn(move || {
        let mut buffer = [0; 2_048];
        while let Ok((len, from)) = near.recv_from(&mut buffer) {
            *client.lock().expect("no panic") = Some(from);
            far.send(&buffer[..len]).expect("loopback");
        }
    });
    uri
}

#[test]
fn an_interrupted_download_keeps_its_bytes_and_continues_there() {
    let scratch = Scratch::new();
    let body: Vec<u8> = (0..200_000_u32).map(|at| (at * 7 % 251) as u8).collect();
    let served = scratch.path().join("served");
    fs::create_dir(&served).expect("a directory");
    fs::write(served.join("image"), &body).expect("a file");
    let host = Serving::new(&["--directory", served.to_str().expect("UTF-8")]);
    let left = Arc::new(AtomicI32::new(60));
    let uri = format!("{}/image", breaking(&host.uri, left.clone()));
    let (got, part) = (scratch.file("got"), scratch.file("got.part"));
    let get = ["get", &uri, "-o", &got];

    // Copies of answers count, too, so that there may be fewer blocks.
    let kept = |said: &str| {
        let words =
            said.trim_end().strip_suffix(&format!(" bytes are in {part}, and --continue goes on after them"));
        let bytes = words.and_then(|words| words.rsplit("; ").next()).and_then(|bytes| bytes.parse().ok());
        let bytes: usize = bytes.unwrap_or_else(|| panic!("{said}"));
        let file = fs::read(&part).expect("the part");
        assert!(bytes.is_multiple_of(1_024) && file.ends_with(&body[..bytes]), "{said}");
        bytes
    };
    let said = refused(1, &[&get[..], &["-B", "2s"]].concat());
    let first = kept(&said);
    assert!((10 * 1_024..=60 * 1_024).contains(&first), "{said}");

    left.store(60, Ordering::Relaxed);
    let resume = [&get[..], &["--continue"]].concat();
    let mut again = command();
    let again = again.args(&resume).stderr(Stdio::piped()).spawn().expect("it starts");
    while left.load(Ordering::Relaxed) > 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(300));
    interrupt(&again);
    let ended = again.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert!(said.starts_with(&format!("{first} bytes are in {part}\n")), "{said}");
    assert!(said.contains("interrupted; "), "{said}");
    let second = kept(&said);
    assert!(second > first && second < body.len(), "{said}");
    assert!(!fs::exists(&got).expect("it is known"));

    left.store(i32::MAX, Ordering::Relaxed);
    let whole = coapace(&[&resume[..], &["--stats"]].concat());
    // The first block, and those from the last that had arrived.
    let exchanges = 1 + body.len().div_ceil(1_024) - (second / 1_024 - 1);
    assert!(whole.stderr.contains(&format!("kB/s: {exchanges} exchanges, ")), "{whole:?}");
    assert!(whole.stderr.contains(": tide, window "), "{whole:?}");
    whole.success();
    assert!(fs::read(&got).is_ok_and(|read| read == body));
    assert!(!fs::exists(&part).expect("it is known"));

    assert_eq!(fs::write(&part, "somebody's file").ok(), Some(()));
    coapace(&resume).success();
    assert!(fs::read(&got).is_ok_and(|read| read == body));
    assert_eq!(fs::read(&part).expect("a file"), b"somebody's file");
}
