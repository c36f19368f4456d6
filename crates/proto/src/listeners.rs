//! The table of requests to which responses go on coming: observations (RFC 7641 §3.2) and requests to groups
//! (RFC 7252 §8.2).

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::exchange::ExchangeId;
use crate::message::Token;
use crate::peer::Address;

/// The exchange that further responses belong to, by the address that they come from and their token. The
/// address is `None` for a request to a group: members answer from addresses of their own.
#[derive(Debug)]
pub(crate) struct Listeners<A> {
    table: HashMap<(Option<A>, Token), ExchangeId, FixedState>,
}

impl<A: Address> Listeners<A> {
    pub(crate) fn new(seed: u64) -> Self {
        Self { table: HashMap::with_hasher(FixedState::with_seed(seed)) }
    }

    /// Returns whether a request with this token may listen if the table holds `bound` requests at most.
    pub(crate) fn has_room(&self, from: Option<A>, token: Token, bound: u32) -> bool {
        self.table.len() < bound as usize || self.table.contains_key(&(from, token))
    }

    /// Listens for responses to `exchange`, in place of an earlier exchange with the same token.
    pub(crate) fn insert(&mut self, from: Option<A>, token: Token, exchange: ExchangeId) {
        self.table.insert((from, token), exchange);
    }

    /// Returns the exchange that a response from this address with this token belongs to, and whether it is
    /// an observation.
    pub(crate) fn find(&self, from: A, token: Token) -> Option<(ExchangeId, bool)> {
        let observation = self.table.get(&(Some(from), token)).map(|&exchange| (exchange, true));
        observation.or_else(|| self.table.get(&(None, token)).map(|&exchange| (exchange, false)))
    }

    /// Ends an observation.
    pub(crate) fn remove(&mut self, from: A, token: Token) {
        self.table.remove(&(Some(from), token));
    }

    /// Ends the observation or the request to a group of this `exchange`, if there is one.
    pub(crate) fn forget(&mut self, exchange: ExchangeId) {
        self.table.retain(|_, &mut other| other != exchange);
    }
}
