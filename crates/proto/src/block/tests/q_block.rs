//! Bodies of requests with Q-Block1 (RFC 9177).

use super::*;
use crate::block::missing;

const PUT: Code = Code(code::PUT);

/// Returns the transfer of a body in blocks of 16 bytes.
fn upload(len: usize, method: Code) -> Transfer {
    Transfer::new(Options::default().uri_path("a"), body(len), 0, 100).with_q_block(method, b"tag")
}

/// Returns a request of a client that sends these blocks of 16 bytes itself.
fn request(whole: &[u8], num: u32) -> Tail {
    let at = num as usize * 16;
    let end = whole.len().min(at + 16);
    let options = Options::default().request_tag(b"t").size1(whole.len() as u32);
    tail(options.q_block1(block(num, end < whole.len(), 0)), &whole[at..end])
}

fn bounds() -> Bounds {
    Bounds { max_body: 20_000, max_bytes: 100_000, ..Bounds::default() }
}

/// Returns the numbers of the blocks that the transfer sends now.
fn sent(transfer: &mut Transfer) -> Vec<(Piece, u32)> {
    sent_as(transfer, b"tag")
}

/// Returns the numbers of the blocks that the transfer sends now, with this Request-Tag.
fn sent_as(transfer: &mut Transfer, tag: &[u8]) -> Vec<(Piece, u32)> {
    core::iter::from_fn(|| {
        let (piece, tail) = transfer.next_request().unwrap()?;
        let request = message(PUT, tail.as_bytes());
        assert_eq!(request.size1(), Some(transfer.transferred().to_send as u32));
        assert_eq!(request.value(292), Some(tag));
        assert_eq!((request.block1(), request.block2()), (Ok(None), Ok(None)), "the two are not mixed");
        Some((piece, request.q_block1().unwrap().unwrap().num()))
    })
    .collect()
}

fn numbers(pieces: &[(Piece, u32)]) -> Vec<u32> {
    pieces.iter().map(|&(_, num)| num).collect()
}

fn respond(transfer: &mut Transfer, piece: Piece, code: u8) -> Result<Progress, TransferError> {
    transfer.handle_piece(piece, &message(Code(code), b""))
}

/// Answers 4.08 with the numbers of missing blocks.
fn lack(transfer: &mut Transfer, piece: Piece, missing: &[u32]) -> Result<Progress, TransferError> {
    let options = Options::default().content_format(MISSING_BLOCKS);
    let tail = tail(options, &missing::write(missing.iter().copied()));
    transfer.handle_piece(piece, &message(Code(code::REQUEST_ENTITY_INCOMPLETE), tail.as_bytes()))
}

/// Returns a transfer of 100 bytes whose first block was acknowledged, and the requests with the others.
fn known(method: Code) -> (Transfer, Vec<(Piece, u32)>) {
    let mut transfer = upload(100, method);
    let first = sent(&mut transfer);
    assert_eq!(numbers(&first), [0], "the first asks whether the server knows the option");
    assert!(transfer.acknowledged(first[0].0));
    let others = sent(&mut transfer);
    assert_eq!(numbers(&others), [1, 2, 3, 4, 5, 6]);
    (transfer, others)
}

#[test]
fn q_block1_sends_all_blocks_after_the_first_at_once_and_accepts_any_sequence_of_answers() {
    let (mut transfer, others) = known(Code::POST);
    for at in [3, 0, 1, 4] {
        assert!(transfer.acknowledged(others[at].0));
    }
    assert_eq!(transfer.transferred().sent, 48);
    assert!(transfer.lost(others[2].0), "it is sent again");
    assert_eq!(numbers(&sent(&mut transfer)), [3]);
    assert_eq!(respond(&mut transfer, others[5].0, code::CONTINUE), Ok(Progress::Continue));
    assert!(transfer.acknowledged(others[2].0));
    assert_eq!((sent(&mut transfer), transfer.transferred().sent), (vec![], 100));
    assert_eq!(respond(&mut transfer, others[1].0, code::CHANGED), Ok(Progress::Complete), "any may be it");
}

