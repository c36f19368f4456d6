//! Servers that answer as a test wants: servers that know little of block-wise transfers, or send more than a datagram should have.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use coap_numbers::option;
use coapace_net::{Client, Code, Error, Options, TransferError};
use coapace_proto::block::Block;
use coapace_proto::stream::{Decoder, StreamMessage};
use coapace_proto::{Kind, Message};

use crate::bodies::body;

/// The answer to a request.
struct Answer {
    code: Code,
    options: Options,
    payload: Vec<u8>,
}

impl Answer {
    fn new(code: Code) -> Self {
        Self { code, options: Options::default(), payload: Vec::new() }
    }
}

/// The parts of a request that a server notes: its Block1 option, its Request-Tag, and the length of its payload.
type Seen = (Option<Block>, Option<Vec<u8>>, usize);

/// Starts a server that answers every request like this, until the process ends. Returns its URI, and the requests that it receives.
fn start(answer: impl Fn(&Message<'_>) -> Answer + Send + 'static) -> (String, Receiver<Seen>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let uri = format!("coap://{}/x", socket.local_addr().unwrap());
    let (tell, seen) = channel();
    thread::spawn(move || {
        let mut buffer = [0; 2_048];
        while let Ok((len, from)) = socket.recv_from(&mut buffer) {
            let request = Message::parse(&buffer[..len]).unwrap();
            let tag = request.options().find(|&(number, _)| number == option::REQUEST_TAG);
            let tag = tag.map(|(_, value)| value.to_vec());
            let _ = tell.send((request.block1().unwrap(), tag, request.payload().len()));
            let Answer { code, options, payload } = answer(&request);
            let tail = options.tail(&payload).unwrap();
            let empty = Message::empty(Kind::Acknowledgement, request.message_id);
            let mut bytes = Vec::new();
            Message { code, token: request.token, tail: tail.as_bytes(), ..empty }.write(&mut bytes);
            socket.send_to(&bytes, from).unwrap();
        }
    });
    (uri, seen)
}

fn block(num: u32, more: bool, szx: u8) -> Block {
    Block::new(num, more, szx).unwrap()
}

#[tokio::test]
async fn a_server_that_takes_the_first_block_for_the_whole_body_causes_an_error_with_every_method() {
    let (uri, seen) = start(|_| Answer::new(Code::CHANGED));
    for method in [Code::PUT, Code::POST, Code::FETCH, Code::PATCH, Code::IPATCH] {
        let error = Client::new().request(method, &uri).payload(body(3_000)).await.unwrap_err();
        let unfinished = TransferError::Unfinished { code: Code::CHANGED, sent: 1_024, len: 3_000 };
        assert!(matches!(error, Error::Transfer(error) if error == unfinished), "{method}: {error}");
        let text = error.to_string();
        assert!(text.contains("2.04 Changed to the first 1024 of 3000 bytes"), "{text}");
    }
    assert_eq!(seen.try_iter().count(), 5, "nothing was sent after the answer");
}

#[tokio::test]
async fn a_server_that_takes_the_first_blocks_for_the_whole_body_causes_an_error_over_tcp() {
    // CSMs of a server that says nothing of blocks, and of one that takes BERT in messages of 4096 bytes.
    for (greeting, sent) in [(&b"\x00\xe1"[..], 1_024), (b"\x40\xe1\x22\x10\x00\x20", 3_072)] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let uri = format!("coap+tcp://{}/x", listener.local_addr().unwrap());
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(greeting).unwrap();
            let (mut decoder, mut buffer) = (Decoder::new(1 << 16), [0; 1 << 14]);
            while let Ok(len @ 1..) = stream.read(&mut buffer) {
                let mut rest = &buffer[..len];
                while !rest.is_empty() {
                    let (taken, message) = decoder.read(rest).unwrap();
                    rest = &rest[taken..];
                    if let Some(request) = message.filter(|message| message.code == Code::PUT) {
                        let mut bytes = Vec::new();
                        let answer = StreamMessage { code: Code::CHANGED, token: request.token, tail: &[] };
                        answer.write(&mut bytes).unwrap();
                        stream.write_all(&bytes).unwrap();
                    }
                }
            }
        });
        let error = Client::new().put(&uri).payload(body(10_000)).await.unwrap_err();
        let unfinished = TransferError::Unfinished { code: Code::CHANGED, sent, len: 10_000 };
        assert!(matches!(error, Error::Transfer(error) if error == unfinished), "{error}");
    }
}

#[tokio::test]
async fn an_error_answered_to_an_early_block_is_the_response_to_the_request() {
    let (uri, _) = start(|_| Answer::new(Code::FORBIDDEN));
    let response = Client::new().put(&uri).payload(body(3_000)).await.unwrap();
    assert_eq!(response.code, Code::FORBIDDEN);
}

