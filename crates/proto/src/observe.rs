//! Observe (RFC 7641).
//!
//! * [`order`]: the order and the freshness of notifications, for an application on either side.
//! * [`table`]: the observers that are registered at this endpoint.
//! * [`server`]: their registration, and the notifications to them.
//! * Here: the observations of this endpoint at others.

mod order;
mod server;
mod table;

use coapace_control::{Controller, Instant};
pub use order::{Observation, Sequence};
pub use table::Observer;
pub(crate) use table::Observers;

use crate::endpoint::Endpoint;
use crate::exchange::{ExchangeId, Purpose};
use crate::peer::Address;
use crate::request::{Request, SendError};

impl<C: Controller, A: Address> Endpoint<C, A> {
    /// Sends a request with the Observe option 0, like [`request`](Self::request) does.
    ///
    /// If the first response has the option too, later ones are
    /// [`Event::Notification`](crate::Event::Notification) with the exchange that is returned here. That goes
    /// on until a response comes without the option, or until the exchange is [cancelled](Self::cancel).
    /// After that a notification is rejected (RFC 7641 §3.6). To register again, ask again with the same
    /// token.
    ///
    /// # Errors
    /// [`SendError`] names the bound that is reached.
    pub fn observe(&mut self, now: Instant, to: A, request: Request<'_>) -> Result<ExchangeId, SendError> {
        self.listen(now, to, Some(to), Purpose::Observation, request)
    }
}
