//! The command over TLS and WebSockets, with good and bad certificates.

use std::thread;
use std::time::{Duration, Instant};

use crate::certified::{Authority, Files, Issued};
use crate::common::{Serving, coapace};
use crate::device::refused;
use crate::metrics::scrape;

const ANY: &str = "127.0.0.1:0";

/// The files of an authority, and of a server's and a client's certificate that it has issued.
struct Papers {
    files: Files,
    authority: Authority,
    ca: String,
    server: [String; 4],
    client: [String; 4],
}

impl Papers {
    fn new(name: &str) -> Self {
        let (files, authority) = (Files::new(name), Authority::new());
        let ca = files.write("ca.pem", &authority.pem);
        let server = own(&files, "server", &authority.issue(&["127.0.0.1"]));
        let client = own(&files, "lamp-7", &authority.issue(&["lamp-7"]));
        Self { files, authority, ca, server, client }
    }
}

/// Returns the arguments for a certificate and its key.
fn own(files: &Files, name: &str, issued: &Issued) -> [String; 4] {
    let certificate = files.write(&format!("{name}.pem"), &issued.certificate);
    let key = files.write(&format!("{name}.key"), &issued.key);
    ["--cert".to_owned(), certificate, "--private-key".to_owned(), key]
}

/// Starts a server with these arguments.
fn serving(words: &[&str], papers: &[String]) -> Serving {
    let papers: Vec<&str> = papers.iter().map(String::as_str).collect();
    Serving::new(&[words, &papers].concat())
}

#[test]
fn tls_and_websockets_serve_the_same_resources() {
    let papers = Papers::new("cli-same");
    let words = ["--tcp", ANY, "--tls", ANY, "--ws", ANY, "--wss", ANY, "--metrics", ANY];
    let mut server = serving(&words, &papers.server);
    let metrics = server.line();
    let schemes: Vec<_> = server.others.iter().map(|uri| uri.split("://").next().unwrap_or("")).collect();
    assert_eq!(schemes, ["coap+tcp", "coaps+tcp", "coap+ws", "coaps+ws"]);
    for (uri, count) in server.others.iter().zip(["1", "2", "3", "4"]) {
        let ask = |arguments: &[&str]| coapace(&[arguments, &["--ca", &papers.ca]].concat()).success();
        assert_eq!(ask(&["post", &format!("{uri}/counter")]), count, "{uri}");
        assert_eq!(ask(&["put", &format!("{uri}/echo"), "-e", "x"]), "x");
        assert_eq!(ask(&["get", &format!("{uri}/large?bytes=100000")]).len(), 100_000);
        assert_eq!(ask(&["observe", &format!("{uri}/clock"), "--count", "2"]).lines().count(), 2);
        assert!(ask(&["ping", uri]).contains(" answers after "));
        assert!(ask(&["discover", uri]).contains("</clock>"));
        let load = ask(&["load", &format!("{uri}/clock"), "--clients", "2", "--duration", "200ms"]);
        assert!(load.contains(" 0 failed"), "{uri}: {load}");
    }
    assert_eq!(refused(3, &["get", &format!("{}/nothing", server.others[2])]), "4.04 Not Found");

    // A client that does not trust the server makes a handshake fail, for the counters.
    refused(2, &["get", &format!("{}/clock", server.others[1])]);
    let stranger = papers.files.write("stranger.pem", &Authority::new().pem);
    refused(1, &["get", &format!("{}/clock", server.others[1]), "--ca", &stranger]);
    // The client has ended, but the server may not have counted it yet.
    let begun = Instant::now();
    let text = loop {
        let text = scrape(metrics.trim_start_matches("http://").trim_end_matches("/metrics"));
        if !text.contains("\ncoap_tcp_handshakes_failed_total 0\n")
            || begun.elapsed() > Duration::from_secs(10)
        {
            break text;
        }
        thread::sleep(Duration::from_millis(20));
    };
    assert!(text.contains("\ncoap_tcp_handshakes_failed_total 1\n"), "{text}");
    assert!(!text.contains("\ncoap_tcp_notifications_total 0\n"), "{text}");
    let (code, said) = server.interrupt();
    assert_eq!((code, said.matches(" stopped: ").count()), (Some(0), 5), "{said}");
    let of = |scheme: &str| {
        let stopped = |line: &&str| line.contains(" stopped: ");
        let line = said.lines().filter(stopped).find(|line| line.contains(&format!("uri=\"{scheme}://")));
        line.unwrap_or_else(|| panic!("{said}"))
    };
    assert!(of("coaps+tcp").contains("; 1 handshakes failed; "), "{said}");
    assert!(
        of("coap+ws").contains(" connections with ") && of("coap+ws").contains("; 0 handshakes failed; "),
        "{said}"
    );
}

