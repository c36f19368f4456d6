//! Sets of blocks with Q-Block2, and non-confirmable blocks with Q-Block1 (RFC 9177), from a client that is bytes.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use coap_numbers::option;
use coapace_net::{Client, Code, Options, Rejection, Request, Response, Router, ServerConfig, Verify};
use coapace_proto::block::{Block, MISSING_BLOCKS};
use coapace_proto::{Kind, Message, Token};

use crate::bodies::body;
use crate::common::{Running, changed, connected, one_core, receive, run, serve_with};

const LEN: usize = 1_500;

/// The size exponent of the blocks: 64 bytes.
const SZX: u8 = 2;

fn router() -> (Router, Arc<AtomicU32>) {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let large = move |_: Request| {
        counted.fetch_add(1, Ordering::Relaxed);
        async { Ok::<_, Rejection>(Response::content(body(LEN))) }
    };
    let part = |request: Request| async move {
        let range = request.range();
        let end = LEN.min(range.end.max(range.start + 1_024));
        Ok::<_, Rejection>(Response::part(body(LEN)[range.start..end].to_vec(), range.start, LEN))
    };
    (Router::new().get("/large", large).get("/part", part).put("/put", changed), calls)
}

fn started(verify: Verify) -> (Running, Arc<AtomicU32>) {
    let (router, calls) = router();
    (serve_with(router, ServerConfig { cores: 1, verify, ..ServerConfig::default() }), calls)
}

/// A message of the server.
#[derive(Debug)]
struct Received {
    kind: Kind,
    code: Code,
    token: Token,
    options: Options,
    payload: Vec<u8>,
    block: Option<Block>,
}

/// A client that is a socket.
struct Raw(UdpSocket);

impl Raw {
    fn to(server: &Running) -> Self {
        Self(connected(server))
    }

    fn send(&self, kind: Kind, code: Code, id: u16, options: &Options, payload: &[u8]) {
        let (tail, mut bytes) = (options.clone().tail(payload).unwrap(), Vec::new());
        let token = Token::new(&id.to_be_bytes()).unwrap();
        Message { code, token, tail: tail.as_bytes(), ..Message::empty(kind, id) }.write(&mut bytes);
        self.0.send(&bytes).unwrap();
    }

    /// Returns the next message within `patience`, and acknowledges it if that is due.
    async fn next(&self, patience: Duration) -> Option<Received> {
        let bytes = receive(&self.0, patience).await?;
        let message = Message::parse(&bytes).unwrap();
        if message.kind == Kind::Confirmable {
            let mut ack = Vec::new();
            Message::empty(Kind::Acknowledgement, message.message_id).write(&mut ack);
            self.0.send(&ack).unwrap();
        }
        Some(Received {
            kind: message.kind,
            code: message.code,
            token: message.token,
            options: Options::of(&message),
            payload: message.payload().to_vec(),
            block: message.q_block2().unwrap(),
        })
    }

    /// Sends a GET, and returns all that comes.
    async fn get(&self, kind: Kind, id: u16, path: &str, blocks: &[(u32, bool)]) -> Vec<Received> {
        let named = blocks.iter().map(|&(num, more)| Block::new(num, more, SZX).unwrap());
        let options = named.fold(Options::default().uri_path(path), Options::q_block2);
        self.send(kind, Code::GET, id, &options, &[]);
        let mut all = Vec::new();
        while let Some(received) = self.next(Duration::from_millis(200)).await {
            assert_eq!(received.token, Token::new(&id.to_be_bytes()).unwrap());
            all.push(received);
        }
        all
    }
}

fn numbers(all: &[Received]) -> Vec<u32> {
    all.iter().map(|one| one.block.expect("Q-Block2").num()).collect()
}

