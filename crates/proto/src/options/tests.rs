use core::num::NonZeroU8;

use proptest::prelude::*;
use std::string::ToString;
use std::vec;
use std::vec::Vec;

use super::*;
use crate::{Code, Kind};

const KNOWN: [u16; 3] = [option::URI_PATH, option::URI_HOST, option::ACCEPT];

fn message(tail: &[u8]) -> Message<'_> {
    Message { code: Code(1), tail, ..Message::empty(Kind::Confirmable, 1) }
}

/// Returns a message with these options, valid or not.
fn raw(options: &[(u16, &[u8])]) -> Vec<u8> {
    options.iter().fold(Tail::default(), |tail, &(number, value)| tail.option(number, value)).into_bytes()
}

#[test]
fn the_hop_limit_option_is_from_1_to_255_in_one_byte() {
    for (value, read) in [
        (&[1][..], Ok(NonZeroU8::new(1))),
        (&[255], Ok(NonZeroU8::new(255))),
        (&[0], Err(BadHopLimit)),
        (&[], Err(BadHopLimit)),
        (&[1, 0], Err(BadHopLimit)),
        (&[0, 9], Err(BadHopLimit)),
    ] {
        assert_eq!(message(&raw(&[(11, b"a"), (16, value), (17, &[])])).hop_limit(), read, "{value:?}");
    }
    assert_eq!(message(&raw(&[(11, b"a"), (17, &[1])])).hop_limit(), Ok(None));
}

#[test]
fn a_path_is_split_at_slashes_and_the_root_has_no_segments() {
    let segments =
        |path| Options::default().uri_path(path).iter().map(|(_, value)| value.to_vec()).collect::<Vec<_>>();
    assert!(segments("/").is_empty() && segments("").is_empty());
    assert_eq!(segments("/a/b"), [b"a", b"b"]);
    assert_eq!(segments("a/"), [&b"a"[..], b""], "an empty segment at the end is one");
}

#[test]
fn built_options_parse_back() {
    let block = Block::new(5, true, 2).unwrap();
    let options = Options::default()
        .no_response(26)
        .request_tag(b"r")
        .echo(b"e")
        .size1(70_000)
        .size2(0)
        .block1(block)
        .block2(block)
        .observe(0x100_0001)
        .etag(b"v")
        .max_age(0)
        .accept(65_535)
        .content_format(0)
        .uri_query("q=1")
        .uri_path("a");
    let tail = options.tail(b"x").unwrap();
    let message = message(tail.as_bytes());
    assert!(message.uri_path().eq([b"a"]) && message.uri_query().eq([b"q=1"]));
    assert_eq!((message.content_format(), message.accept(), message.max_age()), (Some(0), Some(65_535), 0));
    assert_eq!((message.etag(), message.observe()), (Some(&b"v"[..]), Some(1)));
    assert_eq!((message.block1(), message.block2()), (Ok(Some(block)), Ok(Some(block))));
    assert_eq!((message.size1(), message.size2()), (Some(70_000), Some(0)));
    assert!(message.value(option::REQUEST_TAG) == Some(b"r") && message.echo() == Some(b"e"));
    assert_eq!(message.payload(), b"x");
    assert_eq!(Options::of(&message), options);
}

#[test]
fn a_missing_option_has_its_default() {
    let message = message(&[]);
    assert_eq!((message.max_age(), message.observe(), message.block1()), (60, None, Ok(None)));
    assert!(!message.suppresses(Code(0x45)));
}

#[test]
fn no_response_suppresses_responses_by_class() {
    let tail = Options::default().no_response(2 + 16).tail(b"").unwrap();
    let message = message(tail.as_bytes());
    assert!(message.suppresses(Code(0x45)) && message.suppresses(Code(0xa0)));
    assert!(!message.suppresses(Code(0x84)) && !message.suppresses(Code::EMPTY));
}

#[test]
fn an_unknown_critical_option_is_reported_and_an_elective_one_ignored() {
    assert_eq!(message(&raw(&[(11, b"a"), (60, b"x")])).first_unrecognised(&KNOWN), None);
    assert_eq!(message(&raw(&[(11, b"a"), (2049, b"x")])).first_unrecognised(&KNOWN), Some(2049));
}

