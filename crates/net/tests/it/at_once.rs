//! Bodies of which several blocks are under way, through a network that loses some.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

use coap_numbers::option;
use coapace_net::{
    Client, Code, Config, Error, Options, Rejection, Request, Response, Router, Salvage, ServerConfig,
};
use coapace_proto::block::Block;
use coapace_proto::{Kind, Message};

use crate::bodies::body;
use crate::common::{changed, serve, serve_with};
use crate::loss::proxy;

const LEN: usize = 60_000;

fn router() -> Router {
    Router::new()
        .get("/large", |_: Request| async { Ok::<_, Rejection>(Response::content(body(LEN))) })
        .post("/echo", changed)
}

#[tokio::test]
async fn a_download_requests_several_blocks_at_once_and_repeats_lost_ones() {
    let server = serve(router());
    let most = Arc::new((AtomicI32::new(0), AtomicI32::new(0)));
    let seen = most.clone();
    let address = proxy(server.address, move |to_server, nth| {
        let under_way = seen.0.fetch_add(if to_server { 1 } else { -1 }, Ordering::Relaxed) + 1;
        seen.1.fetch_max(under_way, Ordering::Relaxed);
        nth % 10 != 3
    });
    let client = Client::new();
    let response = client.get(&format!("coap://{address}/large")).await.unwrap();
    assert_eq!(response.payload, body(LEN));
    assert!(client.stats().endpoint.retransmissions > 5, "{:?}", client.stats().endpoint);
    let most = most.1.load(Ordering::Relaxed);
    assert!(most >= 4, "{most} at once");
}

#[tokio::test]
async fn without_a_bulk_mechanism_blocks_are_requested_one_by_one() {
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
async fn a_client_requests_fewer_blocks_at_once_from_a_server_with_few_handler_slots() {
    let router = Router::new().get("/parts", |request: Request| async move {
        let start = request.range().start.min(LEN);
        tokio::time::sleep(Duration::from_millis(3)).await;
        Ok::<_, Rejection>(Response::part(body(LEN)[start..LEN.min(start + 1_024)].to_vec(), start, LEN))
    });
    let server = serve_with(router, ServerConfig { cores: 1, max_pending: 4, ..ServerConfig::default() });
    let response = Client::new().get(&server.uri("/parts")).await.unwrap();
    assert_eq!(response.payload, body(LEN));
    assert!(server.handle.stats().net.refused > 0);
}

#[tokio::test]
async fn an_upload_sends_several_blocks_at_once_after_one_probe_of_q_block() {
    let asked = Arc::new(AtomicI32::new(0));
    let counted = asked.clone();
    let router = router().get("/.well-known/core", move |_: Request| {
        counted.fetch_add(1, Ordering::Relaxed);
        async { Ok::<_, Rejection>(Response::content("<x>")) }
    });
    let server = serve(router);
    let address = proxy(server.address, |_, nth| nth % 10 != 3);
    let client = Client::new();
    for calls in 1..3 {
        let before = client.stats().endpoint.started;
        let response = client.post(&format!("coap://{address}/echo")).payload(body(LEN)).await.unwrap();
        assert_eq!((response.code, response.payload), (Code::CHANGED, body(LEN).into()));
        assert_eq!(response.options.value(option::Q_BLOCK1), None);
        assert_eq!(asked.load(Ordering::Relaxed), 1, "{calls}");
        let blocks = LEN.div_ceil(1_024) as u64;
        // The response is as long, and its first block comes with the last of the request.
        let probes = u64::from(calls == 1);
        assert_eq!(client.stats().endpoint.started - before, 2 * blocks - 1 + probes);
    }
    let small = client.post(&format!("coap://{address}/echo")).payload("x").await.unwrap();
    assert_eq!(small.text(), "x");
}

/// Serves one body of `LEN` bytes in the order of its blocks, with Block1. It answers requests without Block1 with this code, or not at
/// all if it is 0.00. Returns the number of requests without Block1, the path of the first, and the body.
fn in_order(socket: &UdpSocket, code: Code) -> (u32, Vec<u8>, Vec<u8>) {
    let (mut buffer, mut others, mut path, mut taken) = ([0; 2_048], 0, Vec::new(), Vec::new());
    loop {
        let (len, from) = socket.recv_from(&mut buffer).unwrap();
        let request = Message::parse(&buffer[..len]).unwrap();
        assert_eq!(request.value(option::Q_BLOCK1), None);
        let block = request.block1().unwrap();
        let (code, options) = match block {
            None => (code, Options::default()),
            Some(block) if block.more() => (Code::CONTINUE, Options::default().block1(block)),
            Some(block) => (Code::CHANGED, Options::default().block1(block)),
        };
        if block.is_none() {
            others += 1;
            path = request.uri_path().collect::<Vec<_>>().concat();
            if code == Code::EMPTY {
                continue;
            }
        }
        if block.is_some_and(|block: Block| block.offset() == taken.len()) {
            taken.extend_from_slice(request.payload());
        }
        let (tail, mut reply) = (options.tail(&[]).unwrap(), Vec::new());
        let answer = Message {
            code,
            token: request.token,
            tail: tail.as_bytes(),
            ..Message::empty(Kind::Acknowledgement, request.message_id)
        };
        answer.write(&mut reply);
        socket.send_to(&reply, from).unwrap();
        if code == Code::CHANGED {
            return (others, path, taken);
        }
    }
}

#[tokio::test]
async fn a_server_that_does_not_support_q_block_gets_blocks_one_by_one() {
    // Some servers ignore a critical option that they do not know, against RFC 7252 §5.4.1.
    for code in [Code::BAD_OPTION, Code::CONTENT, Code::NOT_FOUND, Code::UNAUTHORIZED] {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let serving = thread::spawn(move || in_order(&socket, code));
        let call = Client::new().put(&format!("coap://{address}/x")).payload(body(5_000)).await;
        assert_eq!(call.unwrap().code, Code::CHANGED);
        assert_eq!(serving.join().unwrap(), (1, b".well-knowncore".to_vec(), body(5_000)), "{code}");
    }
}

#[tokio::test]
async fn a_server_that_ignores_requests_with_q_block_gets_blocks_one_by_one() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let uri = format!("coap://{}/x", socket.local_addr().unwrap());
    let serving = thread::spawn(move || in_order(&socket, Code::EMPTY));
    let mechanism = "default:ack_timeout=100ms".parse().unwrap();
    let config = Config { max_retransmit: 1, patience: false, ..Config::default() };
    let client = Client::builder().mechanism(mechanism).config(config).build();
    let response = client.put(&uri).payload(body(5_000)).await.unwrap();
    assert_eq!(response.code, Code::CHANGED);
    assert_eq!(serving.join().unwrap(), (2, b".well-knowncore".to_vec(), body(5_000)));
}

