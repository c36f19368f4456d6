//! Tokens of more than 8 bytes (RFC 8974), in which clients without memory store their state. This endpoint creates no
//! such tokens, but repeats them in its answers.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use crate::message::Token;
use crate::peer::Address;

/// The bytes of the tokens of more than 8 bytes, least recently used first. Outside this table, such a token is
/// represented by a digest of 8 bytes.
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
    /// Stores the token of a request. If `bound` tokens are already stored, the least recently used token that is not
    /// `in_use` is dropped. If all are in use, nothing is stored.
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
        // Each entry is looked at once: one that is in use moves to the back and stays.
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

    /// Returns the bytes that belong to the digest `token`; `None` if they were dropped.
    pub(crate) fn get(&self, to: A, token: Token) -> Option<&[u8]> {
        let known = self.entries.iter().find(|&&(address, other, _)| address == to && other == token);
        known.map(|(_, _, bytes)| &**bytes)
    }
}
