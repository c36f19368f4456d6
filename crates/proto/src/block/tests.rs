use std::borrow::Cow;
use std::vec;
use std::vec::Vec;

use coap_numbers::code;
use coapace_control::{Duration, Instant};
use proptest::prelude::*;

use super::*;
use crate::{BadOption, Code, Kind, Message, Options, Tail};

const POST: Code = Code(code::POST);
const CONTENT: Code = Code(code::CONTENT);
const NOW: Instant = Instant::from_secs(1);

fn message(code: Code, tail: &[u8]) -> Message<'_> {
    Message { code, tail, ..Message::empty(Kind::Confirmable, 1) }
}

fn block(num: u32, more: bool, szx: u8) -> Block {
    Block::new(num, more, szx).unwrap()
}

#[allow(clippy::needless_pass_by_value)] // made where it is used
fn tail(options: Options, payload: &[u8]) -> Tail {
    options.tail(payload).unwrap()
}

/// Returns a body. Each byte tells its place.
fn body(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

/// A server that takes any body and answers with a representation.
struct Server {
    reassembly: Reassembly<u8>,
    representation: Vec<u8>,
    max_szx: u8,
}

impl Server {
    fn new(bounds: Bounds, representation: Vec<u8>) -> Self {
        Self { reassembly: Reassembly::new(bounds), representation, max_szx: bounds.max_szx }
    }

    /// Returns the response, and the request body if it is complete.
    fn answer<'a>(&mut self, request: &Message<'a>) -> (Code, Tail, Option<Cow<'a, [u8]>>) {
        let asked = request.block2().unwrap();
        match self.reassembly.handle(NOW, 1, request) {
            Assembled::Answer { code, tail } => (code, tail, None),
            Assembled::Whole { body, block } => {
                let Some(slice) = Slice::new(&self.representation, asked, self.max_szx) else {
                    return (Code(code::BAD_REQUEST), Tail::default(), None);
                };
                let options = block.into_iter().fold(Options::default(), Options::block1);
                (CONTENT, tail(slice.options(options), slice.payload), Some(body))
            }
        }
    }
}

/// Runs a transfer to its end. Returns the number of requests, and the body that the server had when it began
/// to respond.
fn run(transfer: &mut Transfer, server: &mut Server) -> (u32, Result<Vec<u8>, TransferError>) {
    let mut received = None;
    for requests in 1.. {
        let request = transfer.request().unwrap();
        let (code, response, whole) = server.answer(&message(POST, request.as_bytes()));
        received = received.or(whole.map(Cow::into_owned));
        match transfer.handle(&message(code, response.as_bytes())) {
            Ok(Progress::Continue) => {}
            Ok(Progress::Complete) => return (requests, Ok(received.unwrap_or_default())),
            Err(error) => return (requests, Err(error)),
        }
        assert!(requests < 100_000, "the transfer must end");
    }
    unreachable!()
}

#[test]
fn the_fields_are_those_of_rfc_7959() {
    assert_eq!(block(1, true, 2).encode(), 0b1_1010);
    assert_eq!(Block::decode(0b1_1010), Ok(block(1, true, 2)));
    assert_eq!((block(3, false, 6).size(), block(3, false, 6).offset()), (1024, 3072));
    assert_eq!(Block::decode(7), Err(ReservedSize));
    assert_eq!((Block::new(MAX_NUM + 1, false, 0), Block::new(0, false, BERT + 1)), (None, None));
}

#[test]
fn a_body_that_fits_goes_in_one_message_without_a_block_option() {
    let mut server = Server::new(Bounds::default(), vec![]);
    let mut transfer = Transfer::new(Options::default(), body(1024), 6, 10);
    assert_eq!(message(POST, transfer.request().unwrap().as_bytes()).block1(), Ok(None));
    assert_eq!(run(&mut transfer, &mut server), (1, Ok(body(1024))));
}

#[test]
fn the_client_goes_on_with_the_smaller_blocks_that_the_server_asks_for() {
    let mut server = Server::new(Bounds { max_szx: 1, ..Bounds::default() }, vec![]);
    let mut transfer = Transfer::new(Options::default(), body(300), 3, 10);
    // The first block has 128 bytes, and 172 bytes follow in blocks of 32.
    assert_eq!(run(&mut transfer, &mut server), (7, Ok(body(300))));
}

