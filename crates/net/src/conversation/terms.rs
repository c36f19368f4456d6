//! How a request wants to be answered.

use std::hash::{DefaultHasher, Hash, Hasher};

use coap_numbers::option;
use coapace_proto::block::Block;
use coapace_proto::{Code, Message, Token, echo, is_no_cache_key};

/// All that the answer to a request depends on, besides what its handler says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// A hash of what is asked for. Requests for the blocks of one body have the same.
    pub(crate) operation: u64,
    /// The block of the response that is asked for.
    pub(crate) block2: Option<Block>,
    /// The last block of the request, which the response confirms.
    pub(crate) block1: Option<Block>,
    /// The sequence number of the representation, if the client was added to the observers.
    pub(crate) observed: Option<u32>,
    pub(crate) token: Token,
    /// The value of No-Response (RFC 7967 §2.1).
    no_response: u8,
    /// The most bytes of a message to this client.
    pub(crate) allowance: usize,
    /// Set if the client is known to be where it says it is: it has shown an Echo option, or has a session or a connection.
    /// That nobody else could forge its address is not enough.
    pub(crate) verified: bool,
    /// Set if the client may be asked to repeat the request: the request has changed nothing.
    pub(crate) repeatable: bool,
    /// Set if the request came to a group (RFC 7252 §8).
    pub(crate) to_group: bool,
}

/// The Observe option of a request (RFC 7641 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// To be told of changes.
    Observe,
    /// To be told no more.
    Deregister,
}

impl Terms {
    /// Reads the terms of a request from a stranger, which asks for this block.
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
            repeatable: matches!(message.code, Code::GET | Code::FETCH),
            to_group: false,
        }
    }

    /// Returns the terms of a client that is known to be where it says it is.
    pub(crate) fn verified(self) -> Self {
        Self { verified: true, allowance: usize::MAX, ..self }
    }

    /// Returns the terms of a request that came to a group. Its members must not answer with an error.
    pub(crate) fn to_group(self) -> Self {
        Self { to_group: true, repeatable: false, ..self }
    }

    /// Returns the terms of notifications to those who observe with this request: the first block, and every response.
    pub(crate) fn published(self) -> Self {
        let block2 = self.block2.and_then(|block| Block::new(0, false, block.szx()));
        Self { block2, block1: None, no_response: 0, ..self.verified() }
    }

    /// Returns a hash of what observers with this request are sent. Those that want blocks of another size are sent others.
    pub(crate) fn observable(&self) -> u64 {
        self.operation.wrapping_add(self.block2.map_or(7, Block::szx).into())
    }

    /// Returns what the request says of observation. A request for a further block, or to a group, says nothing of it.
    pub(crate) fn wish(&self, request: &Message<'_>) -> Option<Wish> {
        let first = self.block2.is_none_or(|block| block.num() == 0);
        match request.observe().filter(|_| first && request.code == Code::GET && !self.to_group)? {
            0 => Some(Wish::Observe),
            1 => Some(Wish::Deregister),
            _ => None,
        }
    }

    /// Returns whether the client does not want a response of this code (RFC 7967 §2.1).
    pub(super) fn suppresses(&self, code: Code) -> bool {
        code.is_response() && self.no_response >> (code.class() - 1) & 1 == 1
    }
}

/// Returns whether a request has an option that says how to answer it.
pub(crate) fn has_terms(message: &Message<'_>) -> bool {
    message.options().any(|(number, _)| {
        matches!(
            number,
            option::OBSERVE | option::BLOCK1 | option::BLOCK2 | option::ECHO | option::NO_RESPONSE
        )
    })
}

/// Returns the bytes of a datagram with this token and so many bytes of options and payload.
pub(super) fn length(token: Token, tail: usize) -> usize {
    4 + token.len() + tail
}

/// Returns a hash of the method and the options that name what is asked for. Those that name a part of it do not count, nor
/// do those outside the cache key (RFC 7252 §5.4.2).
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
