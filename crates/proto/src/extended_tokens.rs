//! Tokens of more than 8 bytes (RFC 8974). Clients without memory carry their state in them. This endpoint
//! makes none, but gives them back.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use crate::message::Token;
use crate::peer::Address;

/// The bytes of tokens of more than 8 bytes, least recently used first. Elsewhere a digest takes the place of
/// such a token.
#[derive(Debug)]
pub(crate) struct ExtendedTokens<A> {
    entries: VecDeque<(A, Token, Box<[u8]>)>,
}

impl<A> Default for ExtendedTokens<A> {
    fn default() -> Self {
        Self { entries: VecDeque::new() }
    }
}

impl<A: Address> ExtendedTokens<A> {
    /// Keeps the token of a request. If there are `bound` already, the least recently used one that is not
    /// `in_use` leaves.
    pub(crate) fn keep(
        &mut self,
        bound: u32,
        from: A,
        token: Token,
        bytes: &[u8],
        in_use: impl Fn(A, Token) -> bool,
    ) {
        let known = self.entries.iter().position(|&(address, other, _)| address == from && other == token);
        let known = known.and_then(|place| self.entries.remove(place));
        for _ in 0..self.entries.len() {
            if self.entries.len() < bound as usize {
                break;
            }
            let Some(oldest) = self.entries.pop_front() else { break };
            if in_use(oldest.0, oldest.1) {
                self.entries.push_back(oldest);
            }
        }
        if self.entries.len() < bound as usize {
            self.entries.push_back(known.unwrap_or_else(|| (from, token, bytes.into())));
        }
    }

    /// Returns the bytes of a token.
    pub(crate) fn get(&self, to: A, token: Token) -> Option<&[u8]> {
        let known = self.entries.iter().find(|&&(address, other, _)| address == to && other == token);
        known.map(|(_, _, bytes)| &**bytes)
    }
}