#[test]
fn after_4_13_with_a_smaller_block_the_client_begins_again_with_that() {
    let mut transfer = Transfer::new(Options::default(), body(100), 6, 10);
    let hint = tail(Options::default().block1(block(0, true, 1)).size1(5000), b"");
    let too_large = message(Code(code::REQUEST_ENTITY_TOO_LARGE), hint.as_bytes());
    assert_eq!(transfer.handle(&too_large), Ok(Progress::Continue));
    let request = transfer.request().unwrap();
    let request = message(POST, request.as_bytes());
    assert_eq!((request.block1(), request.size1()), (Ok(Some(block(0, true, 1))), Some(100)));
    assert_eq!(request.payload(), &body(100)[..32]);
    assert_eq!(transfer.handle(&too_large), Ok(Progress::Complete), "it was of this size already");
}

#[test]
fn after_4_08_the_client_begins_again_a_few_times() {
    let mut transfer = Transfer::new(Options::default(), body(64), 0, 10);
    let go_on = tail(Options::default().block1(block(0, true, 0)), b"");
    let incomplete = message(Code(code::REQUEST_ENTITY_INCOMPLETE), b"");
    for expected in [[Progress::Continue; 4].as_slice(), &[Progress::Complete]].concat() {
        let first = message(Code(code::CONTINUE), go_on.as_bytes());
        assert_eq!(transfer.handle(&first), Ok(Progress::Continue));
        assert_eq!(transfer.handle(&incomplete), Ok(expected));
    }
}

#[test]
fn a_part_yields_the_blocks_that_it_has_and_no_others() {
    let whole = body(5_000);
    let part = |range: core::ops::Range<usize>| Part::new(&whole[range.clone()], range.start, 5_000).unwrap();
    let cut =
        |range, num, szx| Slice::of(part(range), Some(block(num, false, szx)), 6).map(|slice| slice.payload);
    assert_eq!(cut(1_024..3_000, 1, 6), Some(&whole[1_024..2_048]));
    assert_eq!(cut(1_024..3_000, 2, 6), None, "it has not all of this block");
    assert_eq!(cut(1_024..3_000, 0, 6), None);
    assert_eq!(cut(4_096..5_000, 4, 6), Some(&whole[4_096..]), "the last need not be full");
    assert_eq!(cut(4_096..5_000, 5, 6), None);
    let slice = Slice::reliable_of(part(1_024..4_000), Some(block(1, false, BERT)), 10_000).unwrap();
    assert_eq!(slice.payload, &whole[1_024..3_072], "as many blocks as there are whole");
    let options = slice.options(Options::default()).tail(&[]).unwrap();
    let options = message(CONTENT, options.as_bytes());
    assert_eq!((options.block2_reliable(), options.etag()), (Some(block(1, true, BERT)), None));
    let first =
        Slice::of(part(0..1_024), None, 6).unwrap().options(Options::default().etag(b"v")).tail(&[]).unwrap();
    assert_eq!(message(CONTENT, first.as_bytes()).size2(), Some(5_000));
    assert_eq!(Part::new(&whole, 1, 5_000), None);
    let all = Part::whole(&whole);
    assert!(all.is_whole() && !part(0..4_999).is_whole());
}

#[test]
fn an_early_response_ends_the_transfer() {
    let mut transfer = Transfer::new(Options::default(), body(64), 0, 10);
    let refused = message(Code(code::FORBIDDEN), b"\xffno");
    assert_eq!(transfer.handle(&refused), Ok(Progress::Complete));
    assert_eq!(transfer.body(), b"no");
    assert_eq!(transfer.handle(&refused), Err(TransferError::OutOfPlace), "it is over");
}

#[test]
fn a_server_that_answers_each_block_with_a_success_is_given_them_all() {
    for is_not_final in [false, true] {
        let mut transfer = Transfer::new(Options::default(), body(40), 0, 10);
        for (num, more) in [(0, Progress::Continue), (1, Progress::Continue), (2, Progress::Complete)] {
            let is_not_final = is_not_final && num < 2;
            let each = tail(Options::default().block1(block(num, is_not_final, 0)), b"");
            assert_eq!(transfer.handle(&message(Code(code::CHANGED), each.as_bytes())), Ok(more));
        }
    }
}

