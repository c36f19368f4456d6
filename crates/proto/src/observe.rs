//! Observe (RFC 7641).
//!
//! * [`order`]: the sequence and the freshness of notifications, for an application on either side.
//! * [`server`]: the registration of observers at this endpoint, and the notifications to them.
//! * Here: the observations of this endpoint at others, and requests to groups.

mod order;
mod server;

use coapace_control::{Controller, Instant};
pub use order::{NotificationOrder, Sequence};

use crate::endpoint::Endpoint;
use crate::exchange::{ExchangeId, ExchangePurpose};
use crate::listeners::Listeners;
use crate::peer::Address;
use crate::request::{Request, SendError};

impl<C: Controller, A: Address> Endpoint<C, A> {
    /// Sends a request with the Observe option 0, like [`request`](Self::request).
    ///
    /// If the first response also has the option, each later one is returned as an
    /// [`Event::Notification`](crate::Event::Notification) with the exchange that this call returns. That continues
    /// until a response comes without the option, or until the exchange is [cancelled](Self::cancel). After that a
    /// notification is rejected (RFC 7641 §3.6). To register again, send the request again with the same token.
    ///
    /// # Errors
    /// [`SendError`] names the limit that is reached.
    pub fn observe(&mut self, now: Instant, to: A, request: Request<'_>) -> Result<ExchangeId, SendError> {
        self.listen(now, to, Some(to), ExchangePurpose::Observation, request)
    }

    /// Sends a request that may get more than one response: from the address `from`, or from any address if that is
    /// `None`.
    pub(crate) fn listen(
        &mut self,
        now: Instant,
        to: A,
        from: Option<A>,
        purpose: ExchangePurpose,
        request: Request<'_>,
    ) -> Result<ExchangeId, SendError> {
        let Request { confirmable, code, token, tail, .. } = request;
        let (seed, bound) = (self.peers.seed(), self.setup.config.max_listeners);
        let listeners = &mut self.rare.get_or_insert_default().listeners;
        let listeners = listeners.get_or_insert_with(|| Listeners::new(seed).into());
        if !listeners.has_room(from, token, bound) {
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

    /// Stops accepting responses to an exchange.
    pub(crate) fn stop_listening(&mut self, exchange: ExchangeId) {
        if let Some(listeners) = self.listeners() {
            listeners.forget(exchange);
        }
    }
}
