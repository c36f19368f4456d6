//! Blocks of a response that are asked for several at once.

use super::*;

const GET: Code = Code::GET;
const ERRORS: [u8; 4] =
    [code::BAD_REQUEST, code::REQUEST_ENTITY_INCOMPLETE, code::SERVICE_UNAVAILABLE, code::NOT_FOUND];

/// Returns the transfer of a response of blocks of 16 bytes, after its first block.
fn begun(size: usize, max_body: usize) -> Transfer {
    let mut transfer = Transfer::new(Options::default(), vec![], 0, max_body).with_random_access();
    let (piece, first) = transfer.next_request().unwrap().unwrap();
    assert_eq!(message(GET, first.as_bytes()).block2(), Ok(Some(block(0, false, 0))));
    assert_eq!(transfer.next_request(), Ok(None), "nobody knows yet whether there are others");
    assert_eq!(answer(&mut transfer, piece, &body(size)), Ok(Progress::Continue));
    transfer
}

/// Returns the number of the next block that is asked for.
fn ask(transfer: &mut Transfer) -> Option<(Piece, u32)> {
    let (piece, tail) = transfer.next_request().unwrap()?;
    Some((piece, message(GET, tail.as_bytes()).block2().unwrap()?.num()))
}

/// Returns all blocks that are asked for now.
fn all(transfer: &mut Transfer) -> Vec<(Piece, u32)> {
    core::iter::from_fn(|| ask(transfer)).collect()
}

/// Answers with a block of this representation, or 4.00 beyond its end.
fn answer(transfer: &mut Transfer, piece: Piece, whole: &[u8]) -> Result<Progress, TransferError> {
    answer_with(transfer, piece, whole, |options| options)
}

fn answer_with(
    transfer: &mut Transfer,
    piece: Piece,
    whole: &[u8],
    change: impl FnOnce(Options) -> Options,
) -> Result<Progress, TransferError> {
    match Slice::new(whole, Block::new(piece.num, false, piece.szx), 6) {
        Some(slice) => {
            let tail = tail(change(slice.options(Options::default())), slice.payload);
            transfer.handle_piece(piece, &message(CONTENT, tail.as_bytes()))
        }
        None => fail(transfer, piece, code::BAD_REQUEST),
    }
}

fn fail(transfer: &mut Transfer, piece: Piece, code: u8) -> Result<Progress, TransferError> {
    transfer.handle_piece(piece, &message(Code(code), b"\xffno"))
}

fn numbers(pieces: &[(Piece, u32)]) -> Vec<u32> {
    pieces.iter().map(|&(_, num)| num).collect()
}

#[test]
fn a_random_access_download_requests_blocks_at_once_and_accepts_them_in_any_sequence() {
    let whole = body(75);
    let mut transfer = begun(75, 100);
    let asked = all(&mut transfer);
    assert_eq!(numbers(&asked), [1, 2, 3, 4]);
    for (&(piece, num), received) in asked.iter().rev().zip([16 + 11, 43, 59]) {
        assert_eq!(answer(&mut transfer, piece, &whole), Ok(Progress::Continue), "{num}");
        assert_eq!((transfer.transferred().received, transfer.body()), (received, &whole[..16]));
        assert_eq!(transfer.next_request(), Ok(None));
    }
    assert_eq!(answer(&mut transfer, asked[0].0, &whole), Ok(Progress::Complete));
    assert_eq!((transfer.transferred().received, transfer.take_body()), (75, whole));
}

#[test]
fn a_transfer_without_random_access_has_one_outstanding_request() {
    let (up, down) = (body(40), body(40));
    let mut server = BodyServer::new(Bounds { max_szx: 0, ..Bounds::default() }, down.clone());
    let mut transfer = Transfer::new(Options::default(), up.clone(), 0, 100);
    let mut received = None;
    for requests in 1.. {
        let expected = transfer.request();
        let (piece, request) = transfer.next_request().unwrap().unwrap();
        assert_eq!(expected.as_ref(), Ok(&request));
        assert_eq!(transfer.next_request(), Ok(None));
        assert!(!transfer.lost(piece), "an answer that does not come ends the transfer");
        assert_eq!(transfer.next_request(), Ok(Some((piece, request.clone()))));
        let (code, response, whole) = server.answer(&message(POST, request.as_bytes()));
        received = received.or(whole.map(Cow::into_owned));
        if transfer.handle_piece(piece, &message(code, response.as_bytes())) == Ok(Progress::Complete) {
            assert_eq!(requests, 5);
            break;
        }
    }
    assert_eq!((received, transfer.take_body()), (Some(up), down));
}