#[test]
fn a_size_for_the_response_is_asked_for_with_the_last_block_of_the_request() {
    let mut transfer = Transfer::new(Options::default(), body(20), 0, 10);
    let first = transfer.request().unwrap();
    assert_eq!(message(POST, first.as_bytes()).block2(), Ok(None));
    let go_on = tail(Options::default().block1(block(0, true, 0)), b"");
    transfer.handle(&message(Code(code::CONTINUE), go_on.as_bytes())).unwrap();
    let last = transfer.request().unwrap();
    assert_eq!(message(POST, last.as_bytes()).block2(), Ok(Some(block(0, false, 0))));
}

/// Sends this to a client that has one block of 16 bytes. Returns what the client makes of it.
fn second(options: Options, payload: &[u8]) -> Result<Progress, TransferError> {
    let mut transfer = Transfer::new(Options::default().observe(0), vec![], 6, 40);
    let first = tail(Options::default().etag(b"a").block2(block(0, true, 0)), &body(16));
    assert_eq!(transfer.handle(&message(CONTENT, first.as_bytes())), Ok(Progress::Continue));
    let request = transfer.request().unwrap();
    assert_eq!(message(POST, request.as_bytes()).observe(), None, "only the first request observes");
    transfer.handle(&message(CONTENT, tail(options, payload).as_bytes()))
}

#[test]
fn a_block_out_of_its_place_or_of_another_representation_is_an_error() {
    let a = || Options::default().etag(b"a");
    assert_eq!(second(a().block2(block(1, false, 0)), b"end"), Ok(Progress::Complete));
    assert_eq!(second(a().block2(block(2, false, 0)), b"end"), Err(TransferError::OutOfPlace));
    assert_eq!(second(a().block2(block(0, true, 0)), &body(16)), Err(TransferError::OutOfPlace));
    assert_eq!(second(a().block2(block(1, false, 1)), b"end"), Err(TransferError::OutOfPlace));
    assert_eq!(second(a(), b"end"), Err(TransferError::OutOfPlace));
    assert_eq!(second(a().block2(block(1, true, 0)), b"short"), Err(TransferError::Length));
    assert_eq!(second(a().block2(block(1, false, 0)), &body(17)), Err(TransferError::Length));
    assert_eq!(second(Options::default().block2(block(1, false, 0)), b"end"), Err(TransferError::Changed));
    assert_eq!(
        second(Options::default().etag(b"b").block2(block(1, false, 0)), b""),
        Err(TransferError::Changed)
    );
    assert_eq!(second(a().with_uint(23, 0x17), b""), Err(TransferError::ReservedSize));
}

#[test]
fn an_error_between_two_blocks_is_the_response() {
    let mut transfer = Transfer::new(Options::default(), vec![], 6, 40);
    let first = tail(Options::default().block2(block(0, true, 0)), &body(16));
    transfer.handle(&message(CONTENT, first.as_bytes())).unwrap();
    assert_eq!(transfer.handle(&message(Code(code::NOT_FOUND), b"\xffgone")), Ok(Progress::Complete));
    assert_eq!(transfer.body(), b"gone");
}

#[test]
fn a_response_body_that_is_or_says_to_be_too_large_is_an_error() {
    for (max_body, requests) in [(48, 4), (47, 3)] {
        let mut server = Server::new(Bounds { max_szx: 0, ..Bounds::default() }, body(48));
        let mut transfer = Transfer::new(Options::default(), vec![], 6, max_body);
        let (taken, end) = run(&mut transfer, &mut server);
        assert_eq!(end.is_ok(), max_body == 48);
        assert!(taken < requests);
    }
    let mut transfer = Transfer::new(Options::default(), vec![], 6, 100);
    let first = tail(Options::default().block2(block(0, true, 0)).size2(101), &body(16));
    assert_eq!(transfer.handle(&message(CONTENT, first.as_bytes())), Err(TransferError::TooLarge));
}

#[test]
fn an_option_that_cannot_be_is_an_error_of_the_request() {
    let transfer = Transfer::new(Options::default().etag(b""), vec![], 6, 10);
    assert_eq!(transfer.request(), Err(TransferError::Option(BadOption::Length { number: 4 })));
}

