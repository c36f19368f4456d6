//! `coap+ws`: the answers of a server to programs that are not its clients, or that do not listen.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::common::{Running, run, until};
use coapace_net::{Client, Error, Rejection, Response, Router, Server, ServerConfig};

fn serve(
    scheme: &'static str,
    bind: impl FnOnce(&'static str, ServerConfig) -> io::Result<Server>,
) -> Running {
    let router = Router::new()
        .get("/hello", |_| async { Ok::<_, Rejection>(Response::content("Hello!")) })
        .get("/large", |_| async { Ok::<_, Rejection>(Response::content(vec![7; 60_000])) });
    run(scheme, bind("127.0.0.1:0", ServerConfig::default()), router)
}

fn serve_tcp() -> Running {
    serve("coap+tcp", Server::bind_tcp)
}

fn serve_ws() -> Running {
    serve("coap+ws", Server::bind_ws)
}

/// Asks for a WebSocket. Returns the answer of the server, up to the end of its headers.
fn upgrade(server: &Running, path: &str, protocol: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{protocol}\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        answer.push(byte[0]);
    }
    (stream, String::from_utf8(answer).unwrap())
}

const COAP: &str = "Sec-WebSocket-Protocol: chat, coap\r\n";

/// A frame of a client, with a mask of zeros.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    [&[0x80 | kind, 0x80 | payload.len() as u8, 0, 0, 0, 0][..], payload].concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_websocket_is_opened_only_for_the_path_and_subprotocol_of_coap() {
    let server = serve_ws();
    for (path, protocol, status) in [
        ("/", COAP, "HTTP/1.1 404"),
        ("/.well-known/coap", "", "HTTP/1.1 400"),
        ("/.well-known/coap", "Sec-WebSocket-Protocol: mqtt\r\n", "HTTP/1.1 400"),
    ] {
        let (_, answer) = upgrade(&server, path, protocol);
        assert!(answer.starts_with(status), "{path} {protocol}: {answer}");
    }
    let (_, answer) = upgrade(&server, "/.well-known/coap", COAP);
    assert!(answer.starts_with("HTTP/1.1 101"), "{answer}");
    // The example of RFC 6455 §1.3.
    let answer = answer.to_lowercase();
    assert!(answer.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="), "{answer}");
    assert!(answer.contains("sec-websocket-protocol: coap\r\n"), "{answer}");
    // A refusal is counted after it was sent.
    until(|| server.handle.stats().tcp.handshakes_failed == 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn text_frames_length_fields_and_truncated_messages_abort_a_websocket() {
    let server = serve_ws();
    let csm = frame(2, &[0, 0xe1]);
    for (nth, wrong) in
        [frame(1, b"hello"), frame(2, &[0x10, 1, 0xff]), frame(2, &[4, 1]), frame(2, &[])].iter().enumerate()
    {
        let (mut stream, _) = upgrade(&server, "/.well-known/coap", COAP);
        stream.write_all(&csm).unwrap();
        stream.write_all(wrong).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        // The CSM with Max-Message-Size 65535 and Block-wise-Transfer, an Abort, and the end of the WebSocket.
        let expected = [0x82, 7, 0, 0xe1, 0x22, 0xff, 0xff, 0x20, 0, 0x82, 2, 0, 0xe5];
        assert_eq!(answer[2..8], expected[2..8], "{nth}");
        assert!(answer.windows(4).any(|bytes| bytes == [0x82, 2, 0, 0xe5]), "{nth}: {answer:x?}");
        assert_eq!(server.handle.stats().tcp.aborted, nth as u64 + 1);
    }
}

#[tokio::test]
async fn a_websocket_server_without_coap_is_a_clear_error() {
    let tcp = serve_tcp();
    let error = Client::new().get(&format!("coap+ws://{}/hello", tcp.address)).await.unwrap_err();
    assert!(matches!(error, Error::Protocol(_) | Error::Connection(_)), "{error:?}");
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = Client::new().get(&format!("coap+ws://{closed}/")).await.unwrap_err();
    assert!(matches!(error, Error::Connection(io::ErrorKind::ConnectionRefused)), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_stops_reading_from_a_client_that_does_not_read_its_responses() {
    for ws in [false, true] {
        let server = if ws { serve_ws() } else { serve_tcp() };
        let mut stream = if ws {
            upgrade(&server, "/.well-known/coap", COAP).0
        } else {
            TcpStream::connect(server.address).unwrap()
        };
        // It takes large messages, and asks 2,000 times for 60,000 bytes.
        let csm: &[u8] = &[0xe1, 0x22, 0xff, 0xff];
        let get = |head: u8| [&[head, 1, 0xb5][..], b"large"].concat();
        let (csm, get) = if ws {
            (frame(2, &[&[0], csm].concat()), frame(2, &get(0)))
        } else {
            ([&[0x30], csm].concat(), get(0x60))
        };
        stream.write_all(&csm).unwrap();
        stream.write_all(&get.repeat(2_000)).unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        // 120 MB, of which the system's buffers hold a few.
        let answered = server.handle.stats().tcp.requests;
        assert!((1..500).contains(&answered), "{answered} requests were answered, ws: {ws}");
        // Now it reads.
        std::thread::spawn(move || io::copy(&mut stream, &mut io::sink()));
        for _ in 0..500 {
            if server.handle.stats().tcp.requests == 2_000 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let counted = server.handle.stats().tcp;
        assert_eq!(counted.requests, 2_000, "ws: {ws}: {counted:?}");
    }
}
