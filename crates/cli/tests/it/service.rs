//! `coapace serve` and `coapace relay` as services: descriptors, certificates that expire, keys that change, and systemd.
#![allow(clippy::float_cmp)] // Counts.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use crate::certified::{Authority, Files, Issued};
use crate::common::{Scratch, Serving, coapace, command, finish};
use crate::metrics::{scrape, value};

const ANY: &str = "127.0.0.1:0";

const FOUR: [&str; 11] =
    ["serve", "--bind", ANY, "--tcp", ANY, "--ws", ANY, "--metrics", ANY, "--threads", "2"];

/// Returns the command with at most so many open files.
fn limited(descriptors: u64, arguments: &[&str]) -> Command {
    let mut sh = Command::new("sh");
    sh.args(["-c", "ulimit -n $0 && exec \"$@\"", &descriptors.to_string()]);
    sh.arg(env!("CARGO_BIN_EXE_coapace")).args(arguments);
    sh
}

/// Returns how many descriptors a command says that it needs. It has announced nothing.
fn needed(descriptors: u64, arguments: &[&str]) -> u64 {
    let outcome = finish(&mut limited(descriptors, arguments), "");
    let line = outcome.failure(1);
    assert_eq!(outcome.stdout, "");
    let rest =
        format!(" file descriptors are needed and {descriptors} allowed; raise the limit (ulimit -n, ");
    let (number, _) = line.split_once(&rest).unwrap_or_else(|| panic!("{line}"));
    number.parse().expect("a number")
}

#[test]
fn a_server_says_how_many_file_descriptors_it_needs_and_starts_with_that_number() {
    let needs = needed(40, &FOUR);
    assert_eq!((needed(10, &FOUR), needed(needs - 1, &FOUR)), (needs, needs));
    let mut server = Serving::started(&mut limited(needs, &FOUR));
    let uris = [server.uri.clone(), server.line(), server.line()];
    let metrics = server.line();
    let address = metrics.strip_prefix("http://").and_then(|uri| uri.strip_suffix("/metrics"));
    for uri in &uris {
        coapace(&["get", &format!("{uri}/counter")]).success();
    }
    let text = scrape(address.unwrap_or_else(|| panic!("{metrics:?}")));
    assert!(value(&text, "process_open_fds") <= needs as f64 - 16.0, "16 are for connections: {text}");
    assert_eq!(value(&text, "process_max_fds"), needs as f64);
    assert_eq!(server.interrupt().0, Some(0));
}

#[test]
fn a_relay_says_how_many_file_descriptors_it_needs_and_starts_with_that_number() {
    let server = Serving::new(&["--resource", "/a=1"]);
    let to = server.uri.trim_start_matches("coap://");
    let relay = ["relay", "--listen", ANY, "--to", to, "--sluice", "--metrics", ANY];
    let needs = needed(10, &relay);
    assert_eq!(needed(needs - 1, &relay), needs);
    let relay = Serving::started(&mut limited(needs, &relay));
    assert_eq!(coapace(&["get", &relay.at("/a")]).success(), "1");
    assert_eq!(relay.interrupt().0, Some(0));
}

/// Writes a certificate and its key to files.
fn write(files: &Files, issued: &Issued) -> [String; 2] {
    [files.write("server.pem", &issued.certificate), files.write("server.key", &issued.key)]
}

#[test]
fn an_expiring_certificate_is_reported_until_it_is_renewed() {
    let (files, authority) = (Files::new("cli-expiry"), Authority::new());
    let old = authority.issue_expired(&["127.0.0.1"]);
    let [certificate, key] = write(&files, &old);
    let mut server =
        Serving::new(&["--tls", ANY, "--cert", &certificate, "--private-key", &key, "--metrics", ANY]);
    let metrics = server.line();
    let address =
        metrics.strip_prefix("http://").and_then(|uri| uri.strip_suffix("/metrics")).expect("a URI");
    let expires = || value(&scrape(address), "coap_certificate_expiry_timestamp_seconds");
    let line = server.says(&["the certificate has expired"]);
    assert!(line.contains("ERROR") && line.contains("renew it (--cert), and send SIGHUP"), "{line}");
    assert_eq!(expires(), 978_220_800.0);
    let days = |days: u64| SystemTime::now() + Duration::from_hours(days * 24 + 1);
    write(&files, &authority.issue_until(&["127.0.0.1"], days(12)));
    server.signal("-HUP");
    let line = server.says(&["the certificate expires soon"]);
    assert!(line.contains("WARN") && line.contains("days=12"), "{line}");
    let end = days(90);
    write(&files, &authority.issue_until(&["127.0.0.1"], end));
    server.signal("-HUP");
    server.says(&["reloaded keys and certificates"]);
    let since = end.duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs();
    assert_eq!(expires(), since as f64);
    let (code, said) = server.interrupt();
    assert_eq!((code, said.contains("the certificate")), (Some(0), false), "{said}");
}

