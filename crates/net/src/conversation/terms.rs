//! The terms of a request: everything that decides how it is answered.

use std::hash::{DefaultHasher, Hash, Hasher};

use coap_numbers::option;
use coapace_proto::block::{self, Asked, Block};
use coapace_proto::{Allowance, Code, Message, Token, is_no_cache_key};

/// Everything that the answer to a request depends on, other than the handler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// The hash of the method and the options. It is equal for all blocks of one body.
    pub(crate) operation: u64,
    /// The block that the request asks for, the first one if it asks for several.
    pub(crate) block2: Option<Block>,
    /// The blocks that the request asks for with Q-Block2 (RFC 9177 §4.4), if it has this option.
    pub(crate) set: Option<Asked>,
    /// The last block of the request's body, which the response confirms. `None` if the body came in one message.
    pub(crate) block1: Option<Block>,
    /// The sequence number of the representation, if the client was added to the observers.
    pub(crate) observed: Option<u32>,
    pub(crate) token: Token,
    /// The value of No-Response (RFC 7967 §2.1).
    no_response: u8,
    /// The number of bytes that this client may be sent.
    pub(crate) allowance: Allowance,
    /// Whether the client's address is verified, by an Echo option, a session or a connection.
    pub(crate) verified: bool,
    /// Whether the client may be challenged to repeat the request, because the request has changed nothing.
    pub(crate) repeatable: bool,
    /// Whether the request came to a group (RFC 7252 §8).
    pub(crate) to_group: bool,
}

/// The Observe option of a request (RFC 7641 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Start an observation (0).
    Observe,
    /// End the observation (1).
    Deregister,
}

impl Terms {
    /// Reads the terms of a request. At first they allow any number of bytes for the response, as for a client that is
    /// verified or trusted.
    pub(crate) fn of(message: &Message<'_>, block2: Option<Block>) -> Self {
        Self {
            operation: operation(message),
            block2,
            set: None,
            block1: None,
            observed: None,
            token: message.token,
            // All classes are in the lowest byte (RFC 7967 §2.1).
            no_response: message.uint(option::NO_RESPONSE).unwrap_or(0) as u8,
            allowance: Allowance::UNLIMITED,
            verified: false,
            // GET and FETCH change nothing, so a client may be asked to repeat them (RFC 7252 §5.8.1, RFC 8132 §2).
            repeatable: matches!(message.code, Code::GET | Code::FETCH),
            to_group: false,
        }
    }

    /// Returns these terms for a request that asks for the blocks of `set` with Q-Block2.
    pub(crate) fn for_set(self, set: Asked) -> Self {
        Self { block2: set.blocks().next(), set: Some(set), ..self }
    }

    /// Returns the terms of each block that the request asks for after the first.
    pub(crate) fn further(&self) -> impl Iterator<Item = Self> {
        let blocks = self.set.into_iter().flat_map(Asked::blocks).skip(1);
        blocks.map(|block| Self { block2: Some(block), ..*self })
    }

    /// Returns these terms for a verified client, which may be sent any number of bytes.
    pub(crate) fn verified(self) -> Self {
        Self { verified: true, allowance: Allowance::UNLIMITED, ..self }
    }

    /// Returns these terms for a request to a group. Its sender cannot be challenged, because a challenge is an error
    /// response.
    pub(crate) fn to_group(self) -> Self {
        Self { to_group: true, repeatable: false, ..self }
    }

    /// Returns the terms of notifications to the observers with this request. Each notification begins with the first
    /// block, and No-Response does not suppress it.
    pub(crate) fn published(self) -> Self {
        let block2 = self.block2.and_then(|block| Block::new(0, false, block.szx()));
        // The endpoint limits what an observer with an unverified address is sent.
        Self { block2, set: None, block1: None, no_response: 0, ..self.verified() }
    }

    /// Returns the hash of the operation and of the block size. Observers with equal hashes are sent the same notifications.
    pub(crate) fn observable(&self) -> u64 {
        // 7 is not the size of any block over datagrams (RFC 7959 §2.2), so it can represent a missing Block2.
        self.operation.wrapping_add(self.block2.map_or(7, Block::szx).into())
    }

    /// Returns whether the request starts or ends an observation. Returns `None` if it does neither, like every request
    /// for a further block or to a group.
    pub(crate) fn wish(&self, request: &Message<'_>) -> Option<Wish> {
        // A request for a later block repeats the options of the first one (RFC 7959 §2.6), and must not register again.
        let first = self.block2.is_none_or(|block| block.num() == 0);
        match request.observe().filter(|_| first && request.code == Code::GET && !self.to_group)? {
            0 => Some(Wish::Observe),
            1 => Some(Wish::Deregister),
            _ => None,
        }
    }

    /// Returns whether the client may be asked to repeat the request with an Echo option (RFC 9175 §2.3).
    pub(crate) fn may_be_challenged(&self) -> bool {
        self.repeatable && self.allowance.is_limited()
    }

    /// Returns whether the client does not want a response of this code (RFC 7967 §2.1).
    pub(super) fn suppresses(&self, code: Code) -> bool {
        // Bit 1 is for class 2, bit 3 for class 4, and bit 4 for class 5 (RFC 7967 §2.1).
        code.is_response() && self.no_response >> (code.class() - 1) & 1 == 1
    }
}

/// Returns whether a request has an option that affects its terms. A request without such an option is answered in
/// fewer steps.
pub(crate) fn has_terms(message: &Message<'_>) -> bool {
    message.options().any(|(number, _)| {
        matches!(
            number,
            option::OBSERVE
                | option::BLOCK1
                | option::BLOCK2
                | option::Q_BLOCK1
                | option::Q_BLOCK2
                | option::ECHO
                | option::NO_RESPONSE
        )
    })
}

/// Returns the length of a datagram with this token and `tail` bytes of options and payload.
pub(crate) fn length(token: Token, tail: usize) -> usize {
    4 + token.len() + tail
}

/// Returns a hash of the method and the options. Observe, the Block options and options that are no part of the cache key
/// (RFC 7252 §5.4.2) are left out.
fn operation(message: &Message<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    message.code.0.hash(&mut hasher);
    let part = |number| number == option::OBSERVE || block::OPTIONS.contains(&number);
    message
        .options()
        .filter(|&(number, _)| !part(number) && !is_no_cache_key(number))
        .for_each(|each| each.hash(&mut hasher));
    hasher.finish()
}