#[test]
fn q_block_is_not_used_for_short_bodies_or_reliable_transports() {
    assert!(!Transfer::new(Options::default(), body(16), 0, 0).with_q_block(PUT, b"").uses_q_block());
    assert!(!Transfer::reliable(Options::default(), body(99), 16, 0).with_q_block(PUT, b"").uses_q_block());
}

#[test]
fn a_server_that_rejects_q_block1_is_sent_the_body_with_block1() {
    for (method, codes) in [
        (PUT, &[code::BAD_OPTION, code::BAD_REQUEST, code::NOT_IMPLEMENTED, code::CHANGED][..]),
        (Code::POST, &[code::BAD_OPTION]),
    ] {
        for &code in codes {
            let mut transfer = upload(40, method);
            let (first, _) = sent(&mut transfer)[0];
            assert_eq!(respond(&mut transfer, first, code), Ok(Progress::Continue));
            assert!(!transfer.uses_q_block());
            let mut server = BodyServer::new(Bounds::default(), vec![]);
            assert_eq!(run(&mut transfer, &mut server), (3, Ok(body(40))));
        }
    }
    let mut transfer = upload(40, Code::POST);
    let (first, _) = sent(&mut transfer)[0];
    let ignored = respond(&mut transfer, first, code::CHANGED);
    assert_eq!(ignored, Err(TransferError::Unfinished { code: Code(code::CHANGED), sent: 16, len: 40 }));
}

#[test]
fn a_server_may_acknowledge_the_first_block_before_it_rejects_q_block1() {
    let mut transfer = upload(100, PUT);
    let (first, _) = sent(&mut transfer)[0];
    assert!(transfer.acknowledged(first));
    let others = sent(&mut transfer);
    assert_eq!(respond(&mut transfer, first, code::BAD_OPTION), Ok(Progress::Continue));
    let (piece, request) = transfer.next_request().unwrap().unwrap();
    let expected = (Ok(Some(block(0, true, 0))), Ok(None));
    let request = message(PUT, request.as_bytes());
    assert_eq!((request.block1(), request.q_block1()), expected);
    for &(other, _) in &others {
        assert_eq!(respond(&mut transfer, other, code::BAD_OPTION), Ok(Progress::Continue), "of before");
        assert!(!transfer.acknowledged(other));
    }
    assert_eq!(transfer.next_request(), Ok(None), "the block is under way");
    let go_on = tail(Options::default().block1(block(0, true, 0)), b"");
    let progress = transfer.handle_piece(piece, &message(Code(code::CONTINUE), go_on.as_bytes()));
    assert_eq!((progress, transfer.transferred().sent), (Ok(Progress::Continue), 16));
}

#[test]
fn an_unanswered_first_block_with_q_block1_ends_the_transfer_unless_block1_is_tried() {
    let mut transfer = upload(40, PUT);
    let (first, _) = sent(&mut transfer)[0];
    assert!(!transfer.lost(first));
    transfer.without_q_block();
    let request = transfer.next_request().unwrap().unwrap().1;
    assert_eq!(message(PUT, request.as_bytes()).block1(), Ok(Some(block(0, true, 0))));
}

#[test]
fn blocks_that_the_server_has_discarded_are_sent_again_a_few_times() {
    let (mut transfer, others) = known(PUT);
    assert!(transfer.acknowledged(others[0].0));
    assert_eq!(lack(&mut transfer, others[4].0, &[2, 3]), Ok(Progress::Continue), "they are under way");
    assert_eq!(transfer.next_request(), Ok(None));
    assert_eq!(lack(&mut transfer, others[5].0, &[4, 6]), Ok(Progress::Continue), "it is not taken");
    assert_eq!(numbers(&sent(&mut transfer)), [6]);
    let mut others = others;
    for again in 0..5 {
        assert!(transfer.acknowledged(others[1].0));
        let complete = if again < 4 { Progress::Continue } else { Progress::Complete };
        assert_eq!(lack(&mut transfer, others[2].0, &[0, 1, 2]), Ok(complete));
        if complete == Progress::Continue {
            assert_eq!(
                respond(&mut transfer, others[3].0, code::NOT_FOUND),
                Ok(Progress::Continue),
                "of before"
            );
            let tag = [b't', b'a', b'h' + again];
            let first = sent_as(&mut transfer, &tag);
            assert_eq!(numbers(&first), [0]);
            assert!(transfer.acknowledged(first[0].0));
            others = sent_as(&mut transfer, &tag);
            assert_eq!(numbers(&others), [1, 2, 3, 4, 5, 6]);
        }
    }
}

