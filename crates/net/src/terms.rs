//! What a request says of how it is to be answered.

use std::hash::{DefaultHasher, Hash, Hasher};

use coap_numbers::{code, option};
use coapace_proto::block::Block;
use coapace_proto::{Code, Message, Token, echo, is_no_cache_key};

/// Everything about an answer but what the handler says. A request without these options is answered without them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// What is asked for, but for the block: requests for blocks of the same body have the same.
    pub(crate) operation: u64,
    /// The block of the response that is asked for.
    pub(crate) block2: Option<Block>,
    /// The last block of the request, which the response confirms.
    pub(crate) block1: Option<Block>,
    /// The sequence number of the representation, if the client was added to the observers.
    pub(crate) observed: Option<u32>,
    pub(crate) token: Token,
    /// The value of No-Response.
    no_response: u8,
    /// The most bytes that are sent there; unlimited if the client is known to be where it says it is.
    pub(crate) allowance: usize,
    /// Whether the client is known to be where it says it is: it has shown an Echo option or has a session of DTLS. That
    /// nobody else could forge its address is not enough.
    pub(crate) verified: bool,
    /// Whether the client may be asked to repeat the request: it has changed nothing.
    pub(crate) is_safe: bool,
}

impl Terms {
    pub(crate) fn of(message: &Message<'_>, block2: Option<Block>) -> Self {
        let length = length(message.token, message.tail.len());
        Self {
            operation: operation(message),
            block2,
            block1: None,
            observed: None,
            token: message.token,
            no_response: message.uint(option::NO_RESPONSE).unwrap_or(0) as u8,
            allowance: echo::MODEST.max(echo::AMPLIFICATION * length),
            verified: false,
            is_safe: matches!(message.code.0, code::GET | code::FETCH),
        }
    }

    /// What observers with this request are told together: who wants other blocks is sent others.
    pub(crate) fn observable(&self) -> u64 {
        self.operation.wrapping_add(self.block2.map_or(7, Block::szx).into())
    }

    /// Whether the client does not want a response of this code (RFC 7967 §2.1).
    pub(crate) fn suppresses(&self, code: Code) -> bool {
        code.is_response() && self.no_response >> ((code.0 >> 5) - 1) & 1 == 1
    }
}

/// Whether a request has anything to say of its answer.
pub(crate) fn has_terms(message: &Message<'_>) -> bool {
    message.options().any(|(number, _)| {
        matches!(
            number,
            option::OBSERVE | option::BLOCK1 | option::BLOCK2 | option::ECHO | option::NO_RESPONSE
        )
    })
}

/// Bytes of a message with so many of options and payload.
pub(crate) fn length(token: Token, tail: usize) -> usize {
    4 + token.len() + tail
}

/// Method and options, but for those that say which part of a body, and those outside the cache key (RFC 7252 §5.4.2).
fn operation(message: &Message<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    message.code.0.hash(&mut hasher);
    let part = |number| matches!(number, option::OBSERVE | option::BLOCK1 | option::BLOCK2);
    message
        .options()
        .filter(|&(number, _)| !part(number) && !is_no_cache_key(number))
        .for_each(|each| each.hash(&mut hasher));
    hasher.finish()
}