fn part(num: u32, more: bool, options: Options, payload: &[u8]) -> Tail {
    tail(options.block1(block(num, more, 0)), payload)
}

fn code_of(assembled: &Assembled<'_>) -> Option<u8> {
    match assembled {
        Assembled::Answer { code, .. } => Some(code.0),
        Assembled::Whole { .. } => None,
    }
}

/// Returns the answer of a server that has block 0 of client 1 to this request.
fn then(bounds: Bounds, after: Duration, from: u8, code: Code, second: &Tail) -> Option<u8> {
    let mut reassembly = Reassembly::new(bounds);
    let first = part(0, true, Options::default().uri_path("a"), &body(16));
    let answer = reassembly.handle(NOW, 1, &message(POST, first.as_bytes()));
    assert_eq!(code_of(&answer), Some(code::CONTINUE));
    code_of(&reassembly.handle(NOW + after, from, &message(code, second.as_bytes())))
}

#[test]
fn a_block_belongs_to_the_body_of_its_client_method_options_and_request_tag() {
    let a = || Options::default().uri_path("a");
    let bounds = Bounds::default();
    let zero = Duration::ZERO;
    let end = part(1, false, a(), b"end");
    assert_eq!(then(bounds, zero, 1, POST, &end), None);
    assert_eq!(
        then(bounds, zero, 1, POST, &part(1, false, a().size1(19), b"end")),
        None,
        "no part of the key"
    );
    assert_eq!(then(bounds, zero, 2, POST, &end), Some(code::REQUEST_ENTITY_INCOMPLETE));
    assert_eq!(then(bounds, zero, 1, Code(code::PUT), &end), Some(code::REQUEST_ENTITY_INCOMPLETE));
    let tagged = part(1, false, a().request_tag(b""), b"end");
    assert_eq!(then(bounds, zero, 1, POST, &tagged), Some(code::REQUEST_ENTITY_INCOMPLETE));
}

#[test]
fn a_gap_a_late_block_and_a_block_that_is_not_full_are_refused() {
    let a = || Options::default().uri_path("a");
    let bounds = Bounds { patience: Duration::from_secs(10), ..Bounds::default() };
    let late = |after| then(bounds, Duration::from_secs(after), 1, POST, &part(1, false, a(), b"end"));
    assert_eq!(
        then(bounds, Duration::ZERO, 1, POST, &part(2, false, a(), b"x")),
        Some(code::REQUEST_ENTITY_INCOMPLETE)
    );
    assert_eq!((late(10), late(11)), (None, Some(code::REQUEST_ENTITY_INCOMPLETE)));
    assert_eq!(then(bounds, Duration::ZERO, 1, POST, &part(1, true, a(), b"x")), Some(code::BAD_REQUEST));
}

#[test]
fn a_body_that_is_or_says_to_be_too_large_is_answered_with_4_13_and_the_size_that_is_taken() {
    let bounds = Bounds { max_body: 20, ..Bounds::default() };
    let a = || Options::default().uri_path("a");
    let large = part(1, true, a(), &body(16));
    assert_eq!(then(bounds, Duration::ZERO, 1, POST, &large), Some(code::REQUEST_ENTITY_TOO_LARGE));
    let mut reassembly = Reassembly::new(bounds);
    for request in [part(0, true, a().size1(21), &body(16)), tail(a(), &body(21))] {
        let Assembled::Answer { code, tail } = reassembly.handle(NOW, 1, &message(POST, request.as_bytes()))
        else {
            panic!("it is too large")
        };
        let answer = message(code, tail.as_bytes());
        assert_eq!((answer.code.0, answer.size1()), (code::REQUEST_ENTITY_TOO_LARGE, Some(20)));
    }
    assert!(reassembly.is_empty());
}

#[test]
fn a_block_that_comes_again_is_acknowledged_again() {
    let mut reassembly = Reassembly::new(Bounds::default());
    let mut hand = |num, more, payload: &[u8]| {
        let part = part(num, more, Options::default(), payload);
        match reassembly.handle(NOW, 1, &message(POST, part.as_bytes())) {
            Assembled::Answer { code, .. } => Err(code.0),
            Assembled::Whole { body, .. } => Ok(body.into_owned()),
        }
    };
    let whole = body(35);
    assert_eq!(hand(0, true, &whole[..16]), Err(code::CONTINUE));
    assert_eq!(hand(1, true, &whole[16..32]), Err(code::CONTINUE));
    assert_eq!(hand(1, true, &whole[16..32]), Err(code::CONTINUE));
    assert_eq!(hand(2, false, &whole[32..]), Ok(whole));
}