#[test]
fn a_server_that_keeps_losing_blocks_gets_fewer_at_once_and_finally_one() {
    let (mut transfer, others) = known(PUT);
    let again = respond(&mut transfer, others[3].0, code::REQUEST_ENTITY_INCOMPLETE);
    assert_eq!(again, Ok(Progress::Continue));
    // Blocks with the tag of before are still under way.
    let (first, num) = sent_as(&mut transfer, b"tah")[0];
    assert_eq!(num, 0);
    for &(other, _) in &others {
        assert_eq!(respond(&mut transfer, other, code::REQUEST_ENTITY_INCOMPLETE), Ok(Progress::Continue));
    }
    assert!(transfer.acknowledged(first));
    let others = sent_as(&mut transfer, b"tah");
    assert_eq!(numbers(&others), [1, 2, 3, 4, 5]);
    assert!(transfer.acknowledged(others[1].0));
    assert_eq!(
        numbers(&sent_as(&mut transfer, b"tah")),
        [],
        "no more than five from the first that is missing"
    );
    assert!(transfer.acknowledged(others[0].0));
    assert_eq!(numbers(&sent_as(&mut transfer, b"tah")), [6]);
    let again = respond(&mut transfer, others[3].0, code::REQUEST_ENTITY_INCOMPLETE);
    assert_eq!((again, transfer.uses_q_block()), (Ok(Progress::Continue), false));
    let mut server = BodyServer::new(Bounds::default(), vec![]);
    assert_eq!(run(&mut transfer, &mut server), (7, Ok(body(100))));
}

#[test]
fn after_4_13_q_block1_uses_the_block_size_that_the_server_names() {
    let mut transfer = Transfer::new(Options::default(), body(200), 6, 100).with_q_block(PUT, b"tag");
    assert!(!transfer.uses_q_block(), "it fits into one");
    transfer = Transfer::new(Options::default(), body(200), 2, 100).with_q_block(PUT, b"tag");
    let (first, _) = sent(&mut transfer)[0];
    let hint = tail(Options::default().q_block1(block(0, true, 1)), b"");
    let hint = message(Code(code::REQUEST_ENTITY_TOO_LARGE), hint.as_bytes());
    assert_eq!(transfer.handle_piece(first, &hint), Ok(Progress::Continue));
    let (first, _) = sent_as(&mut transfer, b"tah")[0];
    assert!(transfer.acknowledged(first));
    assert_eq!(sent_as(&mut transfer, b"tah").len(), 6, "blocks of 32 bytes");
}

#[test]
fn a_response_to_a_body_with_q_block_may_come_in_blocks_of_any_size() {
    for quick in [false, true] {
        let whole = body(2_100);
        let mut transfer = Transfer::new(Options::default(), body(40), 0, 3_000).with_q_block(PUT, b"tag");
        let (first, _) = sent(&mut transfer)[0];
        assert!(transfer.acknowledged(first));
        let others = sent(&mut transfer);
        let answer = |transfer: &mut Transfer, piece, asked: Option<Block>| {
            let slice = Slice::new(&whole, asked, 6).unwrap();
            let options = slice.options(Options::default());
            let tail = tail(options.clone(), b"");
            let block2 = message(PUT, tail.as_bytes()).block2().unwrap().unwrap();
            let options =
                if quick { options.without(coap_numbers::option::BLOCK2).q_block2(block2) } else { options };
            let tail = super::tail(options, slice.payload);
            transfer.handle_piece(piece, &message(CONTENT, tail.as_bytes()))
        };
        assert_eq!(answer(&mut transfer, others[1].0, None), Ok(Progress::Continue));
        assert!(transfer.lost(others[0].0) && transfer.acknowledged(others[0].0));
        assert_eq!(
            respond(&mut transfer, others[0].0, code::NOT_FOUND),
            Ok(Progress::Continue),
            "it is over"
        );
        let mut requests = 0;
        while let Some((piece, request)) = transfer.next_request().unwrap() {
            let request = message(PUT, request.as_bytes());
            let asked = if quick { request.q_block2() } else { request.block2() }.unwrap().unwrap();
            assert_eq!((asked.szx(), request.payload()), (0, &b""[..]), "the size that this side wants");
            answer(&mut transfer, piece, Some(asked)).unwrap();
            requests += 1;
        }
        assert_eq!((requests, transfer.take_body()), (68, whole));
    }
}

