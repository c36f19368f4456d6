//! Arbitrary bytes as a message: a message that can be read is written again with equal bytes.
#![no_main]

use coapace_proto::{Message, Tail};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(message) = Message::parse(bytes) else { return };
    let mut written = Vec::new();
    message.write(&mut written);
    assert_eq!(written, bytes);

    let again = Message::parse(&written).expect("what was read before");
    assert_eq!(
        (again.kind, again.code, again.message_id, again.token),
        (message.kind, message.code, message.message_id, message.token)
    );
    assert_eq!((again.tail, again.rexmit_cnt), (message.tail, message.rexmit_cnt));
    assert_eq!(again.extended_token, message.extended_token);
    assert_eq!(message.token.is_extended(), message.extended_token.len() > 8);

    // Options and payload have one encoding (RFC 7252 §3.1), so encoding them again gives equal bytes.
    let mut tail = Tail::default();
    for (number, value) in message.options() {
        tail = tail.option(number, value);
    }
    assert_eq!(tail.payload(message.payload()).as_bytes(), message.tail);
});
