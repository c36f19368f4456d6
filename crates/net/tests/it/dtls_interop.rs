//! `coaps` with libcoap at the other end: its examples, if they are installed, with OpenSSL and with GnuTLS.

use std::net::UdpSocket;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use crate::secured::{KEY, keys};
use coapace_net::{Client, Dtls, Error, Refused, Rejection, Response, Router};
use tokio::time::{sleep, timeout};

const LIBRARIES: [&str; 2] = ["openssl", "gnutls"];

/// Returns whether a program is installed, and prints a line if it is not.
pub(crate) fn installed(program: &str) -> bool {
    let found = Command::new(program).arg("-h").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        eprintln!("skipped: {program} is not installed");
    }
    found
}

fn text(key: &[u8]) -> &str {
    std::str::from_utf8(key).expect("a key of letters")
}

/// Asks for `uri` with libcoap's client.
async fn ask(library: &str, identity: &str, key: &str, uri: String) -> Output {
    let program = format!("coap-client-{library}");
    let arguments = ["-B", "10", "-u", identity, "-k", key].map(String::from);
    let run = move || Command::new(program).args(arguments).arg(uri).output().expect("it runs");
    tokio::task::spawn_blocking(run).await.expect("no panic")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn libcoap_clients_get_responses_from_our_server_over_dtls() {
    let router = Router::new().get("/hello", |_| async { Ok::<_, Rejection>(Response::content("Hello!")) });
    for library in LIBRARIES {
        if !installed(&format!("coap-client-{library}")) {
            continue;
        }
        let server = crate::secured::serve(router.clone(), &keys());
        let output = ask(library, "lamp-7", text(KEY), server.uri("/hello")).await;
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "Hello!", "{library}: {output:?}");
        let counted = server.handle.stats().dtls;
        assert_eq!((counted.cookies_asked, counted.handshakes), (1, 1), "{library}");
        for (identity, key) in [("lamp-7", "another"), ("lamp-8", text(KEY))] {
            let output = ask(library, identity, key, server.uri("/hello")).await;
            let answer = String::from_utf8_lossy(&output.stdout);
            assert!(!answer.contains("Hello!"), "{library}: {answer}");
        }
        let counted = server.handle.stats().dtls;
        assert_eq!(counted.handshakes, 1, "{library}");
        assert!(counted.alerts_sent >= 2, "{library}: {counted:?}");
    }
}

/// A server of libcoap, which ends with the test.
struct Libcoap(Child);

impl Drop for Libcoap {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn our_client_gets_responses_from_libcoap_servers_over_dtls() {
    for library in LIBRARIES {
        let program = format!("coap-server-{library}");
        if !installed(&program) {
            continue;
        }
        // The port for UDP is one below the port for DTLS.
        let free = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port");
        let (port, secure) = (free.port(), free.port() + 1);
        let arguments =
            ["-A", "127.0.0.1", "-p", &port.to_string(), "-h", "", "-u", "lamp-7", "-k", text(KEY)]
                .map(String::from);
        let child =
            Command::new(&program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let _server = Libcoap(child.expect("it runs"));
        sleep(Duration::from_millis(500)).await;
        let uri = format!("coaps://127.0.0.1:{secure}/");

        let client = Client::builder().dtls(Dtls::client("lamp-7", KEY)).build();
        for _ in 0..3 {
            let response = timeout(Duration::from_secs(60), client.get(&uri).into_future());
            let response = response.await.expect("within 60 s").unwrap();
            assert!(response.text().contains("libcoap"), "{library}: {response:?}");
        }
        assert_eq!(client.stats().dtls.handshakes, 1, "{library}");

        let dtls = Dtls::client("lamp-7", "another").handshake_timeout(Duration::from_secs(3));
        let error = Client::builder().dtls(dtls).build().get(&uri).await.unwrap_err();
        // OpenSSL keeps silent about records that it cannot read.
        assert!(
            matches!(error, Error::Session(Refused::Alert(_) | Refused::TimedOut)),
            "{library}: {error:?}"
        );
    }
}
