//! Bodies larger than a datagram, responses that are held back, and who has to show its address.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::common::{Running, connected, one_core, receive, serve, serve_with};
use coap_numbers::option;
use coapace_net::{
    Bounds, Client, Code, Error, Rejection, Request, Response, Router, ServerConfig, TransferError, Verify,
};

/// Bytes that differ from block to block.
pub(crate) fn body(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 16 * 7 + at % 251) as u8).collect()
}

/// Returns a router that answers with the body sent, and a GET with new bytes in each call, as many as the query says. Counts calls.
fn router(calls: &Arc<AtomicU64>) -> Router {
    let (read, given) = (calls.clone(), calls.clone());
    Router::new()
        .get("/large", move |request: Request| {
            let call = read.fetch_add(1, Ordering::Relaxed);
            let len: usize = request.argument("len").unwrap_or("5000").parse().unwrap();
            let bytes: Vec<u8> = body(len).iter().map(|byte| byte.wrapping_add(call as u8)).collect();
            async move { Ok::<_, Rejection>(Response::content(bytes).content_format(42)) }
        })
        .post("/echo", move |request: Request| {
            given.fetch_add(1, Ordering::Relaxed);
            async move {
                if request.argument("slow").is_some() {
                    tokio::time::sleep(Duration::from_millis(300)).await;
                }
                Ok::<_, Rejection>(Response::changed().payload(request.payload().to_vec()))
            }
        })
}

fn started(config: ServerConfig) -> (Running, Arc<AtomicU64>) {
    let calls = Arc::new(AtomicU64::new(0));
    (serve_with(router(&calls), config), calls)
}