#[tokio::test]
async fn the_response_to_the_last_block_may_itself_come_in_blocks() {
    let (uri, _) = start(|request| {
        let mut answer = Answer::new(Code::CONTINUE);
        let part = request.block2().unwrap().map_or(0, Block::num);
        match request.block1().unwrap() {
            Some(block) if block.more() => answer.options = answer.options.block1(block),
            last => {
                (answer.code, answer.payload) =
                    (Code::CONTENT, body(48)[part as usize * 16..][..16].to_vec());
                answer.options = last.into_iter().fold(answer.options, Options::block1);
                answer.options = answer.options.block2(block(part, part < 2, 0));
            }
        }
        answer
    });
    let response = Client::new().fetch(&uri).payload(body(3_000)).await.unwrap();
    assert_eq!((response.code, response.payload), (Code::CONTENT, body(48).into()));
}

/// Returns a server that takes 64 bytes at once, and answers `refusal` to more.
fn small(refusal: impl Fn() -> Options + Send + 'static) -> (String, Receiver<Seen>) {
    start(move |request| {
        let mut answer = Answer::new(Code::CHANGED);
        if request.payload().len() > 64 {
            answer = Answer { options: refusal(), ..Answer::new(Code::REQUEST_ENTITY_TOO_LARGE) };
        } else if let Some(block) = request.block1().unwrap() {
            answer.code = if block.more() { Code::CONTINUE } else { Code::CHANGED };
            answer.options = answer.options.block1(block);
        }
        answer
    })
}

#[tokio::test]
async fn after_4_13_a_body_is_sent_in_blocks_of_the_size_that_the_server_names() {
    for (refusal, first) in [
        ((|| Options::default().size1(64)) as fn() -> Options, vec![500]),
        (|| Options::default().size1(70).block1(block(0, true, 2)), vec![500]),
        (Options::default, vec![500, 256]),
    ] {
        let (uri, seen) = small(refusal);
        let result = Client::new().put(&uri).payload(body(500)).await.unwrap();
        let seen: Vec<Seen> = seen.try_iter().collect();
        let lengths: Vec<usize> = seen.iter().map(|&(.., len)| len).collect();
        if first.len() == 1 {
            assert_eq!(result.code, Code::CHANGED);
            assert_eq!(lengths, [&first[..], &[64; 7], &[52]].concat());
            assert_eq!(seen[1].0, Some(block(0, true, 2)));
            assert!(seen[1].1.is_some() && seen[1..].iter().all(|each| each.1 == seen[1].1), "one tag");
        } else {
            assert_eq!((result.code, lengths), (Code::REQUEST_ENTITY_TOO_LARGE, first), "it says no size");
        }
    }
}

#[tokio::test]
async fn a_server_without_block_support_is_recognised_by_its_first_answer() {
    let (uri, seen) = start(|request| match request.block1().unwrap() {
        Some(_) => Answer::new(Code::BAD_OPTION),
        None => Answer {
            options: Options::default().size1(64),
            payload: b"too much".to_vec(),
            ..Answer::new(Code::REQUEST_ENTITY_TOO_LARGE)
        },
    });
    let response = Client::new().put(&uri).payload(body(500)).await.unwrap();
    assert_eq!((response.code, response.text().as_ref()), (Code::REQUEST_ENTITY_TOO_LARGE, "too much"));
    assert_eq!((response.options.uint(option::SIZE1), seen.try_iter().count()), (Some(64), 2));
}

#[tokio::test]
async fn a_server_that_refuses_every_block_size_is_tried_a_few_times() {
    let (uri, seen) = start(|_| Answer {
        options: Options::default().size1(64),
        ..Answer::new(Code::REQUEST_ENTITY_TOO_LARGE)
    });
    let response = Client::new().put(&uri).payload(body(500)).await.unwrap();
    assert_eq!(
        (response.code, response.options.uint(option::SIZE1)),
        (Code::REQUEST_ENTITY_TOO_LARGE, Some(64))
    );
    assert_eq!(seen.try_iter().map(|(.., len)| len).collect::<Vec<_>>(), [500, 64]);
}

