//! Bodies of requests that a server puts together.

use super::*;

fn part(num: u32, more: bool, options: Options, payload: &[u8]) -> Tail {
    tail(options.block1(block(num, more, 0)), payload)
}

fn code_of(assembled: &Assembled<'_>) -> Option<u8> {
    match assembled {
        Assembled::Answer { code, .. } => Some(code.0),
        Assembled::Whole { .. } | Assembled::Taken => None,
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
fn blocks_are_reassembled_by_client_method_options_and_request_tag() {
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
fn a_block_after_a_gap_a_late_block_and_a_short_block_are_refused() {
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
fn an_oversized_body_or_announced_size_is_answered_4_13_with_the_accepted_size() {
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
fn a_repeated_block_is_acknowledged_again() {
    let mut reassembly = Reassembly::new(Bounds::default());
    let mut hand = |num, more, payload: &[u8]| {
        let part = part(num, more, Options::default(), payload);
        match reassembly.handle(NOW, 1, &message(POST, part.as_bytes())) {
            Assembled::Answer { code, .. } => Err(code.0),
            Assembled::Taken => Err(0),
            Assembled::Whole { body, .. } => Ok(body.into_owned()),
        }
    };
    let whole = body(35);
    assert_eq!(hand(0, true, &whole[..16]), Err(code::CONTINUE));
    assert_eq!(hand(1, true, &whole[16..32]), Err(code::CONTINUE));
    assert_eq!(hand(1, true, &whole[16..32]), Err(code::CONTINUE));
    assert_eq!(hand(2, true, &whole[..16]), Err(code::CONTINUE));
    assert_eq!(hand(1, true, &whole[16..32]), Err(code::CONTINUE), "an old one, in another message");
    assert_eq!(hand(5, true, &whole[..16]), Err(code::REQUEST_ENTITY_INCOMPLETE));
    assert_eq!(hand(1, true, &whole[..16]), Err(code::REQUEST_ENTITY_INCOMPLETE), "it has other bytes");
    assert_eq!(hand(3, false, &whole[32..]), Ok([&whole[..32], &whole[..16], &whole[32..]].concat()));
}

#[test]
fn a_full_reassembly_drops_the_body_that_waits_longest() {
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

/// Returns the first block of an upload of two blocks.
fn first_block(body: &[u8]) -> Tail {
    tail(Options::default().block1(block(0, true, 2)), &body[..64])
}

#[test]
fn first_blocks_of_unverified_clients_do_not_displace_uploads_of_others() {
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
    // Verified sources take all places, and the places of unverified sources first.
    for from in 2..8 {
        assert!(going_on(&reassembly.handle_from(NOW, from, true, &message(POST, first.as_bytes()))));
    }
    for from in 1..8 {
        let answer = reassembly.handle_from(NOW, from, false, &message(POST, second.as_bytes()));
        assert!(matches!(answer, Ok(Assembled::Whole { .. })), "{from}: {answer:?}");
    }
}

#[test]
fn an_unverified_upload_is_displaced_only_once_its_next_block_is_overdue() {
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
    assert_eq!(reassembly.len(), 3, "a client that goes on is not a stranger");
    for from in [4, 5] {
        let answer = reassembly.handle_from(later, from, false, &message(POST, first.as_bytes()));
        assert_ne!(answer, Err(Unverified));
    }
    let third = tail(Options::default().block1(block(2, false, 2)), &body[128..192]);
    let answer = reassembly.handle_from(later, 2, false, &message(POST, third.as_bytes()));
    assert!(matches!(answer, Ok(Assembled::Whole { .. })), "{answer:?}");
}

#[test]
fn a_body_kept_during_a_challenge_needs_only_its_last_block_again() {
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
    assert!(!whole(&mut reassembly, &with_echo), "its place went to another body");
    assert!(matches!(
        reassembly.handle_from(NOW, 2, true, &message(Code::FETCH, plain.as_bytes())),
        Ok(Assembled::Whole { .. })
    ));
}

#[test]
fn a_body_kept_during_a_challenge_displaces_bodies_of_unverified_clients() {
    let mut reassembly: Reassembly<u16> = Reassembly::new(Bounds { max_bodies: 2, ..Bounds::default() });
    let body = body(100);
    let (first, last) =
        (first_block(&body), tail(Options::default().block1(block(1, false, 2)), &body[64..]));
    let request = message(Code::FETCH, last.as_bytes());
    let goes_on = |reassembly: &mut Reassembly<u16>, from| {
        matches!(reassembly.handle_from(NOW, from, false, &request), Ok(Assembled::Whole { .. }))
    };
    reassembly.put_back(NOW, 1, &request, &body[64..]);
    assert!(reassembly.is_empty(), "there was no block before");
    for from in [1, 2] {
        reassembly.put_back(NOW, from, &request, &body);
    }
    assert_eq!(reassembly.len(), 1, "strangers have half of the room");
    assert!(goes_on(&mut reassembly, 1) && !goes_on(&mut reassembly, 2));

    let first = message(Code::FETCH, first.as_bytes());
    let _ = reassembly.handle_from(NOW, 2, true, &first);
    reassembly.put_back(NOW, 1, &request, &body);
    let _ = reassembly.handle_from(NOW, 3, true, &first);
    assert!(!goes_on(&mut reassembly, 1), "the first to make room, though not the oldest");
    assert!(goes_on(&mut reassembly, 2) && goes_on(&mut reassembly, 3));
}

proptest! {
    #[test]
    fn a_reassembly_keeps_its_bounds_for_any_blocks(
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