#[tokio::test]
async fn all_blocks_of_a_large_response_come_from_one_call_of_its_handler() {
    let (server, calls) = started(one_core());
    let client = Client::new();
    let response = client.get(&server.uri("/large")).await.unwrap();
    assert_eq!((response.code, response.format(), response.transmissions), (Code::CONTENT, Some(42), 1));
    assert_eq!(response.payload, body(5000));
    assert_eq!(response.options.value(option::BLOCK2), None);
    assert_eq!(client.stats().endpoint.completed, 5);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn the_block_size_is_the_smaller_one_of_client_and_server() {
    let bodies = Bounds { max_szx: 4, ..one_core().bodies };
    let (server, _) = started(ServerConfig { bodies, ..one_core() });
    for (size, exchanges) in [(64, 32), (100, 32), (1024, 8)] {
        let client = Client::builder().block_size(size).build();
        assert_eq!(client.get(&server.uri("/large?len=2048")).await.unwrap().payload.len(), 2048);
        assert_eq!(client.stats().endpoint.completed, exchanges, "{size}");
        let response = client.post(&server.uri("/echo")).payload(body(2048)).await.unwrap();
        assert_eq!(response.payload, body(2048), "{size}");
    }
}

#[tokio::test]
async fn a_large_request_reaches_its_handler_complete_and_once() {
    let (server, calls) = started(one_core());
    let client = Client::new();
    for query in ["", "?slow"] {
        let before = calls.load(Ordering::Relaxed);
        let call = client.post(&server.uri(&format!("/echo{query}"))).payload(body(10_000));
        let response = call.await.unwrap();
        assert_eq!((response.code, response.payload), (Code::CHANGED, body(10_000).into()));
        assert_eq!(calls.load(Ordering::Relaxed), before + 1);
    }
}

#[tokio::test]
async fn concurrent_uploads_of_one_client_to_one_resource_do_not_mix() {
    let (server, _) = started(one_core());
    let client = Client::new();
    let calls: Vec<_> = (0u8..8)
        .map(|n| {
            let call = client.post(&server.uri("/echo")).payload(vec![n; 3000]);
            tokio::spawn(async move { (n, call.await.unwrap()) })
        })
        .collect();
    for call in calls {
        let (n, response) = call.await.unwrap();
        assert_eq!(response.payload, vec![n; 3000]);
    }
}

#[tokio::test]
async fn a_body_above_the_size_limit_is_an_error_at_client_and_server() {
    let bodies = Bounds { max_body: 3000, ..one_core().bodies };
    let (server, calls) = started(ServerConfig { bodies, ..one_core() });
    let client = Client::new();
    let error = client.get(&server.uri("/large")).max_body(4999).await.unwrap_err();
    assert!(matches!(error, Error::Transfer(TransferError::TooLarge)), "{error}");
    assert!(client.get(&server.uri("/large")).max_body(5000).await.is_ok());
    let called = calls.load(Ordering::Relaxed);
    let refused = client.post(&server.uri("/echo")).payload(body(3001)).await.unwrap();
    assert_eq!(
        (refused.code, refused.options.uint(option::SIZE1)),
        (Code::REQUEST_ENTITY_TOO_LARGE, Some(3000))
    );
    assert_eq!(calls.load(Ordering::Relaxed), called);
    assert!(client.post(&server.uri("/echo")).payload(body(3000)).await.unwrap().is_success());
}

#[tokio::test]
async fn an_invalid_option_of_a_request_is_an_error_before_anything_is_sent() {
    let client = Client::new();
    let error = client.get("coap://127.0.0.1:9/").option(option::ETAG, &[0; 9]).await.unwrap_err();
    assert!(matches!(error, Error::Transfer(TransferError::Option(_))), "{error}");
    assert_eq!(client.stats().endpoint.started, 0);
}

/// A client that is bytes.
struct Raw(UdpSocket);

impl Raw {
    fn to(server: &Running) -> Self {
        Self(connected(server))
    }

    /// Returns the datagram that comes back, if one does.
    async fn ask(&self, message: &[u8]) -> Option<Vec<u8>> {
        self.0.send(message).unwrap();
        receive(&self.0, Duration::from_millis(500)).await
    }
}

#[tokio::test]
async fn a_block_after_a_gap_is_answered_4_08_and_one_of_a_reserved_size_4_00() {
    let (server, calls) = started(one_core());
    let raw = Raw::to(&server);
    // POST /echo, Block1: 1/0/16
    let missing = raw.ask(b"\x40\x02\x00\x01\xb4echo\xd1\x03\x10\xff!").await.unwrap();
    assert_eq!(missing[..4], [0x60, 0x88, 0, 1]);
    // GET /large, Block2: SZX 7
    let reserved = raw.ask(b"\x40\x01\x00\x02\xb5large\xc1\x07").await.unwrap();
    assert_eq!(reserved[..4], [0x60, 0x80, 0, 2]);
    // POST /echo, Block2: 1/0/16, of a response that is not there any more
    let gone = raw.ask(b"\x40\x02\x00\x03\xb4echo\xc1\x10").await.unwrap();
    assert_eq!(gone[..4], [0x60, 0x88, 0, 3]);
    // GET /large?len=32, Block2: 2/0/16
    let beyond = raw.ask(b"\x40\x01\x00\x04\xb5large\x46len=32\x81\x20").await.unwrap();
    assert_eq!(beyond[..4], [0x60, 0x80, 0, 4]);
    assert_eq!(calls.load(Ordering::Relaxed), 1, "only the last had a handler to ask");
}

#[tokio::test]
async fn an_unknown_critical_option_is_answered_4_02_if_confirmable_and_ignored_otherwise() {
    let (server, calls) = started(one_core());
    let raw = Raw::to(&server);
    // GET /large with option 65001
    let request = |first: u8, id: u8| [&[first, 1, 0, id][..], b"\xb5large\xe0\xfc\xd1"].concat();
    let refused = raw.ask(&request(0x40, 1)).await.unwrap();
    assert_eq!(refused[..4], [0x60, 0x82, 0, 1]);
    assert_eq!(raw.ask(&request(0x50, 2)).await, None);
    // Proxy-Uri is not a bad option (RFC 7252 §5.7.2).
    let refused = raw.ask(b"\x50\x01\x00\x03\xd1\x16x").await.unwrap();
    assert_eq!(refused[..2], [0x50, 0xa5]);
    assert_eq!(calls.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_body_with_an_unknown_critical_option_is_refused_at_its_first_block() {
    let (server, calls) = started(one_core());
    let raw = Raw::to(&server);
    // POST /echo, Block1: 0/1/16, option 65001
    let request = [&b"\x40\x02\x00\x01\xb4echo\xd1\x03\x08\xe0\xfc\xc1\xff"[..], &[7; 16]].concat();
    let refused = raw.ask(&request).await.unwrap();
    assert_eq!(refused, [&b"\x60\x82\x00\x01\xff"[..], b"option 65001 is not understood"].concat());
    assert_eq!(calls.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_reassembled_body_is_kept_only_for_a_client_that_is_challenged_for_echo() {
    let (server, calls) = started(one_core());
    let raw = Raw::to(&server);
    // POST /echo, Block1: 0/1/16, and 1/0/16 twice
    let first = [&b"\x40\x02\x00\x01\xb4echo\xd1\x03\x08\xff"[..], &[7; 16]].concat();
    let last = |id: u8| [&[0x40, 2, 0, id][..], b"\xb4echo\xd1\x03\x10\xff!"].concat();
    for (request, code) in [(first, 0x5f), (last(2), 0x44), (last(3), 0x88)] {
        assert_eq!(raw.ask(&request).await.unwrap()[1], code);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_response_suppressed_by_no_response_becomes_an_empty_acknowledgement_or_nothing() {
    let (server, calls) = started(one_core());
    let raw = Raw::to(&server);
    // POST /echo, No-Response: 2
    let acknowledged = raw.ask(b"\x40\x02\x00\x01\xb4echo\xd1\xea\x02").await.unwrap();
    assert_eq!(acknowledged, [0x60, 0, 0, 1]);
    assert_eq!(raw.ask(b"\x50\x02\x00\x02\xb4echo\xd1\xea\x02").await, None);
    // No-Response: 24, which excludes errors only
    let wanted = raw.ask(b"\x40\x02\x00\x03\xb4echo\xd1\xea\x18").await.unwrap();
    assert_eq!(wanted[1], 0x44);
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn a_client_verifies_its_address_by_echo_once_before_it_gets_a_large_response() {
    let (server, calls) = started(ServerConfig { verify: Verify::Everybody, ..one_core() });
    let client = Client::new();
    assert!(client.get(&server.uri("/large?len=100")).await.unwrap().is_success());
    assert_eq!(server.handle.stats().net.challenged, 0, "that is not large");
    for _ in 0..2 {
        let response = client.get(&server.uri("/large")).await.unwrap();
        assert_eq!((response.code, response.payload.len()), (Code::CONTENT, 5000));
    }
    assert_eq!(server.handle.stats().net.challenged, 1);
    assert_eq!(calls.load(Ordering::Relaxed), 4, "the response that was held back is thrown away");
}

#[tokio::test]
async fn an_unverified_client_is_sent_at_most_136_bytes_or_three_times_its_own() {
    let (server, _) = started(ServerConfig { verify: Verify::Everybody, ..one_core() });
    let raw = Raw::to(&server);
    let challenge = raw.ask(b"\x40\x01\x00\x01\xb5large").await.unwrap();
    assert_eq!(challenge[..4], [0x60, 0x81, 0, 1]);
    assert!(challenge.len() <= 136);
    let request = [&b"\x40\x02\x00\x02\xb4echo\xff"[..], &body(1000)].concat();
    let answer = raw.ask(&request).await.unwrap();
    assert_eq!(answer[1], 0x44, "three times of this is enough");
    // One that comes in blocks of 128 bytes has a response of 256, which is more than three times the last block.
    for (id, block, payload) in [(3, 0x0b, 128), (4, 0x1b, 128), (5, 0x23, 10)] {
        let head = [0x40, 0x02, 0, id, 0xb4, b'e', b'c', b'h', b'o', 0xd1, 0x03, block, 0xff];
        let request = [&head[..], &body(payload)].concat();
        let answer = raw.ask(&request).await.unwrap();
        assert!(answer.len() <= 136, "{} bytes", answer.len());
        assert_eq!(answer[1], if id == 5 { 0x44 } else { 0x5f });
    }
}

#[tokio::test]
async fn a_post_of_an_unverified_client_is_executed_once() {
    let (server, calls) = started(ServerConfig { verify: Verify::Everybody, ..one_core() });
    let client = Client::new();
    for query in ["", "?slow"] {
        let call = client.post(&server.uri(&format!("/echo{query}"))).payload(body(1500));
        assert_eq!(call.await.unwrap().payload, body(1500));
    }
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    assert_eq!(server.handle.stats().net.challenged, 0);
}

#[tokio::test]
async fn a_fetch_whose_last_block_is_challenged_repeats_that_block_alone() {
    let router = Router::new().fetch("/thrice", async |request: Request| {
        Ok::<_, Rejection>(Response::content(request.payload().repeat(3)))
    });
    let server = serve_with(router, ServerConfig { verify: Verify::Everybody, ..one_core() });
    let client = Client::new();
    for exchanges in [3 + 1 + 6, 3 + 6] {
        let before = client.stats().endpoint.completed;
        let response = client.fetch(&server.uri("/thrice")).payload(body(2100)).await.unwrap();
        assert_eq!((response.code, response.payload), (Code::CONTENT, body(2100).repeat(3).into()));
        assert_eq!(client.stats().endpoint.completed - before, exchanges);
        assert_eq!(server.handle.stats().net.challenged, 1);
    }
}

#[tokio::test]
async fn discovery_lists_every_path_without_parameters_and_a_query_filters() {
    let text = async |_: Request| Ok::<_, Rejection>(Response::content("x"));
    let clock = coapace_net::Resource::new();
    let server = serve(
        Router::new()
            .get("/sensors/temperature", text)
            .describe("/sensors/temperature", &[("rt", "temperature-c"), ("ct", "0"), ("bad name", "x")])
            .get("/things/{id}", text)
            .put("/a b", text)
            .observe("/clock", &clock, text)
            .describe("/nothing", &[("rt", "nothing")]),
    );
    let client = Client::new();
    let links = client.get(&server.uri("/.well-known/core")).await.unwrap();
    assert_eq!(links.format(), Some(40));
    assert_eq!(links.text(), "</sensors/temperature>;rt=\"temperature-c\";ct=0,</a%20b>,</clock>;obs");
    let chosen = async |query| {
        let uri = server.uri(&format!("/.well-known/core?{query}"));
        client.get(&uri).await.unwrap().text().into_owned()
    };
    assert_eq!(chosen("obs").await, "</clock>;obs");
    assert_eq!(chosen("rt=temp*").await, "</sensors/temperature>;rt=\"temperature-c\";ct=0");
    assert_eq!(chosen("rt=other").await, "");
    let code = client.post(&server.uri("/.well-known/core")).await.unwrap().code;
    assert_eq!(code, Code::NOT_FOUND);
}

#[tokio::test]
async fn a_handler_reads_only_the_part_of_a_representation_that_is_sent() {
    const SIZE: usize = 1 << 20;
    // Bytes that were read, and after how many of them there is another version.
    let (read, stable) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(u64::MAX)));
    let (reading, until) = (read.clone(), stable.clone());
    let router = Router::new().get("/parts", move |request: Request| {
        let range = request.range();
        let range = range.start.min(SIZE)..range.end.min(SIZE).min(range.start + 65_536);
        let before = reading.fetch_add(range.len() as u64, Ordering::Relaxed);
        let part = Response::part(body(SIZE)[range.clone()].to_vec(), range.start, SIZE);
        let tag = [1 + u8::from(before > until.load(Ordering::Relaxed))];
        async move { Ok::<_, Rejection>(part.option(option::ETAG, &tag)) }
    });
    let server = serve_with(router, one_core());
    // A copy of a request for a block is read again.
    let client = Client::builder().bulk(None).build();
    let response = client.get(&server.uri("/parts")).await.unwrap();
    assert_eq!(
        (response.payload == body(SIZE), response.options.value(option::ETAG)),
        (true, Some(&[1][..]))
    );
    // The first request leaves it to the server how much to read.
    assert_eq!(read.load(Ordering::Relaxed), SIZE as u64 + 65_536 - 1024);
    stable.store(read.load(Ordering::Relaxed) + 100_000, Ordering::Relaxed);
    let response = client.get(&server.uri("/parts")).await;
    let changed = matches!(response, Err(Error::Transfer(TransferError::Changed)));
    assert!(changed, "an ETag tells that the representation is another: {response:?}");
}