#[test]
fn where_there_is_no_room_the_body_that_waits_longest_leaves() {
    let mut reassembly = Reassembly::new(Bounds { max_bodies: 2, ..Bounds::default() });
    let mut hand = |from, num, more, len| {
        let part = part(num, more, Options::default(), &body(len));
        code_of(&reassembly.handle(NOW, from, &message(POST, part.as_bytes())))
    };
    for from in [1, 2] {
        assert_eq!(hand(from, 0, true, 16), Some(code::CONTINUE));
    }
    assert_eq!(hand(1, 1, true, 16), Some(code::CONTINUE));
    assert_eq!(hand(3, 0, true, 16), Some(code::CONTINUE));
    assert_eq!(hand(2, 1, false, 1), Some(code::REQUEST_ENTITY_INCOMPLETE));
    assert_eq!(hand(1, 2, false, 1), None);
}

#[test]
fn a_slice_beyond_the_end_is_none_and_the_empty_representation_has_one() {
    assert_eq!(Slice::new(&body(16), Some(block(1, false, 0)), 6), None);
    assert_eq!(Slice::new(&[], Some(block(0, false, 0)), 6).unwrap().payload, b"");
    let whole = Slice::new(b"short", None, 6).unwrap();
    assert_eq!(whole.options(Options::default()), Options::default(), "nothing to say of one message");
}

#[test]
fn nothing_has_no_blocks_though_one_is_asked_for() {
    let slice = Slice::new(&[], Some(block(0, false, 2)), 6).unwrap();
    assert_eq!(slice.options(Options::new()), Options::new());
}

#[test]
fn the_etag_of_the_application_goes_before_the_one_derived_from_the_bytes() {
    let representation = body(2000);
    let slice = Slice::new(&representation, None, 6).unwrap();
    let read = |options: Options| {
        let tail = tail(slice.options(options), slice.payload);
        message(CONTENT, tail.as_bytes()).etag().map(<[u8]>::to_vec)
    };
    assert_eq!(read(Options::default().etag(b"v7")), Some(b"v7".to_vec()));
    assert_eq!(read(Options::default()), Some(etag(&representation).to_vec()));
    assert_ne!(etag(b"a"), etag(b"b"));
}

proptest! {
    #[test]
    fn any_body_arrives_both_ways_whatever_sizes_the_two_sides_prefer(
        up in 0usize..5000, down in 0usize..5000, ours in 0u8..=6, theirs in 0u8..=6, tag: Option<[u8; 3]>,
    ) {
        let mut server = Server::new(Bounds { max_szx: theirs, ..Bounds::default() }, body(down));
        let options = tag.iter().fold(Options::default(), |options, tag| options.request_tag(tag));
        let mut transfer = Transfer::new(options, body(up), ours, 5000);
        let (requests, received) = run(&mut transfer, &mut server);
        prop_assert_eq!(received, Ok(body(up)));
        prop_assert_eq!(transfer.body(), &body(down)[..]);
        let size = 16usize << ours.min(theirs);
        let fewest = up.div_ceil(16 << ours).max(1) + down.div_ceil(size).max(1) - 1;
        prop_assert!(requests as usize <= up.div_ceil(size) + down.div_ceil(size) + 2);
        prop_assert!(ours > theirs || requests as usize == fewest, "{requests} requests, not {fewest}");
        prop_assert_eq!((server.reassembly.len(), server.reassembly.bytes()), (0, 0));
    }

    #[test]
    fn a_reassembly_keeps_its_bounds_whatever_blocks_arrive(
        blocks in proptest::collection::vec((0u8..5, 0u8..3, 0u32..6, any::<bool>(), 0u64..100), 1..200),
    ) {
        let bounds = Bounds {
            max_bodies: 4, max_body: 64, max_bytes: 150, patience: Duration::from_secs(300), max_szx: 0,
        };
        let mut reassembly = Reassembly::new(bounds);
        let mut now = NOW;
        for (from, path, num, more, wait) in blocks {
            now = now + Duration::from_secs(wait);
            let options = Options::default().uri_path(["a", "b", "c"][usize::from(path)]);
            let whole = body(96);
            let at = num as usize * 16;
            let part = part(num, more, options, &whole[at..at + if more { 16 } else { 5 }]);
            if let Assembled::Whole { body, .. } = reassembly.handle(now, from, &message(POST, part.as_bytes())) {
                prop_assert_eq!(&*body, &whole[..at + 5], "a body has no gaps");
            }
            prop_assert!(reassembly.len() <= 4 && reassembly.bytes() <= 150);
        }
    }
}

