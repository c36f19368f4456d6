//! Bodies of requests whose blocks come in any order (RFC 9177), from a client that is bytes.

use std::net::UdpSocket;
use std::time::Duration;

use coap_numbers::option;
use coapace_net::{Code, Options, Router, ServerConfig, Verify};
use coapace_proto::block::Block;
use coapace_proto::{Kind, Message, Token};

use crate::bodies::body;
use crate::common::{Running, changed, connected, one_core, receive, serve_with};

fn started(verify: Verify) -> Running {
    serve_with(Router::new().post("/echo", changed), ServerConfig { verify, ..one_core() })
}

/// Sends block `num` of a body in blocks of 64 bytes in message `id`, and returns the answer: its type, code, options and payload.
async fn send(
    socket: &UdpSocket,
    body: &[u8],
    (id, num): (u16, u32),
    options: Options,
) -> (Kind, Code, Options, Vec<u8>) {
    let at = num as usize * 64;
    let end = body.len().min(at + 64);
    let block = Block::new(num, end < body.len(), 2).unwrap();
    let options = options.uri_path("echo").request_tag(b"t").size1(body.len() as u32).q_block1(block);
    let tail = options.tail(&body[at..end]).unwrap();
    let (mut bytes, token) = (Vec::new(), Token::new(&[num as u8]).unwrap());
    let request = Message { code: Code::POST, token, ..Message::empty(Kind::Confirmable, id) };
    Message { tail: tail.as_bytes(), ..request }.write(&mut bytes);
    socket.send(&bytes).unwrap();
    let bytes = receive(socket, Duration::from_secs(10)).await.expect("an answer");
    let answer = Message::parse(&bytes).unwrap();
    assert_eq!(answer.message_id, id);
    (answer.kind, answer.code, Options::of(&answer), answer.payload().to_vec())
}

#[tokio::test]
async fn blocks_with_q_block1_are_acknowledged_in_any_order_and_the_last_is_answered() {
    let server = started(Verify::Nobody);
    let (socket, body) = (connected(&server), body(500));
    for (id, num) in (0..).zip([0, 5, 2, 7, 1, 3, 5, 6]) {
        let (kind, code, ..) = send(&socket, &body, (id, num), Options::default()).await;
        assert_eq!((kind, code), (Kind::Acknowledgement, Code::EMPTY), "{num}");
    }
    let (kind, code, _, whole) = send(&socket, &body, (8, 4), Options::default()).await;
    assert_eq!((kind, code), (Kind::Acknowledgement, Code::CHANGED));
    assert_eq!(whole, body);
}

#[tokio::test]
async fn blocks_with_q_block1_are_stored_only_for_verified_clients() {
    let server = started(Verify::Everybody);
    let (socket, body) = (connected(&server), body(100));
    let (_, code, options, _) = send(&socket, &body, (0, 0), Options::default()).await;
    let echo = options.value(option::ECHO).expect("a challenge").to_vec();
    assert_eq!(code, Code::UNAUTHORIZED);
    let (_, code, ..) = send(&socket, &body, (1, 0), Options::default().echo(&echo)).await;
    assert_eq!(code, Code::EMPTY);
    let (_, code, _, whole) = send(&socket, &body, (2, 1), Options::default()).await;
    assert_eq!((code, whole), (Code::CHANGED, body));
}
