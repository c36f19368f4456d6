//! Bodies of which several blocks are under way, through a network that loses some.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

use coap_numbers::option;
use coapace_control::{Mechanism, Tide};
use coapace_net::{Client, Code, Options, Rejection, Request, Response, Router, ServerConfig};
use coapace_proto::block::Block;
use coapace_proto::{Kind, Message};

use crate::bodies::body;
use crate::common::{serve, serve_with};
use crate::loss::proxy;

const LEN: usize = 60_000;

fn at_once() -> Client {
    Client::builder().bulk(Some(Mechanism::Tide(Tide::DEFAULT))).build()
}

fn router() -> Router {
    Router::new().get("/large", |_: Request| async { Ok::<_, Rejection>(Response::content(body(LEN))) }).post(
        "/echo",
        |request: Request| async move {
            Ok::<_, Rejection>(Response::changed().payload(request.payload().to_vec()))
        },
    )
}

#[tokio::test]
async fn several_blocks_are_under_way_and_those_that_are_lost_are_asked_for_again() {
    let server = serve(router());
    let most = Arc::new((AtomicI32::new(0), AtomicI32::new(0)));
    let seen = most.clone();
    let address = proxy(server.address, move |to_server, nth| {
        let under_way = seen.0.fetch_add(if to_server { 1 } else { -1 }, Ordering::Relaxed) + 1;
        seen.1.fetch_max(under_way, Ordering::Relaxed);
        nth % 10 != 3
    });
    let client = at_once();
    let response = client.get(&format!("coap://{address}/large")).await.unwrap();
    assert_eq!(response.payload, body(LEN));
    assert!(client.stats().endpoint.retransmissions > 5, "{:?}", client.stats().endpoint);
    let most = most.1.load(Ordering::Relaxed);
    assert!(most >= 4, "{most} at once");
}

#[tokio::test]
async fn without_a_mechanism_for_bodies_one_block_is_asked_for_after_the_other() {
    let server = serve(router());
    let under_way = Arc::new(AtomicI32::new(0));
    let counted = under_way.clone();
    let address = proxy(server.address, move |to_server, _| {
        let before = counted.fetch_add(if to_server { 1 } else { -1 }, Ordering::Relaxed);
        assert!(!to_server || before == 0);
        true
    });
    let client = Client::builder().bulk(None).build();
    assert_eq!(client.get(&format!("coap://{address}/large")).await.unwrap().payload, body(LEN));
    assert_eq!(under_way.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_server_with_few_places_for_handlers_is_asked_for_fewer_blocks_at_once() {
    let router = Router::new().get("/parts", |request: Request| async move {
        let start = request.range().start.min(LEN);
        tokio::time::sleep(Duration::from_millis(3)).await;
        Ok::<_, Rejection>(Response::part(body(LEN)[start..LEN.min(start + 1_024)].to_vec(), start, LEN))
    });
    let server = serve_with(router, ServerConfig { cores: 1, max_pending: 4, ..ServerConfig::default() });
    let response = at_once().get(&server.uri("/parts")).await.unwrap();
    assert_eq!(response.payload, body(LEN));
    assert!(server.handle.stats().net.refused > 0);
}

#[tokio::test]
async fn a_body_is_sent_in_several_blocks_at_once_and_carried_out_once() {
    let server = serve(router());
    let address = proxy(server.address, |_, nth| nth % 10 != 3);
    let client = at_once();
    let call = client.post(&format!("coap://{address}/echo")).payload(body(LEN)).q_block();
    let response = call.await.unwrap();
    assert_eq!((response.code, response.payload), (Code::CHANGED, body(LEN).into()));
    assert_eq!(response.options.value(option::Q_BLOCK1), None);
    let small = client.post(&format!("coap://{address}/echo")).payload("x").q_block().await.unwrap();
    assert_eq!(small.text(), "x");
}

#[tokio::test]
async fn a_server_that_knows_no_q_block_gets_one_block_after_the_other() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let serving = thread::spawn(move || {
        let (mut buffer, mut rejected, mut taken) = ([0; 2_048], 0, Vec::new());
        loop {
            let (len, from) = socket.recv_from(&mut buffer).unwrap();
            let request = Message::parse(&buffer[..len]).unwrap();
            let block = request.block1().unwrap();
            let (code, options) = match block {
                None => (Code::BAD_OPTION, Options::default()),
                Some(block) if block.more() => (Code::CONTINUE, Options::default().block1(block)),
                Some(block) => (Code::CHANGED, Options::default().block1(block)),
            };
            rejected += u32::from(block.is_none());
            if block.is_some_and(|block: Block| block.offset() == taken.len()) {
                taken.extend_from_slice(request.payload());
            }
            let tail = options.tail(&[]).unwrap();
            let mut reply = Vec::new();
            let answer = Message {
                code,
                token: request.token,
                tail: tail.as_bytes(),
                ..Message::empty(Kind::Acknowledgement, request.message_id)
            };
            answer.write(&mut reply);
            socket.send_to(&reply, from).unwrap();
            if code == Code::CHANGED {
                return (rejected, taken);
            }
        }
    });
    let call = at_once().put(&format!("coap://{address}/x")).payload(body(5_000)).q_block().await;
    assert_eq!(call.unwrap().code, Code::CHANGED);
    assert_eq!(serving.join().unwrap(), (1, body(5_000)));
}