#[test]
fn a_relay_reloads_its_keys_on_sighup_and_goes_on() {
    let scratch = Scratch::new();
    let (clients, own) = (scratch.file("clients"), scratch.file("own"));
    let (server_keys, at_own) = (scratch.file("server"), format!("@{own}"));
    fs::write(&clients, ",lamp-7,first\n").expect("a file");
    fs::write(&own, "ours\n").expect("a file");
    fs::write(&server_keys, ",relay-1,ours\n").expect("a file");
    let mut server = Serving::new(&["--resource", "/a=1", "--keys", &server_keys]);
    let to_server = ["--server-identity", "relay-1", "--server-key", &at_own];
    let mut relay = Serving::relay(
        &server.others[0],
        &[&["--cc", "default", "--keys", &clients][..], &to_server].concat(),
    );
    let uri = relay.at("/a");
    let get = |identity: &str, key: &str| coapace(&["get", &uri, "-u", identity, "-k", key]);
    assert_eq!(get("lamp-7", "first").success(), "1");
    // Both keys change. Sessions that begin later need the new ones.
    fs::write(&server_keys, ",relay-1,new\n").expect("a file");
    server.signal("-HUP");
    server.says(&["reloaded"]);
    fs::write(&clients, ",lamp-8,second\n").expect("a file");
    fs::write(&own, "new\n").expect("a file");
    relay.signal("-HUP");
    assert!(relay.says(&["reloaded keys"]).contains("identities=1"));
    assert_eq!(get("lamp-8", "second").success(), "1");
    assert!(get("lamp-7", "first").failure(1).contains("does not accept the identity or the key"));
    fs::write(&clients, "nonsense\n").expect("a file");
    relay.signal("-HUP");
    let line = relay.says(&["not reloaded; keys stay as they were"]);
    assert!(line.contains("line 1: expected HINT,IDENTITY,KEY"), "{line}");
    assert_eq!(get("lamp-8", "second").success(), "1");
    assert_eq!(relay.interrupt().0, Some(0));
}

#[test]
fn a_relay_without_keys_outlives_sighup() {
    let server = Serving::new(&["--resource", "/a=1"]);
    let mut relay = Serving::relay(&server.uri, &["--sluice"]);
    relay.signal("-HUP");
    relay.says(&["reloaded keys"]);
    assert_eq!(coapace(&["get", &relay.at("/a")]).success(), "1");
}

/// The end of systemd's socket for notifications.
struct Supervisor {
    socket: UnixDatagram,
    path: String,
}

impl Supervisor {
    fn new(scratch: &Scratch) -> Self {
        let path = scratch.file("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_mins(1))).expect("a time");
        Self { socket, path }
    }

    /// Waits for a message with this state.
    fn hears(&self, state: &str) -> String {
        loop {
            let mut message = [0; 1_024];
            let len = self.socket.recv(&mut message).unwrap_or_else(|error| panic!("{state}: {error}"));
            let message = String::from_utf8_lossy(&message[..len]).into_owned();
            if message.lines().any(|line| line == state) {
                return message;
            }
        }
    }

    /// Checks all that a service says.
    fn attend(&self, command: &mut Command) {
        command.env("NOTIFY_SOCKET", &self.path).env("WATCHDOG_USEC", "200000");
        let mut server = Serving::started(command);
        self.hears("READY=1");
        for _ in 0..3 {
            self.hears("WATCHDOG=1");
        }
        server.signal("-HUP");
        assert!(self.hears("RELOADING=1").contains("MONOTONIC_USEC="));
        assert!(self.hears("READY=1").contains("STATUS=reloaded"));
        server.signal("-TERM");
        self.hears("STOPPING=1");
        assert_eq!(server.ended(), Some(0));
    }
}

#[test]
fn a_server_notifies_systemd_of_readiness_watchdog_reload_and_stop() {
    let scratch = Scratch::new();
    let supervisor = Supervisor::new(&scratch);
    supervisor.attend(command().args(["serve", "--bind", ANY, "--tcp", ANY, "--demo"]));
}

#[test]
fn a_relay_notifies_systemd_of_readiness_watchdog_reload_and_stop() {
    let scratch = Scratch::new();
    let supervisor = Supervisor::new(&scratch);
    supervisor.attend(command().args(["relay", "--listen", ANY, "--to", "127.0.0.1:9", "--sluice"]));
}

/// Starts a server to which a socket is passed under a name, like systemd does.
fn activated(socket: impl Into<OwnedFd>, arguments: &str) -> Serving {
    let script = format!(
        "exec 3<&0 </dev/null; export LISTEN_FDS=1 LISTEN_PID=$$ LISTEN_FDNAMES=ours; exec \"$0\" serve {arguments}"
    );
    let mut sh = Command::new("sh");
    sh.args(["-c", &script, env!("CARGO_BIN_EXE_coapace")]).stdin(Stdio::from(socket.into()));
    Serving::started(&mut sh)
}

#[test]
fn a_server_answers_on_sockets_passed_by_systemd() {
    let udp = UdpSocket::bind(ANY).expect("a port");
    let address = udp.local_addr().expect("bound");
    let server = activated(udp, "--bind fd:ours --resource /a=1");
    assert_eq!(server.uri, format!("coap://{address}"));
    assert_eq!(coapace(&["get", &server.at("/a")]).success(), "1");
    drop(server);
    let udp = UdpSocket::bind(ANY).expect("a port");
    let server = activated(udp, "--dtls fd:ours -u lamp-7 -k secret --resource /a=1");
    assert_eq!(coapace(&["get", &server.at("/a"), "-u", "lamp-7", "-k", "secret"]).success(), "1");
    drop(server);
    for (flag, scheme) in [("--tcp", "coap+tcp"), ("--ws", "coap+ws")] {
        let tcp = TcpListener::bind(ANY).expect("a port");
        let address = tcp.local_addr().expect("bound");
        let server = activated(tcp, &format!("--no-udp {flag} fd:ours --resource /a=1"));
        assert_eq!(server.uri, format!("{scheme}://{address}"));
        assert_eq!(coapace(&["get", &server.at("/a")]).success(), "1");
    }
}

#[test]
fn a_socket_that_systemd_did_not_pass_is_reported() {
    let outcome = coapace(&["serve", "--bind", "fd:ours"]);
    assert!(outcome.failure(1).starts_with("--bind fd:ours: systemd has passed no sockets"), "{outcome:?}");
}
