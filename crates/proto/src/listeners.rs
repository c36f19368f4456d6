//! The table of requests that may get further responses: observations (RFC 7641 §3.2) and requests to groups (RFC 7252 §8.2).

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::exchange::ExchangeId;
use crate::message::Token;
use crate::peer::Address;

/// The exchanges that accept further responses, by the address and the token of such a response. The address is `None`
/// for a request to a group, because members answer from their own addresses.
#[derive(Debug)]
pub(crate) struct Listeners<A> {
    table: HashMap<(Option<A>, Token), ExchangeId, FixedState>,
}

impl<A: Address> Listeners<A> {
    pub(crate) fn new(seed: u64) -> Self {
        Self { table: HashMap::with_hasher(FixedState::with_seed(seed)) }
    }

    /// Returns whether a request with this token fits in the table, which holds at most `bound` requests.
    pub(crate) fn has_room(&self, from: Option<A>, token: Token, bound: u32) -> bool {
        self.table.len() < bound as usize || self.table.contains_key(&(from, token))
    }

    /// Adds an `exchange`, and replaces an earlier one with the same address and token.
    pub(crate) fn insert(&mut self, from: Option<A>, token: Token, exchange: ExchangeId) {
        self.table.insert((from, token), exchange);
    }

    /// Returns the exchange to which a response with this address and token belongs, and whether it is an observation.
    /// Returns `None` if the response is unknown.
    pub(crate) fn find(&self, from: A, token: Token) -> Option<(ExchangeId, bool)> {
        // An entry for a group matches every address, so it comes last.
        let observation = self.table.get(&(Some(from), token)).map(|&exchange| (exchange, true));
        observation.or_else(|| self.table.get(&(None, token)).map(|&exchange| (exchange, false)))
    }

    /// Ends the observation at the address `from` with this token, if there is one.
    pub(crate) fn remove(&mut self, from: A, token: Token) {
        self.table.remove(&(Some(from), token));
    }

    /// Ends the observation or the request to a group of this `exchange`, if there is one.
    pub(crate) fn forget(&mut self, exchange: ExchangeId) {
        self.table.retain(|_, &mut other| other != exchange);
    }
}
