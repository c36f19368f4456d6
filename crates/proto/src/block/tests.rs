mod asked;
mod bert;
mod q_block;
mod random_access;
mod reassembly;

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

/// Returns a body in which each byte depends on its offset.
fn body(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

/// A server that takes any body and answers with a representation.
struct BodyServer {
    reassembly: Reassembly<u8>,
    representation: Vec<u8>,
    max_szx: u8,
}

impl BodyServer {
    fn new(bounds: Bounds, representation: Vec<u8>) -> Self {
        Self { reassembly: Reassembly::new(bounds), representation, max_szx: bounds.max_szx }
    }

    /// Returns the response, and the request body if it is complete.
    fn answer<'a>(&mut self, request: &Message<'a>) -> (Code, Tail, Option<Cow<'a, [u8]>>) {
        let asked = request.block2().unwrap();
        match self.reassembly.handle(NOW, 1, request) {
            Assembled::Answer { code, tail } => (code, tail, None),
            Assembled::Taken => panic!("it has no Q-Block1"),
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
fn run(transfer: &mut Transfer, server: &mut BodyServer) -> (u32, Result<Vec<u8>, TransferError>) {
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
fn the_fields_of_block_options_agree_with_rfc_7959() {
    assert_eq!(block(1, true, 2).encode(), 0b1_1010);
    assert_eq!(Block::decode(0b1_1010), Ok(block(1, true, 2)));
    assert_eq!((block(3, false, 6).size(), block(3, false, 6).offset()), (1024, 3072));
    assert_eq!(Block::decode(7), Err(ReservedSize));
    assert_eq!((Block::new(MAX_NUM + 1, false, 0), Block::new(0, false, BERT + 1)), (None, None));
}

#[test]
fn a_body_that_fits_in_one_message_is_sent_without_a_block_option() {
    let mut server = BodyServer::new(Bounds::default(), vec![]);
    let mut transfer = Transfer::new(Options::default(), body(1024), 6, 10);
    assert_eq!(message(POST, transfer.request().unwrap().as_bytes()).block1(), Ok(None));
    assert_eq!(run(&mut transfer, &mut server), (1, Ok(body(1024))));
}

#[test]
fn the_client_continues_with_the_smaller_block_size_of_the_server() {
    let mut server = BodyServer::new(Bounds { max_szx: 1, ..Bounds::default() }, vec![]);
    let mut transfer = Transfer::new(Options::default(), body(300), 3, 10);
    // The first block has 128 bytes, and 172 bytes follow in blocks of 32.
    assert_eq!(run(&mut transfer, &mut server), (7, Ok(body(300))));
}

#[test]
fn after_4_13_with_a_smaller_block_size_the_client_restarts_with_it() {
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
fn after_4_08_the_client_restarts_the_transfer_a_few_times() {
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
fn a_part_of_a_representation_yields_only_its_complete_blocks() {
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

/// Returns a 4.13 response with these options.
fn too_large(transfer: &mut Transfer, options: Options) -> Result<Progress, TransferError> {
    let tail = tail(options, b"");
    transfer.handle(&message(Code(code::REQUEST_ENTITY_TOO_LARGE), tail.as_bytes()))
}

/// Returns the Block1 option and the length of the payload of the next request.
fn next(transfer: &Transfer) -> (Option<Block>, usize) {
    let request = transfer.request().unwrap();
    let request = message(POST, request.as_bytes());
    (request.block1().unwrap(), request.payload().len())
}

#[test]
fn after_4_13_to_an_unfragmented_body_the_client_sends_blocks_of_the_named_size() {
    let size1 = |size| Options::default().size1(size);
    for (len, options, block_len, szx) in [
        (500, size1(64), 64, 2),
        (500, size1(100), 64, 2),
        (500, size1(600), 256, 4),
        (500, Options::default(), 256, 4),
        (500, size1(600).block1(block(0, false, 1)), 32, 1),
        (1_024, Options::default(), 512, 5),
        (17, Options::default(), 16, 0),
    ] {
        let mut transfer = Transfer::new(Options::default(), body(len), 6, 10);
        assert_eq!(too_large(&mut transfer, options), Ok(Progress::Continue));
        assert_eq!(next(&transfer), (Some(block(0, true, szx)), block_len), "{len}");
        transfer.tag(b"t");
        let request = transfer.request().unwrap();
        let mut tags = message(POST, request.as_bytes()).options().filter(|&(number, _)| number == 292);
        assert_eq!((tags.next(), tags.next()), (Some((292, &b"t"[..])), None));
    }
    for (len, options) in [(16, Options::default()), (0, size1(64)), (500, size1(15))] {
        let mut transfer = Transfer::new(Options::default(), body(len), 6, 10);
        assert_eq!(too_large(&mut transfer, options), Ok(Progress::Complete), "{len}: no smaller blocks");
    }
}

#[test]
fn each_block_size_is_tried_once_after_4_13() {
    let mut transfer = Transfer::new(Options::default(), body(5_000), 6, 10);
    for (size, progress) in [
        (5_000, Progress::Complete),
        (600, Progress::Continue),
        (600, Progress::Complete),
        (100, Progress::Continue),
        (64, Progress::Complete),
        (63, Progress::Continue),
        (16, Progress::Continue),
        (16, Progress::Complete),
    ] {
        let before = transfer.clone();
        assert_eq!(too_large(&mut transfer, Options::default().size1(size)), Ok(progress), "{size}");
        if progress == Progress::Complete {
            transfer = before;
        }
    }
    assert_eq!(next(&transfer), (Some(block(0, true, 0)), 16));
    assert_eq!(too_large(&mut transfer, Options::default()), Ok(Progress::Complete), "it names no size");
}

#[test]
fn success_instead_of_continue_for_an_early_block_is_an_error_with_the_bytes_sent() {
    let changed = Code(code::CHANGED);
    for (reliable, sent) in [(false, 16), (true, 1_024)] {
        for at in 0..2 {
            let len = 3 * sent;
            let mut transfer = if reliable {
                Transfer::reliable(Options::default(), body(len), sent, 10)
            } else {
                Transfer::new(Options::default(), body(len), 0, 10)
            };
            let szx = if reliable { BERT } else { 0 };
            for num in 0..at {
                let go_on = tail(Options::default().block1(block(num, true, szx)), b"");
                let go_on = message(Code(code::CONTINUE), go_on.as_bytes());
                assert_eq!(transfer.handle(&go_on), Ok(Progress::Continue));
            }
            // A response in blocks does not make it better.
            let options = [Options::default(), Options::default().block2(block(0, true, 0))];
            let [plain, in_blocks] = options.map(|options| tail(options, &body(16)));
            let sent = (at as usize + 1) * sent;
            for answer in [&plain, &in_blocks] {
                let result = transfer.clone().handle(&message(changed, answer.as_bytes()));
                assert_eq!(result, Err(TransferError::Unfinished { code: changed, sent, len }));
            }
        }
    }
    let text =
        std::string::ToString::to_string(&TransferError::Unfinished { code: changed, sent: 16, len: 48 });
    assert!(text.starts_with("the server answered 2.04 Changed to the first 16 of 48 bytes"), "{text}");
}

#[test]
fn an_error_response_to_an_early_block_ends_the_transfer() {
    let mut transfer = Transfer::new(Options::default(), body(64), 0, 10);
    let refused = message(Code(code::FORBIDDEN), b"\xffno");
    assert_eq!(transfer.handle(&refused), Ok(Progress::Complete));
    assert_eq!(transfer.body(), b"no");
    assert_eq!(transfer.handle(&refused), Err(TransferError::OutOfPlace), "it is over");
}

#[test]
fn all_blocks_are_sent_to_a_server_that_answers_each_with_success() {
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
fn the_last_block_of_a_request_carries_the_block_size_for_the_response() {
    let mut transfer = Transfer::new(Options::default(), body(20), 0, 10);
    let first = transfer.request().unwrap();
    assert_eq!(message(POST, first.as_bytes()).block2(), Ok(None));
    let go_on = tail(Options::default().block1(block(0, true, 0)), b"");
    transfer.handle(&message(Code(code::CONTINUE), go_on.as_bytes())).unwrap();
    let last = transfer.request().unwrap();
    assert_eq!(message(POST, last.as_bytes()).block2(), Ok(Some(block(0, false, 0))));
}

/// Returns the result of this second response for a client that has one block of 16 bytes.
fn second(options: Options, payload: &[u8]) -> Result<Progress, TransferError> {
    let mut transfer = Transfer::new(Options::default().observe(0), vec![], 6, 40);
    let first = tail(Options::default().etag(b"a").block2(block(0, true, 0)), &body(16));
    assert_eq!(transfer.handle(&message(CONTENT, first.as_bytes())), Ok(Progress::Continue));
    let request = transfer.request().unwrap();
    assert_eq!(message(POST, request.as_bytes()).observe(), None, "only the first request observes");
    transfer.handle(&message(CONTENT, tail(options, payload).as_bytes()))
}

#[test]
fn an_unexpected_block_or_one_of_another_representation_is_an_error() {
    let a = || Options::default().etag(b"a");
    assert_eq!(second(a().block2(block(1, false, 0)), b"end"), Ok(Progress::Complete));
    assert_eq!(second(a().block2(block(2, false, 0)), b"end"), Err(TransferError::OutOfPlace));
    assert_eq!(second(a().block2(block(0, true, 0)), &body(16)), Err(TransferError::OutOfPlace));
    assert_eq!(second(a().block2(block(1, false, 1)), b"end"), Err(TransferError::OutOfPlace));
    assert_eq!(second(a(), b"end"), Err(TransferError::OutOfPlace));
    assert_eq!(second(a().block2(block(1, true, 0)), b"short"), Err(TransferError::Length));
    assert_eq!(second(a().block2(block(1, false, 0)), &body(17)), Err(TransferError::Length));
    assert_eq!(second(Options::default().block2(block(1, false, 0)), b"end"), Err(TransferError::Untagged));
    assert_eq!(
        second(Options::default().etag(b"b").block2(block(1, false, 0)), b""),
        Err(TransferError::Changed)
    );
    assert_eq!(second(a().with_uint(23, 0x17), b""), Err(TransferError::ReservedSize));
}

/// Returns the result of three blocks of 16, 16 and 3 bytes with these ETags, the first with Size2.
fn three(etags: [Option<&[u8]>; 3], size2: Option<u32>) -> Result<Progress, TransferError> {
    let mut transfer = Transfer::new(Options::default(), vec![], 6, 40);
    let mut last = Ok(Progress::Continue);
    for (num, etag) in (0..).zip(etags) {
        let options = etag.into_iter().fold(Options::default(), Options::etag);
        let options = size2.filter(|_| num == 0).into_iter().fold(options, Options::size2);
        let options = options.block2(block(num, num < 2, 0));
        let block = tail(options, &body(if num < 2 { 16 } else { 3 }));
        last = Ok(transfer.handle(&message(CONTENT, block.as_bytes()))?);
    }
    last
}

#[test]
fn blocks_with_and_without_an_etag_are_accepted_if_the_length_equals_size2() {
    let (a, b) = (Some(&b"a"[..]), Some(&b"b"[..]));
    for etags in [[a, None, None], [a, None, a], [None, a, a], [None, None, a]] {
        assert_eq!(three(etags, Some(35)), Ok(Progress::Complete), "{etags:?}");
        assert_eq!(three(etags, Some(36)), Err(TransferError::Untagged), "{etags:?}");
        assert_eq!(three(etags, None), Err(TransferError::Untagged), "{etags:?}");
    }
    for etags in [[a, None, b], [a, b, None], [None, a, b], [a, a, b]] {
        assert_eq!(three(etags, Some(35)), Err(TransferError::Changed), "{etags:?}");
    }
    for (etags, size2) in [([None; 3], None), ([a; 3], None), ([a; 3], Some(36))] {
        assert_eq!(three(etags, size2), Ok(Progress::Complete), "Size2 is an estimate");
    }
}

#[test]
fn an_error_between_two_blocks_becomes_the_response_of_the_transfer() {
    let mut transfer = Transfer::new(Options::default(), vec![], 6, 40);
    let first = tail(Options::default().block2(block(0, true, 0)), &body(16));
    transfer.handle(&message(CONTENT, first.as_bytes())).unwrap();
    assert_eq!(transfer.handle(&message(Code(code::NOT_FOUND), b"\xffgone")), Ok(Progress::Complete));
    assert_eq!(transfer.body(), b"gone");
}

#[test]
fn an_oversized_response_body_or_announced_size_is_an_error() {
    for (max_body, requests) in [(48, 4), (47, 3)] {
        let mut server = BodyServer::new(Bounds { max_szx: 0, ..Bounds::default() }, body(48));
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
fn an_option_of_invalid_length_fails_the_transfer() {
    let transfer = Transfer::new(Options::default().etag(b""), vec![], 6, 10);
    assert_eq!(transfer.request(), Err(TransferError::Option(BadOption::Length { number: 4 })));
}

proptest! {
    #[test]
    fn bodies_arrive_intact_both_ways_for_all_preferred_block_sizes(
        up in 0usize..5000, down in 0usize..5000, ours in 0u8..=6, theirs in 0u8..=6, tag: Option<[u8; 3]>,
    ) {
        let mut server = BodyServer::new(Bounds { max_szx: theirs, ..Bounds::default() }, body(down));
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
}

#[test]
fn no_block_exists_beyond_the_end_but_an_empty_representation_has_one() {
    assert_eq!(Slice::new(&body(16), Some(block(1, false, 0)), 6), None);
    assert_eq!(Slice::new(&[], Some(block(0, false, 0)), 6).unwrap().payload, b"");
    let whole = Slice::new(b"short", None, 6).unwrap();
    assert_eq!(whole.options(Options::default()), Options::default(), "nothing to say of one message");
}

#[test]
fn an_empty_body_is_sent_without_block_options_even_if_a_block_is_requested() {
    let slice = Slice::new(&[], Some(block(0, false, 2)), 6).unwrap();
    assert_eq!(slice.options(Options::new()), Options::new());
}

#[test]
fn an_etag_of_the_application_takes_precedence_over_a_hash_of_the_bytes() {
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
