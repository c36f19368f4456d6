//! Arbitrary bytes as options: options that can be read are written again and read with equal result.
#![no_main]

use coapace_proto::{Code, Kind, Message, Options};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&[u8], u16, u8)| {
    let (tail, number, code) = input;
    let message = Message { code: Code(code), tail, ..Message::empty(Kind::Confirmable, 1) };
    let options = Options::of(&message);
    assert!(options.iter().eq(message.options()));
    if let Some(unknown) = message.first_unrecognised(&[number]) {
        assert_eq!(unknown & 1, 1, "{unknown} is elective");
    }
    let _ = (message.block1(), message.block2(), message.max_age(), message.suppresses(Code(code)));
    let Ok(written) = options.tail(message.payload()) else { return };
    let again = Message { tail: written.as_bytes(), ..message };
    assert_eq!(Options::of(&again), options);
    assert_eq!(again.payload(), message.payload());
    assert_eq!((again.uint(number), again.value(number)), (message.uint(number), message.value(number)));
    assert_eq!(again.first_unrecognised(&[number]), message.first_unrecognised(&[number]));
});
