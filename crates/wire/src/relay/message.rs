//! What the relay looks at in messages, and what it takes out.

use std::borrow::Cow;

use coap_numbers::option;
use coapace_proto::{Code, Message, Options, REXMIT_CNT, is_critical};

/// The classes of responses that a request may decline: 2.xx, 4.xx and 5.xx (RFC 7967 §2.1).
const ALL_CLASSES: u64 = 2 | 8 | 16;

/// Returns whether a datagram is a record of DTLS, by its first byte (RFC 7983 §7). A CoAP message begins with 64 to 127.
pub(super) fn is_dtls(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|first| (20..64).contains(first))
}

/// Returns the options and the payload of a message, without the marking of a mechanism. The marking is a matter of the two ends of one
/// exchange, and each face has exchanges of its own.
pub(super) fn unmarked_tail<'a>(message: &Message<'a>) -> Cow<'a, [u8]> {
    // The relay need not understand it, because it is elective.
    const { assert!(!is_critical(REXMIT_CNT)) };
    if message.rexmit_cnt.is_none() {
        return message.tail.into();
    }
    let options = Options::of(message).without(REXMIT_CNT);
    options.tail(message.payload()).map_or(message.tail.into(), |tail| tail.into_bytes().into())
}

/// Returns the Observe option of a request that can have one: 0 registers, 1 deregisters (RFC 7641 §2, RFC 8132 §2.4).
pub(super) fn observe(request: &Message<'_>) -> Option<u32> {
    let observable = matches!(request.code, Code::GET | Code::FETCH);
    request.observe().filter(|_| observable)
}

/// Returns whether a request asks for no response of any class.
pub(super) fn wants_no_response(request: &Message<'_>) -> bool {
    request.uint(option::NO_RESPONSE).is_some_and(|classes| classes & ALL_CLASSES == ALL_CLASSES)
}

/// Returns whether notifications follow this response (RFC 7641 §3.2, §4.2).
pub(super) fn goes_on(response: &Message<'_>) -> bool {
    response.code.is_success() && response.observe().is_some()
}