#[test]
fn the_first_missing_block_is_requested_again_up_to_four_times() {
    let whole = body(80);
    let mut transfer = begun(80, 100);
    let asked = all(&mut transfer);
    for _ in 0..10 {
        assert!(transfer.lost(asked[3].0), "it is not the first");
        assert_eq!(ask(&mut transfer), Some(asked[3]));
    }
    for again in [true, true, true] {
        assert_eq!(transfer.lost(asked[0].0), again);
        assert_eq!(ask(&mut transfer), Some(asked[0]));
    }
    let mut other = transfer.clone();
    assert!(!other.lost(asked[0].0));
    assert_eq!(answer(&mut transfer, asked[0].0, &whole), Ok(Progress::Continue));
    assert!(transfer.lost(asked[1].0), "another is the first");
    assert!(transfer.lost(asked[0].0), "it has arrived");
    assert_eq!(numbers(&all(&mut transfer)), [2]);
}

#[test]
fn a_server_that_serves_blocks_only_in_sequence_is_asked_for_one_at_a_time() {
    let whole = body(100);
    for error in ERRORS {
        let mut transfer = begun(100, 100);
        let asked = all(&mut transfer);
        assert_eq!(numbers(&asked), [1, 2, 3, 4, 5, 6]);
        for place in [3, 0, 4] {
            assert_eq!(fail(&mut transfer, asked[place].0, error), Ok(Progress::Continue));
        }
        assert_eq!(answer(&mut transfer, asked[1].0, &whole), Ok(Progress::Continue));
        assert_eq!(transfer.next_request(), Ok(None), "others are under way");
        assert_eq!(answer(&mut transfer, asked[2].0, &whole), Ok(Progress::Continue));
        assert_eq!(answer(&mut transfer, asked[5].0, &whole), Ok(Progress::Continue));
        for num in [1, 4, 5] {
            let alone = all(&mut transfer);
            assert_eq!(numbers(&alone), [num]);
            let mut other = transfer.clone();
            assert_eq!(fail(&mut other, alone[0].0, error), Ok(Progress::Complete), "it is the response");
            assert_eq!(other.body(), b"no");
            let progress = answer(&mut transfer, alone[0].0, &whole).unwrap();
            assert_eq!(progress == Progress::Complete, num == 5);
        }
        assert_eq!(transfer.take_body(), whole);
    }
}

#[test]
fn a_body_of_unknown_size_ends_with_its_last_block() {
    let whole = body(70);
    let mut transfer = Transfer::new(Options::default(), vec![], 0, 16 * 20).with_random_access();
    let (first, _) = ask(&mut transfer).unwrap();
    let unsized_ = |options: Options| options.without(coap_numbers::option::SIZE2);
    let hand = |transfer: &mut Transfer, piece| answer_with(transfer, piece, &whole, unsized_);
    hand(&mut transfer, first).unwrap();
    let asked = all(&mut transfer);
    assert_eq!(numbers(&asked), (1..20).collect::<Vec<_>>(), "no more than are accepted");
    for &(piece, _) in asked[4..10].iter().rev() {
        assert_eq!(hand(&mut transfer, piece), Ok(Progress::Continue), "the body has no such block");
    }
    for &(piece, num) in &asked[..3] {
        assert_eq!(hand(&mut transfer, piece), Ok(Progress::Continue), "{num}");
    }
    assert_eq!(hand(&mut transfer, asked[3].0), Ok(Progress::Complete));
    assert_eq!(transfer.take_body(), whole);
}

