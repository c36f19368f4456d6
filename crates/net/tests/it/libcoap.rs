//! The same messages read by libcoap, where its command line tools are installed (Debian: libcoap3-bin).

use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::{changed, serve, serve_with};
use coapace_net::{Client, Code, Rejection, Request, Response, Router, ServerConfig, Verify};

/// The first of these commands that is there; else says that the test is skipped.
fn installed(names: &[&'static str]) -> Option<&'static str> {
    let there = |name: &&&str| Command::new(name).arg("-?").output().is_ok();
    let found = names.iter().find(there).copied();
    if found.is_none() {
        println!("skipped: none of {names:?} is installed");
    }
    found
}

/// Returns the output of libcoap's client for a request.
async fn ask(client: &'static str, arguments: &[&str]) -> String {
    let mut command = Command::new(client);
    command.args(["-B", "10"]).args(arguments);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned()).join("")
}

#[tokio::test]
async fn libcoaps_client_understands_our_server() {
    let Some(client) = installed(&["coap-client-notls", "coap-client"]) else { return };
    let server = serve(
        Router::new()
            .get("/a b/{x}", |request: Request| async move {
                let x = request.parameter("x").unwrap_or_default().to_owned();
                Ok::<_, Rejection>(Response::content(format!("got {x}")).content_format(0))
            })
            .put("/echo", changed)
            .get("/slow", |_: Request| async {
                tokio::time::sleep(Duration::from_millis(2_500)).await;
                Ok::<_, Rejection>(Response::content("late"))
            }),
    );
    assert_eq!(ask(client, &["-m", "get", &server.uri("/a%20b/y")]).await, "got y");
    assert_eq!(ask(client, &["-m", "get", "-N", &server.uri("/a%20b/z")]).await, "got z");
    assert_eq!(ask(client, &["-m", "put", "-e", "hello", &server.uri("/echo")]).await, "hello");
    assert_eq!(ask(client, &["-m", "get", &server.uri("/slow")]).await, "late");
    let missing = ask(client, &["-m", "get", &server.uri("/nothing")]).await;
    assert!(missing.contains("4.04"), "{missing}");
    assert_eq!(server.handle.stats().endpoint.malformed, 0);
}

#[tokio::test]
async fn a_libcoap_client_repeats_only_the_last_block_of_a_body_with_an_echo_value() {
    let Some(client) = installed(&["coap-client-notls", "coap-client"]) else { return };
    let router = Router::new().fetch("/twice", async |request: Request| {
        Ok::<_, Rejection>(Response::content(request.payload().repeat(2)))
    });
    let config = ServerConfig { cores: 1, verify: Verify::Everybody, ..ServerConfig::default() };
    let server = serve_with(router, config);
    let body = "0123456789".repeat(110);
    let answer = ask(client, &["-m", "fetch", "-e", &body, &server.uri("/twice")]).await;
    assert_eq!(answer, body.repeat(2));
    assert_eq!(server.handle.stats().net.challenged, 1);
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn our_client_understands_libcoaps_server() {
    let Some(server) = installed(&["coap-server-notls", "coap-server"]) else { return };
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let child = Command::new(server)
        .args(["-A", "127.0.0.1", "-p", &port.to_string(), "-d", "10"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _child = Killed(child.unwrap());
    let uri = |path: &str| format!("coap://127.0.0.1:{port}{path}");
    let client = Client::new();
    for _ in 0..50 {
        if client.ping(&uri("")).await.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let root = client.get(&uri("/")).await.unwrap();
    assert!(root.is_success() && root.text().contains("libcoap"), "{root:?}");
    // It waits for two seconds, and acknowledges first.
    let separate = client.get(&uri("/async?2")).await.unwrap();
    assert_eq!((separate.code, separate.transmissions), (Code::CONTENT, 1));
    assert!(separate.elapsed >= Duration::from_millis(1_900), "{separate:?}");
    let made = client.put(&uri("/example_data")).payload("21.5").await.unwrap();
    assert!(made.is_success(), "{made:?}");
    assert_eq!(client.get(&uri("/example_data")).await.unwrap().text(), "21.5");
    assert_eq!(client.get(&uri("/nothing")).await.unwrap().code, Code::NOT_FOUND);
    assert_eq!(client.get(&uri("/time")).non_confirmable().await.unwrap().code, Code::CONTENT);
}