#[tokio::test]
async fn bodies_of_four_blocks_or_without_q_block_are_sent_one_block_at_a_time() {
    for (bytes, may) in [(4_096, true), (5_000, false)] {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let uri = format!("coap://{}/x", socket.local_addr().unwrap());
        let serving = thread::spawn(move || in_order(&socket, Code::CONTENT));
        let call = Client::new().put(&uri).payload(body(bytes));
        let call = if may { call } else { call.no_q_block() };
        assert_eq!(call.await.unwrap().code, Code::CHANGED);
        assert_eq!(serving.join().unwrap(), (0, Vec::new(), body(bytes)));
    }
}

#[tokio::test]
async fn a_download_continues_after_the_bytes_of_an_earlier_one() {
    let server = serve(router());
    let passing = Arc::new(AtomicI32::new(30));
    let left = passing.clone();
    let address =
        proxy(server.address, move |to_server, _| to_server || left.fetch_sub(1, Ordering::Relaxed) > 0);
    let (client, salvage) = (Client::new(), Salvage::default());
    let uri = format!("coap://{address}/large");
    let call = client.get(&uri).timeout(Duration::from_millis(500));
    assert!(matches!(call.salvage(&salvage).await, Err(Error::TimedOut)));
    let partial = salvage.take().expect("blocks have arrived");
    assert_eq!(partial.body, body(LEN)[..30 * 1_024], "in their order");

    passing.store(i32::MAX, Ordering::Relaxed);
    let salvage = Salvage::from(partial);
    let before = client.stats().endpoint.started;
    let response = client.get(&uri).salvage(&salvage).await.unwrap();
    assert_eq!(response.payload, body(LEN));
    assert_eq!(salvage.take(), None);
    let blocks = LEN.div_ceil(1_024) as u64;
    assert_eq!(client.stats().endpoint.started - before, 1 + blocks - 29, "the first, and from the 30th on");
}