#[test]
fn after_a_smaller_block_in_mid_transfer_blocks_are_requested_one_by_one() {
    let whole = body(300);
    let mut transfer = Transfer::new(Options::default(), vec![], 2, 300).with_random_access();
    let (first, _) = ask(&mut transfer).unwrap();
    answer(&mut transfer, first, &whole).unwrap();
    let asked = all(&mut transfer);
    assert_eq!(numbers(&asked), [1, 2, 3, 4]);
    let small = |transfer: &mut Transfer, piece: Piece| {
        let slice = Slice::new(&whole, Block::new(piece.num, false, piece.szx), 1).unwrap();
        let tail = tail(slice.options(Options::default()), slice.payload);
        transfer.handle_piece(piece, &message(CONTENT, tail.as_bytes()))
    };
    assert_eq!(answer(&mut transfer, asked[2].0, &whole), Ok(Progress::Continue));
    for place in [0, 1, 3] {
        assert_eq!(small(&mut transfer, asked[place].0), Ok(Progress::Continue));
    }
    let mut lens = vec![];
    while let Some((piece, _)) = ask(&mut transfer) {
        assert_eq!(transfer.next_request(), Ok(None));
        small(&mut transfer, piece).unwrap();
        lens.push(transfer.transferred().received);
    }
    assert_eq!((lens[0], lens.len(), transfer.take_body()), (96, 8, whole));
}

/// Answers some of these requests.
type AnswerFunction<'a> = &'a dyn Fn(&mut Transfer, &[(Piece, u32)]) -> Result<Progress, TransferError>;

#[test]
fn another_etag_code_or_length_in_mid_transfer_is_an_error() {
    let whole = body(80);
    let other = |change: AnswerFunction<'_>| {
        let mut transfer = begun(80, 100);
        let asked = all(&mut transfer);
        change(&mut transfer, &asked)
    };
    let changed = Err(TransferError::Changed);
    assert_eq!(other(&|transfer, asked| answer(transfer, asked[1].0, &body(79))), changed, "the ETag");
    let valid = tail(Options::default().block2(block(1, true, 0)), &whole[16..32]);
    let valid = message(Code(code::VALID), valid.as_bytes());
    assert_eq!(other(&|transfer, asked| transfer.handle_piece(asked[0].0, &valid)), changed, "the code");
    let tagged = |options: Options| options.without(coap_numbers::option::ETAG).etag(&etag(&whole));
    let ends_early = |transfer: &mut Transfer, asked: &[(Piece, u32)]| {
        answer(transfer, asked[3].0, &whole)?;
        answer_with(transfer, asked[1].0, &whole[..48], tagged)
    };
    assert_eq!(other(&ends_early), changed);
    let goes_on = |transfer: &mut Transfer, asked: &[(Piece, u32)]| {
        answer_with(transfer, asked[1].0, &whole[..48], tagged)?;
        answer(transfer, asked[2].0, &whole)
    };
    assert_eq!(other(&goes_on), changed);

    let plain = |size| move |options: Options| options.without(coap_numbers::option::ETAG).size2(size);
    let mut transfer = Transfer::new(Options::default(), vec![], 0, 100);
    let first = transfer.next_request().unwrap().unwrap().0;
    let single = |options: Options| options.without(coap_numbers::option::ETAG);
    assert_eq!(answer_with(&mut transfer, first, &whole, single), Ok(Progress::Continue));
    let second = transfer.next_request().unwrap().unwrap().0;
    assert_eq!(answer_with(&mut transfer.clone(), second, &whole, plain(80)), Ok(Progress::Continue));
    assert_eq!(answer_with(&mut transfer, second, &whole, plain(81)), changed, "the size of untagged blocks");
}

#[test]
fn the_state_of_a_transfer_apart_from_its_bodies_is_small() {
    assert!(size_of::<Transfer>() + size_of::<super::super::window::Window>() <= 768);
    let mut transfer = begun(16 * 5_000, 1 << 20);
    let asked = all(&mut transfer);
    assert_eq!(asked.len(), 1_024, "no more blocks than there are bits");
    answer(&mut transfer, asked[1].0, &body(16 * 5_000)).unwrap();
    assert_eq!(transfer.next_request(), Ok(None));
    answer(&mut transfer, asked[0].0, &body(16 * 5_000)).unwrap();
    assert_eq!(numbers(&all(&mut transfer)), [1_025, 1_026]);
}

