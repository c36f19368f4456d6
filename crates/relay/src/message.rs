//! The parts of messages that the relay reads or removes.

use std::borrow::Cow;

use coap_numbers::option;
use coapace_proto::{Code, Message, Options, REXMIT_CNT, is_critical};

/// The bits of No-Response for all classes of responses: 2.xx, 4.xx and 5.xx (RFC 7967 §2.1).
const ALL_CLASSES: u64 = 2 | 8 | 16;

/// The Hop-Limit of a request that has none (RFC 8768 §3).
const HOPS: u8 = 16;

/// Returns whether a datagram is a record of DTLS, by its first byte (RFC 7983 §7). A CoAP message begins with 64 to 127.
pub(crate) fn is_dtls(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|first| (20..64).contains(first))
}

/// Returns the options and the payload of a message, without the marking of a mechanism. A marking concerns the two ends of one
/// exchange, and each face has separate exchanges.
pub(crate) fn unmarked_tail<'a>(message: &Message<'a>) -> Cow<'a, [u8]> {
    // The relay need not understand it, because it is elective.
    const { assert!(!is_critical(REXMIT_CNT)) };
    if message.rexmit_cnt.is_none() {
        return message.tail.into();
    }
    let options = Options::of(message).without(REXMIT_CNT);
    options.tail(message.payload()).map_or(message.tail.into(), |tail| tail.into_bytes().into())
}

/// Returns the options and the payload of a request for the next hop, with a decremented Hop-Limit (RFC 8768 §3).
///
/// # Errors
/// The code to answer with: 4.00 if the Hop-Limit is invalid, 5.08 if no hop is left, and 4.02 if the request has an
/// option of Q-Block. The relay expects one response to each request, so it makes the client use Block instead.
pub(crate) fn next_hop(request: &Message<'_>) -> Result<Vec<u8>, Code> {
    if request.value(option::Q_BLOCK1).or(request.value(option::Q_BLOCK2)).is_some() {
        return Err(Code::BAD_OPTION);
    }
    let hops = match request.hop_limit() {
        Ok(None) => HOPS,
        // A valid Hop-Limit is at least 1, so this does not underflow.
        Ok(Some(hops)) => hops.get() - 1,
        Err(_) => return Err(Code::BAD_REQUEST),
    };
    if hops == 0 {
        return Err(Code::HOP_LIMIT_REACHED);
    }
    let options = Options::of(request).without(REXMIT_CNT).without(option::HOP_LIMIT);
    let mut tail = Vec::with_capacity(request.tail.len() + 4);
    options.with_uint(option::HOP_LIMIT, hops.into()).write(request.payload(), &mut tail);
    Ok(tail)
}

/// Returns the Observe option of a GET or FETCH: 0 registers, 1 deregisters (RFC 7641 §2, RFC 8132 §2.4). Returns
/// `None` for any other method.
pub(crate) fn observe(request: &Message<'_>) -> Option<u32> {
    let observable = matches!(request.code, Code::GET | Code::FETCH);
    request.observe().filter(|_| observable)
}

/// Returns whether a request asks for no response of any class.
pub(crate) fn wants_no_response(request: &Message<'_>) -> bool {
    request.uint(option::NO_RESPONSE).is_some_and(|classes| classes & ALL_CLASSES == ALL_CLASSES)
}

/// Returns whether notifications follow this response (RFC 7641 §3.2, §4.2).
pub(crate) fn goes_on(response: &Message<'_>) -> bool {
    response.code.is_success() && response.observe().is_some()
}