/// Returns the lengths of the payloads that carry a body and a representation over a reliable transport.
fn reliably(body: &[u8], representation: &[u8], room: usize) -> (Vec<usize>, Vec<usize>) {
    let mut transfer = Transfer::reliable(Options::default(), body.to_vec(), room, 1 << 20);
    let bounds = Bounds { max_szx: BERT, max_body: 1 << 20, max_bytes: 1 << 20, ..Bounds::default() };
    let mut reassembly = Reassembly::new(bounds);
    let (mut requests, mut responses) = (Vec::new(), Vec::new());
    let mut taken = None;
    loop {
        let request = transfer.request().unwrap();
        let request = message(POST, request.as_bytes());
        assert!(request.payload().len() <= room);
        requests.push(request.payload().len());
        let (code, answer) = match reassembly.handle(NOW, 1, &request) {
            Assembled::Answer { code, tail } => (code, tail),
            Assembled::Whole { body, block } => {
                taken.get_or_insert(body.into_owned());
                let slice = Slice::reliable(representation, request.block2_reliable(), room + 22).unwrap();
                responses.push(slice.payload.len());
                let options = block.into_iter().fold(Options::default(), Options::block1);
                (CONTENT, tail(slice.options(options), slice.payload))
            }
        };
        if transfer.handle(&message(code, answer.as_bytes())).unwrap() == Progress::Complete {
            break;
        }
    }
    assert_eq!((taken.as_deref(), transfer.body()), (Some(body), representation));
    (requests, responses)
}

#[test]
fn bert_moves_as_many_blocks_at_once_as_there_is_room_for() {
    let (requests, responses) = reliably(&body(10_000), &body(5_000), 4_500);
    assert_eq!((requests, responses), (vec![4_096, 4_096, 1_808, 0], vec![4_096, 904]));
    let (requests, responses) = reliably(&body(4_500), &body(4_500), 4_500);
    assert_eq!((requests, responses), (vec![4_500], vec![4_500]), "what fits is not cut");
}

#[test]
fn without_room_for_a_block_of_bert_there_are_smaller_ones() {
    let (requests, responses) = reliably(&body(600), &body(400), 300);
    assert_eq!((requests, responses), (vec![256, 256, 88, 0], vec![256, 144]));
}

#[test]
fn a_bert_block_before_others_is_full() {
    for (len, full) in [(0, false), (1_023, false), (1_024, true), (1_025, false), (3_072, true)] {
        assert_eq!(block(0, true, BERT).admits(len), full, "{len}");
        assert!(block(0, false, BERT).admits(len));
    }
    assert_eq!(block(3, true, BERT).offset(), 3_072);
    assert!(Block::decode(7).is_err() && Block::decode_reliable(7) == block(0, false, BERT));
}

proptest! {
    #[test]
    fn whatever_the_lengths_are_bert_puts_them_together(up in 0_usize..9_000, down in 0_usize..9_000, room in 16_usize..5_000) {
        reliably(&body(up), &body(down), room);
    }
}

/// Returns the first block of an upload of two blocks.
fn first_block(body: &[u8]) -> Tail {
    tail(Options::default().block1(block(0, true, 2)), &body[..64])
}