#[test]
fn no_blocks_beyond_the_accepted_body_size_are_requested() {
    let unsized_ = |options: Options| options.without(coap_numbers::option::SIZE2);
    let mut transfer = Transfer::new(Options::default(), vec![], 0, 40).with_random_access();
    let (first, _) = ask(&mut transfer).unwrap();
    answer_with(&mut transfer, first, &body(48), unsized_).unwrap();
    let asked = all(&mut transfer);
    assert_eq!(numbers(&asked), [1, 2]);
    assert_eq!(
        answer_with(&mut transfer.clone(), asked[1].0, &body(48), unsized_),
        Err(TransferError::TooLarge)
    );
    assert_eq!(answer_with(&mut transfer, asked[0].0, &body(32), unsized_), Err(TransferError::Changed));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

    #[test]
    fn a_downloaded_body_never_mixes_two_versions_under_loss_duplication_and_reordering(
        lens in (0usize..900, 0usize..900),
        (szx, theirs) in (0u8..=2, 0u8..=2),
        sizes: bool,
        ordered in proptest::option::of(1u32..20),
        changes_at in 0usize..80,
        steps in proptest::collection::vec((0u8..8, any::<u16>()), 0..300),
    ) {
        let versions = [body(lens.0), body(lens.1).into_iter().map(|byte| byte ^ 0x55).collect()];
        let mut transfer = Transfer::new(Options::default(), vec![], szx, 1_000).with_random_access();
        let mut under_way: Vec<(Piece, Tail)> = vec![];
        let mut answered = 0;
        let mut steps = steps.into_iter();
        let mut rounds = 0;
        let result = loop {
            let (what, which) = steps.next().unwrap_or((1, 0));
            while what < 3 || under_way.is_empty() {
                match transfer.next_request().unwrap() {
                    Some(next) => under_way.push(next),
                    None => break,
                }
                if what == 2 { break }
            }
            prop_assert!(!under_way.is_empty(), "no request is left to send");
            let place = usize::from(which) % under_way.len();
            let (piece, request) = under_way[place].clone();
            // An answer that comes twice is doubled.
            if what != 7 { under_way.remove(place); }
            if what == 3 {
                if !transfer.lost(piece) && !piece.alone { break Err(TransferError::OutOfPlace) }
                continue;
            }
            answered += 1;
            let version = &versions[usize::from(answered > changes_at)];
            let request = message(GET, request.as_bytes());
            let asked = request.block2().unwrap();
            let wants_order = ordered.is_some_and(|from| !piece.alone && piece.num >= from);
            let slice = Slice::new(version, asked, theirs).filter(|_| !wants_order);
            let handled = match slice {
                Some(slice) => {
                    let options = slice.options(Options::default());
                    let options = if sizes { options } else { options.without(coap_numbers::option::SIZE2) };
                    let tail = tail(options, slice.payload);
                    transfer.handle_piece(piece, &message(CONTENT, tail.as_bytes()))
                }
                None => fail(&mut transfer, piece, code::REQUEST_ENTITY_INCOMPLETE),
            };
            match handled {
                Ok(Progress::Continue) => {}
                Ok(Progress::Complete) => break Ok(transfer.clone().take_body()),
                Err(error) => break Err(error),
            }
            let prefix = transfer.body();
            prop_assert!(versions.iter().any(|version| version.starts_with(prefix)), "a body has no gaps");
            rounds += 1;
            prop_assert!(rounds < 2_000, "it must end");
        };
        match result {
            // An error in answer to a request that is alone is the response.
            Ok(whole) => prop_assert!(versions.contains(&whole) || whole == b"no" && answered > changes_at),
            Err(TransferError::Changed) => prop_assert!(answered > changes_at),
            Err(TransferError::OutOfPlace) => {}
            Err(error) => prop_assert!(false, "{error:?}"),
        }
    }

    #[test]
    fn hostile_answers_take_at_most_the_memory_of_the_largest_accepted_body(
        answers in proptest::collection::vec(
            (any::<u16>(), 0u8..8, any::<u32>(), 0usize..40, any::<Option<u16>>(), any::<bool>()), 1..200,
        ),
    ) {
        let mut transfer = Transfer::new(Options::default(), vec![], 0, 5_000).with_random_access();
        let mut under_way = vec![];
        for (which, kind, number, len, size, honest) in answers {
            under_way.extend((0..7).map_while(|_| transfer.next_request().ok().flatten()));
            if under_way.is_empty() { break }
            let piece = under_way[usize::from(which) % under_way.len()].0;
            let block2 = if kind < 5 { piece.num << 4 | number & 8 } else { number & 0xff_ffff };
            let options = Options::default().with_uint(coap_numbers::option::BLOCK2, block2.into());
            let options = size.into_iter().fold(options, |options, size| options.size2(size.into()));
            let tail = tail(options, &body(if honest { 16 } else { len }));
            let code = if kind == 7 { code::NOT_FOUND } else { code::CONTENT };
            let handled = transfer.handle_piece(piece, &message(Code(code), tail.as_bytes()));
            prop_assert!(transfer.body().len() <= transfer.transferred().received);
            if handled != Ok(Progress::Continue) { break }
        }
        prop_assert!(transfer.take_body().capacity() <= 2 * 5_000);
    }
}