/// Returns the code of the answer to a block of a client, 0 if it is taken, and the numbers in the answer.
fn hand(reassembly: &mut Reassembly<u8>, kind: Kind, tail: &Tail) -> (u8, Vec<u32>) {
    let request = Message { code: POST, tail: tail.as_bytes(), ..Message::empty(kind, 1) };
    match reassembly.handle(NOW, 1, &request) {
        Assembled::Taken => (0, vec![]),
        Assembled::Whole { .. } => (255, vec![]),
        Assembled::Answer { code, tail } => {
            let answer = message(code, tail.as_bytes());
            let last = answer.q_block1().unwrap().map(|block| vec![block.num()]);
            (code.0, last.or(missing::read(answer.payload())).unwrap_or_default())
        }
    }
}

#[test]
fn a_server_accepts_confirmable_q_block1_blocks_in_any_sequence_and_answers_the_last() {
    let whole = body(70);
    let mut reassembly = Reassembly::new(bounds());
    for num in [0, 3, 1, 3, 4] {
        let tail = request(&whole, num);
        assert_eq!(hand(&mut reassembly, Kind::Confirmable, &tail), (0, vec![]), "{num}");
    }
    let last = request(&whole, 2);
    let Assembled::Whole { body, block: None } = reassembly.handle(NOW, 1, &message(POST, last.as_bytes()))
    else {
        panic!("it is complete")
    };
    assert_eq!((&*body, reassembly.len()), (&whole[..], 0));
    for num in 0..5 {
        let late = request(&whole, num);
        assert_eq!(hand(&mut reassembly, Kind::Confirmable, &late).0, 0, "a late copy begins no other body");
    }
    assert!(reassembly.is_empty());
    let first = request(&whole, 0);
    let after = NOW + Duration::from_secs(10);
    let _ = reassembly.handle(after, 1, &message(POST, first.as_bytes()));
    assert_eq!(reassembly.len(), 1);
}

#[test]
fn a_server_that_discarded_blocks_lists_the_missing_ones() {
    let whole = body(70);
    let mut reassembly = Reassembly::new(bounds());
    let incomplete = |missing| (code::REQUEST_ENTITY_INCOMPLETE, missing);
    for (num, missing) in [(2, vec![0, 1, 3, 4]), (0, vec![1, 3, 4]), (1, vec![3, 4]), (3, vec![4])] {
        let tail = request(&whole, num);
        assert_eq!(hand(&mut reassembly, Kind::Confirmable, &tail), incomplete(missing));
    }
    assert_eq!(hand(&mut reassembly, Kind::Confirmable, &request(&whole, 4)).0, 255);
    let (long, mut reassembly) = (body(20_000), Reassembly::new(bounds()));
    assert_eq!(hand(&mut reassembly, Kind::Confirmable, &request(&long, 0)).0, 0);
    let (far, expected) = (request(&long, 1_100), (1..=10).chain([1_100]).collect());
    assert_eq!(hand(&mut reassembly, Kind::Confirmable, &far), incomplete(expected), "too far ahead");
}