#[test]
fn first_blocks_of_strangers_leave_uploads_of_others_alone() {
    let bounds = Bounds { max_bodies: 8, ..Bounds::default() };
    let mut reassembly: Reassembly<u16> = Reassembly::new(bounds);
    let body = body(100);
    let (first, second) =
        (first_block(&body), tail(Options::default().block1(block(1, false, 2)), &body[64..]));
    let going_on = |answer: &Result<Assembled<'_>, Unverified>| {
        matches!(answer, Ok(Assembled::Answer { code: Code(code::CONTINUE), .. }))
    };
    assert!(going_on(&reassembly.handle_from(NOW, 1, true, &message(POST, first.as_bytes()))));
    // Unverified sources have half of the places, and push no body out.
    for from in 100..1_000 {
        let answer = reassembly.handle_from(NOW, from, false, &message(POST, first.as_bytes()));
        assert_eq!(going_on(&answer), from < 104, "{answer:?}");
        assert_eq!(answer == Err(Unverified), from >= 104);
    }
    // Verified sources take all places, those of unverified sources first.
    for from in 2..8 {
        assert!(going_on(&reassembly.handle_from(NOW, from, true, &message(POST, first.as_bytes()))));
    }
    for from in 1..8 {
        let answer = reassembly.handle_from(NOW, from, false, &message(POST, second.as_bytes()));
        assert!(matches!(answer, Ok(Assembled::Whole { .. })), "{from}: {answer:?}");
    }
}

#[test]
fn a_stranger_whose_next_block_is_overdue_makes_room_for_another_and_one_that_goes_on_does_not() {
    let mut reassembly: Reassembly<u16> = Reassembly::new(Bounds { max_bodies: 4, ..Bounds::default() });
    let body = body(200);
    let first = first_block(&body);
    let second = tail(Options::default().block1(block(1, true, 2)), &body[64..128]);
    let later = NOW + Duration::from_secs(10);
    for from in [1, 2] {
        let _ = reassembly.handle_from(NOW, from, false, &message(POST, first.as_bytes()));
    }
    let _ = reassembly.handle_from(NOW, 2, false, &message(POST, second.as_bytes()));
    assert_eq!(reassembly.len(), 2);
    let _ = reassembly.handle_from(NOW, 3, false, &message(POST, first.as_bytes()));
    assert_eq!(reassembly.len(), 3, "one that goes on is no stranger");
    for from in [4, 5] {
        let answer = reassembly.handle_from(later, from, false, &message(POST, first.as_bytes()));
        assert_ne!(answer, Err(Unverified));
    }
    let third = tail(Options::default().block1(block(2, false, 2)), &body[128..192]);
    let answer = reassembly.handle_from(later, 2, false, &message(POST, third.as_bytes()));
    assert!(matches!(answer, Ok(Assembled::Whole { .. })), "{answer:?}");
}

#[test]
fn a_body_that_was_put_back_needs_its_last_block_alone_and_makes_room_for_others() {
    let mut reassembly: Reassembly<u16> = Reassembly::new(Bounds { max_bodies: 2, ..Bounds::default() });
    let body = body(100);
    let first = first_block(&body);
    let last = Options::default().block1(block(1, false, 2));
    let (plain, with_echo) = (tail(last.clone(), &body[64..]), tail(last.echo(b"value"), &body[64..]));
    let whole = |reassembly: &mut Reassembly<u16>, tail: &Tail| match reassembly.handle_from(
        NOW,
        1,
        false,
        &message(Code::FETCH, tail.as_bytes()),
    ) {
        Ok(Assembled::Whole { body: whole, .. }) => whole == body,
        _ => false,
    };
    let _ = reassembly.handle_from(NOW, 1, false, &message(Code::FETCH, first.as_bytes()));
    assert!(whole(&mut reassembly, &plain) && reassembly.is_empty());
    reassembly.put_back(NOW, 1, &message(Code::FETCH, plain.as_bytes()), &body);
    assert!(whole(&mut reassembly, &with_echo) && reassembly.is_empty());
    reassembly.put_back(NOW, 1, &message(Code::FETCH, plain.as_bytes()), &body);
    for from in [2, 3] {
        let _ = reassembly.handle_from(NOW, from, true, &message(Code::FETCH, first.as_bytes()));
    }
    assert_eq!(reassembly.len(), 2);
    assert!(!whole(&mut reassembly, &with_echo), "it made room");
    assert!(matches!(
        reassembly.handle_from(NOW, 2, true, &message(Code::FETCH, plain.as_bytes())),
        Ok(Assembled::Whole { .. })
    ));
}