#[test]
fn a_critical_option_of_a_wrong_length_or_repeated_against_its_rule_is_not_recognised() {
    assert_eq!(message(&raw(&[(3, b"")])).first_unrecognised(&KNOWN), Some(3));
    assert_eq!(message(&raw(&[(17, b"\0\0\x01")])).first_unrecognised(&KNOWN), Some(17));
    assert_eq!(message(&raw(&[(17, b"\x01"), (17, b"\x02")])).first_unrecognised(&KNOWN), Some(17));
    assert_eq!(message(&raw(&[(11, b"a"), (11, b"a")])).first_unrecognised(&KNOWN), None);
}

#[test]
fn an_elective_option_of_a_wrong_length_is_ignored_and_only_the_first_of_two_counts() {
    assert_eq!(message(&raw(&[(12, b"\0\0\x01")])).content_format(), None);
    assert_eq!(message(&raw(&[(14, b"\x01"), (14, b"\x02")])).max_age(), 1);
    assert_eq!(message(&raw(&[(12, b"\0\0\x01"), (12, b"\x01")])).content_format(), None);
}

#[test]
fn options_of_an_invalid_length_are_refused_when_written() {
    let twice = Options::default().accept(1).accept(2);
    assert_eq!(twice.tail(b""), Err(BadOption::Repeated { number: 17 }));
    let long = Options::default().etag(b"123456789");
    assert_eq!(long.tail(b""), Err(BadOption::Length { number: 4 }));
    for dots in [".", ".."] {
        assert_eq!(Options::new().uri_path(dots).tail(b""), Err(BadOption::Dots { number: 11 }));
        let location = Options::new().with(8, dots.as_bytes());
        assert_eq!(location.tail(b""), Err(BadOption::Dots { number: 8 }));
    }
    assert!(Options::new().uri_path(".../..a").uri_query("..").tail(b"").is_ok());
    let proxied = Options::new().with(35, b"coap://h/x");
    assert!(proxied.tail(b"").is_ok());
    for number in [3, 7, 11, 15] {
        let both = proxied.clone().with(number, b"x").tail(b"");
        assert_eq!(both, Err(BadOption::BesideProxyUri { number }), "RFC 7252 §5.10.2");
    }
    assert_eq!(long.tail(b"").unwrap_err().to_string(), "ETag is too short or too long");
    assert!(Options::default().with(65_001, &vec![0; 65_536]).tail(b"").is_err());
}

proptest! {
    #[test]
    fn options_are_sorted_by_number_and_equal_ones_keep_their_sequence(
        given in proptest::collection::vec((60_000u16..60_010, proptest::collection::vec(any::<u8>(), 0..300)), 0..20),
        payload: Vec<u8>,
    ) {
        let options = given.iter().fold(Options::default(), |options, (number, value)| options.with(*number, value));
        let mut sorted = given.clone();
        sorted.sort_by_key(|&(number, _)| number);
        let tail = options.tail(&payload).unwrap();
        let message = message(tail.as_bytes());
        prop_assert!(message.options().eq(sorted.iter().map(|(number, value)| (*number, &value[..]))));
        prop_assert_eq!(message.payload(), &payload[..]);
        prop_assert!(options.iter().eq(message.options()));
        let without = options.without(60_005);
        sorted.retain(|&(number, _)| number != 60_005);
        prop_assert!(without.iter().eq(sorted.iter().map(|(number, value)| (*number, &value[..]))));
        let again = given.iter().filter(|(number, _)| *number != 60_005);
        let again = again.fold(Options::new(), |options, (number, value)| options.with(*number, value));
        prop_assert_eq!(without, again, "whatever was there before");
    }

    #[test]
    fn an_option_number_value_is_written_in_the_fewest_bytes_and_read_with_leading_zeros(value: u64, zeros in 0usize..8) {
        let tail = Options::default().with_uint(65_001, value).tail(b"").unwrap();
        let bytes = message(tail.as_bytes()).value(65_001).unwrap().to_vec();
        prop_assert_eq!(message(tail.as_bytes()).uint(65_001), Some(value));
        prop_assert_ne!(bytes.first(), Some(&0));
        let long = [&vec![0; zeros][..], &bytes].concat();
        let expected = (long.len() <= 8).then_some(value);
        prop_assert_eq!(message(&raw(&[(65_001, &long)])).uint(65_001), expected);
    }

    #[test]
    fn reading_options_from_any_bytes_does_not_panic(tail: Vec<u8>, number: u16) {
        let message = message(&tail);
        message.first_unrecognised(&KNOWN);
        let _ = (message.uint(number), message.block1(), message.max_age(), message.suppresses(Code(0x84)));
        prop_assert!(message.values(number).count() <= tail.len());
    }
}