#[test]
fn a_server_confirms_each_set_of_non_confirmable_blocks_and_lists_gaps_when_the_next_begins() {
    let whole = body(16 * 30);
    let mut reassembly = Reassembly::new(bounds());
    let mut hand = |num| hand(&mut reassembly, Kind::NonConfirmable, &request(&whole, num));
    for num in 0..9 {
        assert_eq!(hand(num).0, 0);
    }
    assert_eq!(hand(9), (code::CONTINUE, vec![9]));
    assert_eq!(hand(4), (code::CONTINUE, vec![9]), "a copy is answered like the block");
    for num in [10, 12, 13, 14, 15, 17, 18, 19] {
        assert_eq!(hand(num).0, 0, "others of the set may come");
    }
    assert_eq!(hand(20), (code::REQUEST_ENTITY_INCOMPLETE, vec![11, 16]));
    assert_eq!((hand(21).0, hand(11).0), (0, 0), "once a set");
    for num in 22..30 {
        assert_eq!(hand(num).0, 0);
    }
    assert_eq!(hand(16).0, 255);
}

#[test]
fn a_block_that_rfc_9177_does_not_allow_is_refused() {
    let whole = body(64);
    let options = || Options::default().request_tag(b"t").size1(64).q_block1(block(1, true, 0));
    let without = |number| options().without(number);
    let mut reassembly = Reassembly::new(Bounds { max_szx: 1, max_body: 100, ..bounds() });
    let mut code_of = |options: Options, payload: &[u8]| {
        hand(&mut reassembly, Kind::Confirmable, &tail(options, payload)).0
    };
    assert_eq!(code_of(without(292), &whole[..16]), code::BAD_REQUEST, "no Request-Tag");
    assert_eq!(code_of(without(60), &whole[..16]), code::BAD_REQUEST, "no Size1");
    assert_eq!(code_of(options(), &whole[..15]), code::BAD_REQUEST, "not full");
    assert_eq!(code_of(without(60).size1(32), &whole[..16]), code::BAD_REQUEST, "nothing follows");
    assert_eq!(
        code_of(without(19).q_block1(block(2, false, 0)), &whole[..16]),
        code::BAD_REQUEST,
        "others do"
    );
    assert_eq!(code_of(without(19).with_uint(19, 0x1f), &whole[..16]), code::BAD_REQUEST, "a reserved size");
    assert_eq!(code_of(options().block1(block(1, true, 0)), &whole[..16]), code::BAD_OPTION);
    assert_eq!(code_of(options().block2(block(0, false, 0)), b""), code::BAD_OPTION);
    assert_eq!(code_of(without(60).size1(101), &whole[..16]), code::REQUEST_ENTITY_TOO_LARGE);
    let large = tail(without(19).q_block1(block(0, true, 2)).without(60).size1(80), &whole);
    let Assembled::Answer { code, tail } = reassembly.handle(NOW, 1, &message(POST, large.as_bytes())) else {
        panic!("the block is too large")
    };
    let smaller = message(code, tail.as_bytes()).q_block1();
    assert_eq!((code.0, smaller), (code::REQUEST_ENTITY_TOO_LARGE, Ok(Some(block(0, true, 1)))));
    let one =
        super::tail(Options::default().request_tag(b"t").size1(9).q_block1(block(0, false, 0)), &whole[..9]);
    let stranger = reassembly.handle_from(NOW, 1, false, &message(POST, one.as_bytes()));
    assert!(matches!(stranger, Ok(Assembled::Whole { .. })), "a body in one message");
    let first = request(&whole, 0);
    let stranger = reassembly.handle_from(NOW, 1, false, &message(POST, first.as_bytes()));
    assert_eq!((stranger, reassembly.len()), (Err(Unverified), 0));
    let mut reliable = Reassembly::new(Bounds { max_szx: BERT, ..bounds() });
    assert_eq!(hand(&mut reliable, Kind::Confirmable, &first).0, code::BAD_OPTION);
}

#[derive(Debug)]
enum ServerReply {
    Acknowledgement,
    Response(Code, Tail),
}

/// A request of a transfer on its way, and whether the server has answered it.
struct RequestUnderWay {
    piece: Piece,
    tail: Tail,
    reply: Option<ServerReply>,
    over: bool,
    given_up: bool,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

