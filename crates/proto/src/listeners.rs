//! Requests to which responses go on coming: observations (RFC 7641 §3.2) and requests to groups (RFC 7252
//! §8.2).

use coapace_control::{Controller, Instant};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::endpoint::Endpoint;
use crate::exchange::{ExchangeId, Purpose};
use crate::message::Token;
use crate::peer::Address;
use crate::request::{Request, SendError};

/// The exchange that further responses belong to, by the address that they come from and their token. The
/// address is `None` for a request to a group: members answer from addresses of their own.
#[derive(Debug)]
pub(crate) struct Listeners<A> {
    table: HashMap<(Option<A>, Token), ExchangeId, FixedState>,
}

impl<A: Address> Listeners<A> {
    fn new(seed: u64) -> Self {
        Self { table: HashMap::with_hasher(FixedState::with_seed(seed)) }
    }

    /// Listens for responses to `exchange`, in place of an earlier exchange with the same token.
    fn insert(&mut self, from: Option<A>, token: Token, exchange: ExchangeId) {
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

    /// Ends the observation or the request to a group that `exchange` is, if it is one.
    pub(crate) fn forget(&mut self, exchange: ExchangeId) {
        self.table.retain(|_, &mut other| other != exchange);
    }
}

impl<C: Controller, A: Address> Endpoint<C, A> {
    /// Sends a request to `to` that more than one response may come to: from the address `from`, or from any.
    pub(crate) fn listen(
        &mut self,
        now: Instant,
        to: A,
        from: Option<A>,
        purpose: Purpose,
        request: Request<'_>,
    ) -> Result<ExchangeId, SendError> {
        let Request { confirmable, code, token, tail, .. } = request;
        let (seed, bound) = (self.peers.seed(), self.setup.config.max_listeners);
        let listeners = &mut self.rare.get_or_insert_default().listeners;
        let Listeners { table } = &**listeners.get_or_insert_with(|| Listeners::new(seed).into());
        if table.len() >= bound as usize && !table.contains_key(&(from, token)) {
            return Err(SendError::ListenersFull);
        }
        let id = self.begin(now, to, confirmable, purpose, code, token, tail)?;
        if let Some(listeners) = self.listeners() {
            listeners.insert(from, token, id);
        }
        Ok(id)
    }

    pub(crate) fn listeners(&mut self) -> Option<&mut Listeners<A>> {
        self.rare.as_mut()?.listeners.as_deref_mut()
    }

    /// Listens no longer for responses to an exchange.
    pub(crate) fn stop_listening(&mut self, exchange: ExchangeId) {
        if let Some(listeners) = self.listeners() {
            listeners.forget(exchange);
        }
    }
}
