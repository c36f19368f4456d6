//! Tokens for which responses go on coming: observations (RFC 7641 §3.2) and requests to groups (RFC 7252 §8.2).

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::exchange::ExchangeId;
use crate::message::Token;
use crate::peer::Address;

/// From token and source, or any source, to the exchange that the request was.
#[derive(Debug)]
pub(crate) struct Listeners<A> {
    table: HashMap<(Option<A>, Token), ExchangeId, FixedState>,
}

impl<A: Address> Listeners<A> {
    pub(crate) fn new(seed: u64) -> Self {
        Self { table: HashMap::with_hasher(FixedState::with_seed(seed)) }
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Listens for `exchange`, in place of an earlier one with the same token.
    pub(crate) fn insert(&mut self, from: Option<A>, token: Token, exchange: ExchangeId) {
        self.table.insert((from, token), exchange);
    }

    /// The exchange that a message from there with this token belongs to, and whether it is an observation.
    pub(crate) fn find(&self, from: A, token: Token) -> Option<(ExchangeId, bool)> {
        let observation = self.table.get(&(Some(from), token)).map(|&exchange| (exchange, true));
        observation.or_else(|| self.table.get(&(None, token)).map(|&exchange| (exchange, false)))
    }

    pub(crate) fn contains(&self, from: Option<A>, token: Token) -> bool {
        self.table.contains_key(&(from, token))
    }

    pub(crate) fn remove(&mut self, from: A, token: Token) {
        self.table.remove(&(Some(from), token));
    }

    /// Whether this exchange was listened for; it is no longer.
    pub(crate) fn forget(&mut self, exchange: ExchangeId) {
        self.table.retain(|_, &mut other| other != exchange);
    }
}