#[test]
fn a_server_that_names_issuers_accepts_only_clients_with_their_certificates() {
    let papers = Papers::new("cli-clients");
    let trusting = [&papers.server[..], &["--ca".to_owned(), papers.ca.clone()]].concat();
    let server = serving(&["--tls", ANY, "--wss", ANY, "--resource", "/a=1"], &trusting);
    let stranger = own(&papers.files, "stranger", &Authority::new().issue(&["lamp-7"]));
    for uri in server.others.iter().map(|uri| format!("{uri}/a")) {
        let with = |own: &[String; 4]| {
            let words = ["get", &uri, "--ca", &papers.ca].map(str::to_owned);
            [&words[..], own].concat()
        };
        let ask = |words: &[String]| coapace(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(ask(&with(&papers.client)).success(), "1");
        let line = refused(1, &["get", &uri, "--ca", &papers.ca]);
        assert!(line.ends_with("it wants a certificate; check the port, --cert and --private-key"), "{line}");
        assert!(ask(&with(&stranger)).failure(1).contains("refused by the peer: "), "{uri}");
    }
}

#[test]
fn an_untrusted_certificate_is_reported_with_the_reason_and_a_remedy() {
    let papers = Papers::new("cli-distrust");
    let server = serving(&["--tls", ANY], &papers.server);
    let uri = format!("{}/clock", server.others[0]);
    let stranger = papers.files.write("stranger.pem", &Authority::new().pem);
    let line = refused(1, &["get", &uri, "--ca", &stranger]);
    assert_eq!(line, format!("{uri}: certificate of an unknown issuer; check --ca"));
    let by_name = uri.replace("127.0.0.1", "localhost");
    let line = refused(1, &["get", &by_name, "--ca", &papers.ca]);
    assert!(line.ends_with("certificate not valid for localhost; use a name that it covers"), "{line}");

    let old = own(&papers.files, "old", &papers.authority.issue_expired(&["127.0.0.1"]));
    let server = serving(&["--tls", ANY], &old);
    for command in ["get", "observe", "ping", "discover", "load"] {
        let line = refused(1, &[command, &format!("{}/clock", server.others[0]), "--ca", &papers.ca]);
        assert!(line.contains("certificate expired; the server needs another"), "{command}: {line}");
    }
    // This server has no TLS.
    let server = serving(&["--tcp", ANY], &[]);
    let line =
        refused(1, &["get", &server.others[0].replace("coap+", "coaps+"), "--ca", &papers.ca, "-B", "5"]);
    assert!(line.starts_with("coaps+tcp://") && line.lines().count() == 1, "{line}");
}

#[test]
fn unusable_certificates_are_reported() {
    let papers = Papers::new("cli-unusable");
    let (uri, ca) = ("coaps+tcp://127.0.0.1:9/", papers.ca.as_str());
    let [_, certificate, _, key] = &papers.server;
    let [.., other] = &papers.client;
    assert!(refused(2, &["get", uri]).contains("give --ca FILE"));
    assert!(refused(1, &["get", uri, "--ca", ca]).contains("nobody listens there"));
    assert!(refused(2, &["get", uri, "--cert", certificate, "--private-key", key]).contains("--ca"));
    assert!(refused(2, &["get", uri, "--ca", ca, "--cert", certificate]).contains("--private-key"));
    assert!(refused(2, &["get", uri, "--ca", ca, "--private-key", key]).contains("--cert"));
    let line = refused(1, &["get", uri, "--ca", "/no-such-file"]);
    assert!(line.starts_with("cannot read the certificates in /no-such-file: "), "{line}");
    let line = refused(1, &["get", uri, "--ca", key]);
    assert_eq!(line, format!("cannot trust {key}: the file has no certificate"));
    let line = refused(1, &["get", uri, "--ca", ca, "--cert", certificate, "--private-key", other]);
    assert!(line.ends_with("the private key does not belong to the certificate"), "{line}");

    let serve = ["serve", "--bind", ANY];
    for (code, arguments, part) in [
        (2, &["--tls", ANY][..], "--cert"),
        (2, &["--wss", ANY], "--cert"),
        (2, &["--cert", certificate, "--private-key", key], "--tls"),
        (2, &["--tls", ANY, "--cert", certificate], "--private-key"),
        (2, &["--ws", ANY, "--ca", ca], "--cert"),
        (
            1,
            &["--tls", ANY, "--cert", certificate, "--private-key", other],
            "does not belong to the certificate",
        ),
        (
            1,
            &["--tls", ANY, "--cert", "/no-such-file", "--private-key", key],
            "cannot read the certificate in",
        ),
    ] {
        let line = refused(code, &[&serve, arguments].concat());
        assert!(line.contains(part), "{line}");
    }
}

#[test]
fn a_tcp_port_in_use_is_named_with_the_option_that_changes_it() {
    let papers = Papers::new("cli-in-use");
    let server = serving(&["--ws", ANY], &[]);
    let address = server.others[0].rsplit('/').next().expect("an address");
    let [a, b, c, d] = papers.server.each_ref().map(String::as_str);
    for (flag, own) in [("--tls", &[a, b, c, d][..]), ("--ws", &[]), ("--wss", &[a, b, c, d])] {
        let line = refused(1, &[&["serve", "--bind", ANY, flag, address], own].concat());
        assert_eq!(
            line,
            format!("{address} is in use; name another port with {flag} (0 takes any free one)")
        );
    }
}

#[test]
fn sighup_reloads_certificates_and_keeps_connections_open() {
    let papers = Papers::new("cli-reload");
    let mut server = serving(&["--demo", "--tls", ANY, "--wss", ANY], &papers.server);
    let get =
        |at: usize, ca: &str| coapace(&["get", &format!("{}/counter", server.others[at]), "--ca", ca]).code;
    assert_eq!([get(0, &papers.ca), get(1, &papers.ca)], [Some(0); 2]);
    let clock = format!("{}/clock", server.others[0]);
    let mut observer = crate::common::command();
    observer.args(["observe", &clock, "--ca", &papers.ca]).stdout(std::process::Stdio::piped());
    let mut observer = observer.spawn().expect("the command starts");
    let mut lines = std::io::BufReader::new(observer.stdout.take().expect("a pipe"));
    let mut line = || std::io::BufRead::read_line(&mut lines, &mut String::new()).expect("text");
    assert!(line() > 0);
    // The files now have a certificate of another authority.
    let other = Authority::new();
    let new = other.issue(&["127.0.0.1"]);
    papers.files.write("server.pem", &new.certificate);
    papers.files.write("server.key", &new.key);
    let ca = papers.files.write("other-ca.pem", &other.pem);
    server.signal("-HUP");
    server.says(&["reloaded keys and certificates"]);
    assert_eq!(
        [0, 1].map(|at| coapace(&["get", &format!("{}/counter", server.others[at]), "--ca", &ca]).code),
        [Some(0); 2]
    );
    papers.files.write("server.key", "nonsense");
    server.signal("-HUP");
    assert!(server.says(&["not reloaded"]).contains("cannot use "));
    assert_eq!(coapace(&["get", &format!("{}/counter", server.others[0]), "--ca", &ca]).code, Some(0));
    assert!(line() > 0 && line() > 0, "the connection has ended");
    observer.kill().expect("it runs");
    observer.wait().expect("it ends");
}
