//! Arbitrary text as links: every link that is read can be read again by itself, and none is longer than the text.
#![no_main]

use coapace_proto::link_format::{filter, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str)| {
    let (text, argument) = input;
    let mut read = 0;
    for link in parse(text).filter_map(Result::ok) {
        assert_eq!(parse(link.text).collect::<Vec<_>>(), [Ok(link)]);
        read += link.text.len();
        let there = link.attributes().any(|(name, _)| name == argument);
        assert!(argument.contains('=') || link.matches(argument) == there);
    }
    assert!(read <= text.len());
    let filtered = filter(text, &[argument]);
    assert!(filtered.len() <= text.len());
    assert!(parse(&filtered).all(|link| link.is_ok_and(|link| link.matches(argument))));
});