/// Checks that these are all messages of one body, and adds their payloads.
fn add(all: &[Received], whole: &mut Vec<u8>) {
    for one in all {
        assert_eq!(one.code, Code::CONTENT);
        assert_eq!(one.options.uint(option::SIZE2), Some(LEN as u64));
        assert_eq!(one.options.value(option::ETAG), all[0].options.value(option::ETAG));
        assert_eq!(one.block.unwrap().more(), one.block.unwrap().num() < 23);
        whole.extend_from_slice(&one.payload);
    }
}

#[tokio::test]
async fn a_request_with_q_block2_is_answered_with_ten_blocks_and_ten_more_at_each_continue() {
    let (server, calls) = started(Verify::Nobody);
    for path in ["large", "part"] {
        let (raw, mut whole) = (Raw::to(&server), Vec::new());
        for (id, first, blocks) in [(1, 0, 10), (2, 10, 10), (3, 20, 4)] {
            let all = raw.get(Kind::NonConfirmable, id, path, &[(first, true)]).await;
            assert_eq!(numbers(&all), (first..first + blocks).collect::<Vec<_>>());
            assert!(all.iter().all(|one| one.kind == Kind::NonConfirmable));
            add(&all, &mut whole);
        }
        assert_eq!(whole, body(LEN));
    }
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_confirmable_set_of_blocks_follows_when_the_previous_set_is_acknowledged() {
    let (server, calls) = started(Verify::Nobody);
    for path in ["large", "part"] {
        let (raw, mut whole) = (Raw::to(&server), Vec::new());
        let all = raw.get(Kind::Confirmable, 1, path, &[(0, true)]).await;
        assert_eq!(numbers(&all), (0..24).collect::<Vec<_>>());
        assert_eq!(all[0].kind, Kind::Acknowledgement);
        assert!(all[1..].iter().all(|one| one.kind == Kind::Confirmable));
        add(&all, &mut whole);
        assert_eq!(whole, body(LEN));
    }
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn the_blocks_of_a_confirmable_set_do_not_wait_for_each_other() {
    let (server, _) = started(Verify::Nobody);
    let raw = Raw::to(&server);
    let options = Options::default().uri_path("large").q_block2(Block::new(0, true, SZX).unwrap());
    raw.send(Kind::Confirmable, Code::GET, 1, &options, &[]);
    let (mut numbers, mut confirmable) = (Vec::new(), 0);
    // The client acknowledges nothing, and no copy is due for two seconds.
    while let Some(bytes) = receive(&raw.0, Duration::from_millis(200)).await {
        let message = Message::parse(&bytes).unwrap();
        numbers.push(message.q_block2().unwrap().unwrap().num());
        confirmable += usize::from(message.kind == Kind::Confirmable);
    }
    assert_eq!((numbers, confirmable), ((0..10).collect(), 9));
}

#[tokio::test]
async fn only_missing_blocks_of_a_set_are_sent_again() {
    let (server, _) = started(Verify::Nobody);
    let raw = Raw::to(&server);
    let non = Kind::NonConfirmable;
    assert_eq!(numbers(&raw.get(non, 1, "large", &[(0, true)]).await).len(), 10);
    assert_eq!(numbers(&raw.get(non, 2, "large", &[(3, false), (7, false), (8, false)]).await), [3, 7, 8]);
    assert_eq!(numbers(&raw.get(non, 3, "large", &[(18, true)]).await), [18, 19], "the rest of its set");
    assert_eq!(numbers(&raw.get(non, 4, "large", &[(0, false)]).await), [0]);
}

#[tokio::test]
async fn impossible_q_block2_options_are_refused() {
    let (server, _) = started(Verify::Nobody);
    let raw = Raw::to(&server);
    let code = async |id, blocks: &[(u32, bool)]| {
        let all = raw.get(Kind::Confirmable, id, "large", blocks).await;
        all.iter().map(|one| one.code).collect::<Vec<_>>()
    };
    assert_eq!(code(1, &[(7, false), (3, false)]).await, [Code::BAD_REQUEST]);
    assert_eq!(code(2, &[(99, false)]).await, [Code::BAD_REQUEST]);
    let block = Block::new(0, true, SZX).unwrap();
    let mixed = Options::default().uri_path("large").block2(block).q_block2(block);
    raw.send(Kind::Confirmable, Code::GET, 3, &mixed, &[]);
    assert_eq!(raw.next(Duration::from_secs(5)).await.unwrap().code, Code::BAD_OPTION);
}

#[tokio::test]
async fn an_unverified_client_verifies_its_address_before_it_gets_a_set_of_blocks() {
    let (server, _) = started(Verify::Everybody);
    let raw = Raw::to(&server);
    let all = raw.get(Kind::NonConfirmable, 1, "large", &[(0, true)]).await;
    assert_eq!(all.iter().map(|one| one.code).collect::<Vec<_>>(), [Code::UNAUTHORIZED]);
    let echo = all[0].options.value(option::ECHO).unwrap().to_vec();
    let whole = Options::default().uri_path("large").echo(&echo).q_block2(Block::new(0, true, SZX).unwrap());
    raw.send(Kind::NonConfirmable, Code::GET, 2, &whole, &[]);
    assert_eq!(raw.next(Duration::from_secs(5)).await.unwrap().code, Code::CONTENT);
}

#[tokio::test]
async fn over_a_reliable_transport_q_block2_is_refused() {
    let (router, _) = router();
    let config = one_core();
    let server = run("coap+tcp", coapace_net::Server::bind_tcp("127.0.0.1:0", config), router);
    let call = Client::new().get(&server.uri("/large")).option(option::Q_BLOCK2, &[8]);
    assert_eq!(call.await.unwrap().code, Code::BAD_OPTION);
}

#[tokio::test]
async fn non_confirmable_blocks_are_confirmed_in_sets_and_missing_ones_requested_in_time() {
    let (server, _) = started(Verify::Nobody);
    let raw = Raw::to(&server);
    let send = |id: u16, num: u32| {
        let at = num as usize * 64;
        let end = LEN.min(at + 64);
        let block = Block::new(num, end < LEN, SZX).unwrap();
        let options = Options::default().uri_path("put").request_tag(b"t").size1(LEN as u32);
        raw.send(Kind::NonConfirmable, Code::PUT, id, &options.q_block1(block), &body(LEN)[at..end]);
    };
    (0..10).for_each(|num| send(num as u16, num));
    let next = raw.next(Duration::from_secs(5)).await.unwrap();
    assert_eq!((next.code, next.kind), (Code::CONTINUE, Kind::NonConfirmable));
    // Block 12 and the last two are lost.
    for num in [10, 11, 13, 14, 15, 16, 17, 18, 19, 20, 21] {
        send(num as u16, num);
    }
    let next = raw.next(Duration::from_secs(5)).await.unwrap();
    assert_eq!(
        (next.code, &next.payload[..]),
        (Code::REQUEST_ENTITY_INCOMPLETE, &[12][..]),
        "by the next set"
    );
    let begun = std::time::Instant::now();
    let next = raw.next(Duration::from_secs(8)).await.expect("after NON_RECEIVE_TIMEOUT");
    assert!(begun.elapsed() > Duration::from_secs(3), "{:?}", begun.elapsed());
    assert_eq!(next.options.uint(option::CONTENT_FORMAT), Some(MISSING_BLOCKS.into()));
    assert_eq!((next.kind, &next.payload[..]), (Kind::NonConfirmable, &[12, 22, 23][..]));
    assert_eq!(next.token, Token::new(&[0, 21]).unwrap(), "the token of the last request");
    for num in [12, 22, 23] {
        send(30 + num as u16, num);
    }
    let next = raw.next(Duration::from_secs(5)).await.unwrap();
    assert_eq!((next.code, next.token), (Code::CHANGED, Token::new(&53_u16.to_be_bytes()).unwrap()));
}