    #[test]
    fn a_server_gets_a_body_once_under_loss_duplication_reordering_and_give_ups(
        len in 17usize..1_500,
        discards: bool,
        steps in proptest::collection::vec((0u8..10, any::<u16>()), 0..400),
    ) {
        let mut transfer = upload(len, Code::POST);
        let mut reassembly: Reassembly<u8> = Reassembly::new(bounds());
        let (mut exchanges, mut calls) = (Vec::<RequestUnderWay>::new(), 0);
        let mut steps = steps.into_iter();
        let mut turns = 0_u16;
        let mut rounds = 0;
        loop {
            let (what, which) = steps.next().unwrap_or(((turns % 2) as u8 * 3, turns / 2));
            turns = (turns + 1) % 8_192;
            while what < 3 && let Some((piece, tail)) = transfer.next_request().unwrap() {
                exchanges.push(RequestUnderWay { piece, tail, reply: None, over: false, given_up: false });
                if what == 1 { break }
            }
            if exchanges.is_empty() { continue }
            let place = usize::from(which) % exchanges.len();
            let exchange = &mut exchanges[place];
            match what {
                _ if exchange.given_up => {}
                // Its request arrives.
                3..6 if exchange.reply.is_none() => {
                    let request = message(POST, exchange.tail.as_bytes());
                    exchange.reply = Some(match reassembly.handle(NOW, 1, &request) {
                        Assembled::Taken => ServerReply::Acknowledgement,
                        Assembled::Answer { code, tail } => ServerReply::Response(code, tail),
                        Assembled::Whole { body: whole, .. } => {
                            calls += 1;
                            prop_assert_eq!(&*whole, &body(len)[..]);
                            ServerReply::Response(Code(code::CHANGED), Tail::default())
                        }
                    });
                }
                // Its reply arrives, perhaps again.
                0..6 => match &exchange.reply {
                    Some(ServerReply::Acknowledgement) => {
                        exchange.over = transfer.acknowledged(exchange.piece);
                        prop_assert!(exchange.over);
                    }
                    Some(ServerReply::Response(code, tail)) if !exchange.over => {
                        exchange.over = true;
                        let progress = transfer.handle_piece(exchange.piece, &message(*code, tail.as_bytes()));
                        if progress == Ok(Progress::Complete) { break }
                        prop_assert_eq!(progress, Ok(Progress::Continue));
                    }
                    _ => {}
                },
                // The answer to a request that is given up is not heard. A response to the body would be missed.
                6 if !exchange.over && !exchange.piece.alone && calls == 0 => {
                    (exchange.over, exchange.given_up) = (true, true);
                    if !transfer.lost(exchange.piece) { return Ok(()) }
                }
                7 if discards && calls == 0 => reassembly = Reassembly::new(bounds()),
                _ => {}
            }
            rounds += 1;
            prop_assert!(rounds < 20_000, "it must end");
            if transfer.transferred().sent == len && calls == 0 && exchanges.iter().all(|one| one.over) {
                prop_assert!(false, "the client waits for nothing");
            }
        }
        prop_assert!(calls == 1 || discards && calls == 0, "{}", calls);
    }

    #[test]
    fn hostile_blocks_take_bounded_memory(
        blocks in proptest::collection::vec(
            (0u8..4, 0u32..3_000, 0u8..=2, any::<bool>(), 0u32..400, any::<bool>(), 0u64..20), 1..200,
        ),
    ) {
        let bounds = Bounds { max_bodies: 3, max_body: 5_000, max_bytes: 8_000, ..Bounds::default() };
        let mut reassembly: Reassembly<u8> = Reassembly::new(bounds);
        let mut now = NOW;
        for (from, num, szx, more, beyond, confirmable, wait) in blocks {
            now = now + Duration::from_secs(wait);
            let part = block(num, more, szx);
            let end = part.offset() + part.size();
            let options = Options::default().request_tag(b"t").q_block1(part);
            let options = options.size1(end as u32 + if more { 1 + beyond } else { 0 });
            let tail = tail(options, &body(part.size()));
            let kind = if confirmable { Kind::Confirmable } else { Kind::NonConfirmable };
            let request = Message { code: POST, tail: tail.as_bytes(), ..Message::empty(kind, 1) };
            let _ = reassembly.handle(now, from, &request);
            prop_assert!(reassembly.len() <= 3 && reassembly.bytes() <= 8_000);
        }
    }
}
