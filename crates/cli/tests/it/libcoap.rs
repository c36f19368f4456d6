//! Tests against libcoap's tools, without TLS and with OpenSSL (Debian: libcoap3-bin). They are skipped where these
//! are not installed.

use std::fs;
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Scratch, Serving, coapace};

/// libcoap's server, stopped when this is dropped.
struct CoapServer {
    child: Child,
    uri: String,
    /// The URI over DTLS, if the server has keys.
    secure: String,
}

impl CoapServer {
    /// Starts it at loopback; `None` if it is not installed.
    fn new(arguments: &[&str]) -> Option<Self> {
        Self::start("notls", &[&["-A", "127.0.0.1"], arguments].concat())
    }

    fn start(library: &str, arguments: &[&str]) -> Option<Self> {
        let port =
            UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
        let program = format!("coap-server-{library}");
        let mut server = Command::new(&program);
        server.args(["-p", &port.to_string(), "-v", "0"]).args(arguments);
        let Ok(child) = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
            println!("skipped: no {program}");
            return None;
        };
        let secure = format!("coaps://127.0.0.1:{}", u32::from(port) + 1);
        let server = Self { child, uri: format!("coap://127.0.0.1:{port}"), secure };
        let begun = Instant::now();
        while coapace(&["ping", &server.uri, "--ack-timeout", "50ms"]).code != Some(0) {
            assert!(begun.elapsed() < Duration::from_secs(20), "{program} does not answer");
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

/// Returns what libcoap's client prints to both outputs; `None` if it is not installed.
fn coap_client(arguments: &[&str]) -> Option<String> {
    coap_client_of("notls", arguments)
}

fn coap_client_of(library: &str, arguments: &[&str]) -> Option<String> {
    let program = format!("coap-client-{library}");
    let Ok(output) = Command::new(&program).args(arguments).stdin(Stdio::null()).output() else {
        println!("skipped: no {program}");
        return None;
    };
    Some(String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_resource_on_a_libcoap_server_is_created_read_changed_and_deleted() {
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
fn a_separate_response_of_a_libcoap_server_is_received() {
    let Some(server) = CoapServer::new(&[]) else { return };
    let answer = coapace(&["get", &server.at("/async?4"), "--json"]).success();
    assert!(answer.contains("\"payload\":\"done\"") && answer.contains("\"transmissions\":1"), "{answer}");
}

/// Sends 200 confirmable requests, one after the other, to a server that drops three responses in ten.
fn all_are_answered(cc: &str) {
    let Some(server) = CoapServer::new(&["-l", "30%"]) else { return };
    let outcome = coapace(&[
        "get",
        &server.at("/time"),
        "--repeat",
        "200",
        "--cc",
        cc,
        // With five transmissions, one exchange in 400 would lose all of them.
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
    // The expected number is 86, with a standard deviation of 11.
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
fn the_libcoap_client_discovers_our_resources() {
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
fn large_bodies_pass_both_ways_between_us_and_libcoap() {
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
        // One exchange has blocks in both directions.
        fs::remove_file(&received).expect("there since the last");
        let echo = server.at("/echo");
        coap_client(&["-m", "post", "-f", &sent, "-o", &received, "-b", size, "-B", "20", &echo]);
        assert!(is_whole(&received), "{size}");
    }
}

#[test]
fn we_observe_libcoap_and_libcoap_observes_us() {
    if let Some(server) = CoapServer::new(&[]) {
        let seen = coapace(&["observe", &server.at("/time"), "--count", "3"]).success();
        assert_eq!(seen.lines().count(), 3, "{seen}");
    }
    let server = Serving::new(&[]);
    let Some(seen) = coap_client(&["-s", "4", "-w", "-B", "10", &server.at("/clock")]) else { return };
    let seconds: Vec<u64> = seen.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert!(seconds.len() >= 4 && seconds.is_sorted(), "{seen}");
}

#[test]
fn a_libcoap_server_accepts_our_key_and_a_wrong_key_is_reported_within_seconds() {
    let secret = ["-u", "lamp-7", "-k", "a long secret"];
    let Some(server) = CoapServer::start("openssl", &[&["-A", "127.0.0.1", "-h", ""][..], &secret].concat())
    else {
        return;
    };
    let uri = format!("{}/time", server.secure);
    assert!(coapace(&[&["get", &uri][..], &secret].concat()).success().contains(':'));
    let seen = coapace(&[&["observe", &uri, "--count", "2"][..], &secret].concat()).success();
    assert_eq!(seen.lines().count(), 2, "{seen}");
    let begun = Instant::now();
    let outcome = coapace(&["get", &uri, "-u", "lamp-7", "-k", "another"]);
    let line = outcome.failure(1);
    assert!(line.contains("handshake took too long") || line.contains("does not accept"), "{line}");
    assert!(line.contains("key") && begun.elapsed() < Duration::from_secs(15), "{line}");
}

#[test]
fn our_server_accepts_a_libcoap_client_only_with_the_right_key() {
    let keys = ["-u", "lamp-7", "-k", "a long secret", "-u", "lamp-8", "-k", "0x736563726574"];
    let server = Serving::new(&[&keys[..], &["--resource", "/greeting=Hello"]].concat());
    let uri = format!("{}/greeting", server.others[0]);
    for (identity, key, answered) in [
        ("lamp-7", "a long secret", true),
        ("lamp-8", "secret", true),
        ("lamp-8", "a long secret", false),
        ("lamp-9", "secret", false),
    ] {
        let said = coap_client_of("openssl", &["-B", "5", "-u", identity, "-k", key, &uri]);
        let Some(said) = said else { return };
        assert_eq!(said.contains("Hello"), answered, "{identity} {key}: {said}");
    }
}

#[test]
fn a_relay_carries_dtls_between_a_client_and_a_server_of_libcoap() {
    let of_server = ["-u", "relay-1", "-k", "another secret"];
    let arguments = [&["-A", "127.0.0.1", "-h", "", "-d", "10"][..], &of_server].concat();
    let Some(server) = CoapServer::start("openssl", &arguments) else { return };
    let keys = [
        "--cc",
        "fasor",
        "-u",
        "lamp-7",
        "-k",
        "a long secret",
        "--server-identity",
        "relay-1",
        "--server-key",
    ];
    let relay = Serving::relay(&server.secure, &[&keys[..], &["another secret"]].concat());
    for library in ["openssl", "gnutls"] {
        let ask = |arguments: &[&str]| {
            let keys = ["-B", "10", "-u", "lamp-7", "-k", "a long secret"];
            coap_client_of(library, &[&keys[..], arguments].concat())
        };
        let uri = relay.at(&format!("/of-{library}"));
        let Some(said) = ask(&["-m", "put", "-e", library, &uri]) else { continue };
        assert!(!said.contains("5.04") && !said.contains("fail"), "{library}: {said}");
        assert_eq!(ask(&[&uri]).expect("installed").trim_end(), library);
        let seen = ask(&["-s", "3", "-w", &relay.at("/time")]).expect("installed");
        assert!(seen.lines().count() >= 3, "{library}: {seen}");
    }
}

#[test]
fn our_server_answers_a_libcoap_client_over_tcp() {
    let server = Serving::new(&["--tcp", "127.0.0.1:0", "--resource", "/greeting=Hello"]);
    let Some(said) = coap_client(&["-B", "5", &format!("{}/greeting", server.others[0])]) else { return };
    assert_eq!(said.trim_end(), "Hello");
}

#[test]
fn discovery_in_a_group_lists_each_member_with_its_links() {
    let Some(server) = CoapServer::start("notls", &["-g", "224.0.1.187"]) else { return };
    let port = server.uri.rsplit(':').next().expect("a port");
    let group = format!("coap://224.0.1.187:{port}");
    let outcome = coapace(&["discover", &group, "rt=ticks"]);
    if outcome.code == Some(1) && outcome.stderr.contains("check address and network") {
        return println!("skipped: no network takes datagrams to groups");
    }
    let links = outcome.success();
    assert!(!links.is_empty());
    for link in links.lines() {
        assert!(link.starts_with("<coap://") && link.contains(&format!(":{port}/time>;")), "{links}");
    }
    let nobody = coapace(&["discover", "coap://224.0.1.187:9", "-B", "300ms"]);
    assert!(nobody.failure(1).contains("nobody answered"), "{nobody:?}");
}

#[test]
fn a_libcoap_client_gets_responses_but_no_errors_from_a_group() {
    let server = Serving::bound_to("0.0.0.0", &["--group", "224.0.1.187", "--resource", "/greeting=Hello"]);
    let port = server.uri.rsplit(':').next().expect("a port");
    let ask = |path: &str| {
        let uri = format!("coap://224.0.1.187:{port}{path}");
        coap_client_of("openssl", &["-m", "get", "-N", "-B", "7", &uri])
    };
    let Some(said) = ask("/greeting") else { return };
    if said.contains("unreachable") {
        return println!("skipped: no network takes datagrams to groups");
    }
    assert_eq!(said.matches("Hello").count(), 1, "{said}");
    let silence = ask("/nowhere").expect("installed");
    assert!(!silence.contains("4.04"), "{silence}");
}

#[test]
fn a_libcoap_client_reads_and_writes_files_of_our_server() {
    let scratch = Scratch::new();
    let lines: Vec<_> = (0..700).map(|line| format!("line {line:04}\n")).collect();
    let text = lines.concat();
    fs::write(scratch.path().join("lines.txt"), &text).expect("a file");
    let top = scratch.path().to_str().expect("UTF-8");
    let server = Serving::new(&["--directory", top, "--writable"]);
    let received = scratch.file("received");
    let get = ["-m", "get", "-o", &received, "-B", "20", &server.at("/lines.txt")];
    let Some(_) = coap_client(&get) else { return };
    assert_eq!(fs::read_to_string(&received).expect("a file"), text);
    let uri = server.at("/copy.txt");
    coap_client(&["-m", "put", "-f", &received, "-b", "256", "-B", "20", &uri]);
    assert_eq!(fs::read_to_string(scratch.path().join("copy.txt")).expect("a file"), text);
    coap_client(&["-m", "delete", "-B", "20", &uri]);
    assert!(!scratch.path().join("copy.txt").exists());
}