#[tokio::test]
async fn blocks_with_an_etag_only_in_the_first_are_accepted_if_their_length_matches_size2() {
    for (size2, whole) in [(Some(40), true), (Some(41), false), (None, false)] {
        let (uri, _) = start(move |request| {
            let num = request.block2().unwrap().map_or(0, Block::num);
            let mut options = Options::default();
            if num == 0 {
                options = size2.into_iter().fold(options.etag(b"v"), Options::size2);
            }
            let payload = body(40)[num as usize * 16..].iter().copied().take(16).collect();
            Answer { options: options.block2(block(num, num < 2, 0)), payload, ..Answer::new(Code::CONTENT) }
        });
        match Client::new().get(&uri).await {
            Ok(response) => assert!(whole && response.payload == body(40), "{size2:?}"),
            Err(Error::Transfer(TransferError::Untagged)) => assert!(!whole, "{size2:?}"),
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn a_response_of_any_datagram_length_is_accepted_once() {
    for len in [2_049, 8_000, 60_000] {
        let (uri, seen) = start(move |_| Answer { payload: body(len), ..Answer::new(Code::CONTENT) });
        let client = Client::new();
        let response = client.post(&uri).payload("x").await.unwrap();
        assert!(response.payload == body(len) && response.transmissions == 1, "{len}");
        let error = client.get(&uri).max_body(len - 1).await.unwrap_err();
        assert!(matches!(error, Error::Transfer(TransferError::TooLarge)), "{error}");
        assert_eq!((seen.try_iter().count(), client.stats().net.truncated), (2, 0));
    }
}

#[test]
fn the_blocking_client_accepts_a_long_response() {
    let (uri, _) = start(|_| Answer { payload: body(8_000), ..Answer::new(Code::CONTENT) });
    assert!(coapace_net::blocking::Client::new().get(&uri).unwrap().payload == body(8_000));
}

/// A server that speaks DTLS, and answers with one record.
#[cfg(feature = "tls")]
#[tokio::test]
async fn a_response_that_fills_a_dtls_record_is_accepted_and_such_a_request_is_counted() {
    use crate::secured::{KEY, keys};
    use coapace_net::{Dtls, DtlsSessions};

    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let uri = format!("coaps://{}/x", socket.local_addr().unwrap());
    thread::spawn(move || {
        let mut sessions = DtlsSessions::new(&keys()).unwrap();
        let mut buffer = [0; 4_096];
        while let Ok((len, from)) = socket.recv_from(&mut buffer) {
            sessions.handle_record(from, &buffer[..len]);
            let mut request = Vec::new();
            while let Some(name) = sessions.poll_datagram(&mut request) {
                let asked = Message::parse(&request).unwrap();
                let tail = Options::default().tail(&body(8_000)).unwrap();
                let empty = Message::empty(Kind::Acknowledgement, asked.message_id);
                let mut answer = Vec::new();
                Message { code: Code::CONTENT, token: asked.token, tail: tail.as_bytes(), ..empty }
                    .write(&mut answer);
                sessions.send(name, &answer);
                request.clear();
            }
            let mut record = Vec::new();
            while let Some(to) = sessions.poll_record(&mut record) {
                socket.send_to(&record, to).unwrap();
                record.clear();
            }
        }
    });
    let client = Client::builder().dtls(Dtls::client("lamp-7", KEY)).build();
    let response = client.get(&uri).timeout(Duration::from_secs(30)).await.unwrap();
    assert!(response.payload == body(8_000));

    // To open a longer record, a server would have to keep the room for one with every session.
    let server = crate::secured::serve(coapace_net::Router::new(), &keys());
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.send_to(&[&b"\x40\x03\x00\x01\xff"[..], &[7; 3_000]].concat(), server.address).unwrap();
    crate::common::until(|| server.handle.stats().net.truncated == 1).await;
    assert_eq!(server.handle.stats().endpoint.received, 0, "a datagram in the clear is not read");
}

/// Sends a datagram of `len` bytes that begins like this, and returns the answer that comes back within a second.
fn asked(server: SocketAddr, head: &[u8], len: usize) -> Option<Vec<u8>> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut bytes = head.to_vec();
    bytes.resize(len, 0x78);
    socket.send_to(&bytes, server).unwrap();
    crate::common::received(&socket)
}

#[tokio::test]
async fn a_request_too_long_for_a_datagram_is_answered_4_13_with_the_accepted_size() {
    let server = crate::common::serve(coapace_net::Router::new());
    let address = server.address;
    let answers = tokio::task::spawn_blocking(move || {
        let heads: [(&[u8], usize); 7] = [
            // PUT, confirmable and not. The last is as long as is taken.
            (b"\x42\x03\x12\x34to\xb1x\xff", 2_049),
            (b"\x42\x03\x12\x35to\xb1x\xff", 9_000),
            (b"\x52\x03\x12\x36to\xb1x\xff", 2_049),
            (b"\x42\x03\x12\x37to\xb1x\xff", 2_048),
            // A response, an empty message, another version.
            (b"\x42\x45\x12\x38to\xff", 2_049),
            (b"\x40\x00\x12\x39", 2_049),
            (b"\x02\x03\x12\x3a", 2_049),
        ];
        heads.map(|(head, len)| asked(address, head, len))
    });
    let answers = answers.await.unwrap();
    for (nth, answer) in answers.iter().enumerate() {
        let Some(bytes) = answer else {
            assert!(nth >= 4, "{nth}");
            continue;
        };
        let message = Message::parse(bytes).unwrap();
        let expected = if nth == 3 { Code::NOT_FOUND } else { Code::REQUEST_ENTITY_TOO_LARGE };
        assert_eq!((message.code, message.size1()), (expected, (nth != 3).then_some(1_024)), "{nth}");
        if nth == 2 {
            assert_eq!((message.kind, &message.token[..]), (Kind::NonConfirmable, &b"to"[..]));
        } else {
            assert_eq!((message.kind, message.message_id), (Kind::Acknowledgement, 0x1234 + nth as u16));
        }
    }
    assert_eq!(server.handle.stats().net.truncated, 6);
}