/// Returns the transfer of this representation, after its first block, that goes on after an earlier one.
fn resumed(whole: &[u8], earlier: Partial) -> Transfer {
    let mut transfer = Transfer::new(Options::default(), vec![], 0, 300).with_random_access();
    transfer.resume(earlier);
    let (piece, _) = transfer.next_request().unwrap().unwrap();
    assert_eq!(answer(&mut transfer, piece, whole), Ok(Progress::Continue));
    transfer
}

#[test]
fn a_transfer_continues_an_earlier_one_of_the_same_version() {
    let whole = body(200);
    let mut broken = begun(200, 300);
    for (piece, num) in all(&mut broken) {
        if num != 6 && num != 9 {
            answer(&mut broken, piece, &whole).unwrap();
        }
    }
    let partial = broken.take_partial().unwrap();
    assert_eq!((&partial.body[..], broken.take_partial()), (&whole[..96], None));

    let mut transfer = resumed(&whole, partial.clone());
    assert_eq!(transfer.transferred().received, 80);
    let asked = all(&mut transfer);
    assert_eq!(numbers(&asked), (5..13).collect::<Vec<_>>());
    for &(piece, num) in &asked {
        let progress = if num == 12 { Progress::Complete } else { Progress::Continue };
        assert_eq!(answer(&mut transfer, piece, &whole), Ok(progress));
    }
    assert_eq!(transfer.take_partial(), None, "it is whole");
    assert_eq!(transfer.take_body(), whole);

    let with_body = |body: &[u8]| Partial { body: body.to_vec(), ..partial.clone() };
    let mut other_bytes = partial.body.clone();
    other_bytes[3] ^= 1;
    let others = [
        Partial { etag: vec![1], ..partial.clone() },
        with_body(&other_bytes),
        with_body(&whole[..16]),
        with_body(&body(201)),
        with_body(&[]),
    ];
    for other in others {
        assert_eq!(all(&mut resumed(&whole, other)).len(), 12, "all but the first are asked for");
    }
    assert_eq!(all(&mut resumed(&whole, with_body(&whole))).len(), 1, "the last block ends the body");
}

#[test]
fn a_transfer_is_not_continued_if_its_version_is_unknown_or_changed() {
    let whole = body(80);
    let mut untagged = Transfer::new(Options::default(), vec![], 0, 100);
    let (piece, _) = untagged.next_request().unwrap().unwrap();
    let response = tail(Options::default().block2(block(0, true, 0)), &whole[..16]);
    assert_eq!(untagged.handle_piece(piece, &message(CONTENT, response.as_bytes())), Ok(Progress::Continue));
    assert_eq!(untagged.take_partial(), None);

    let mut changed = begun(80, 100);
    let (piece, _) = ask(&mut changed).unwrap();
    assert_eq!(answer(&mut changed, piece, &body(81)), Err(TransferError::Changed));
    assert_eq!(changed.take_partial(), None);
    assert_eq!(Transfer::new(Options::default(), vec![], 0, 100).take_partial(), None);
}
