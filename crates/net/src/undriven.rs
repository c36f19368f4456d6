//! The state that a blocked thread shares with the futures of its calls.

use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;

use coapace_control::Instant;

use crate::clock::Clock;
use crate::datagram::hub::Hub;
use crate::lock::lock;

/// Holds the endpoint that the blocked thread shall drive, and the moment at which it shall poll again.
#[derive(Debug, Default)]
pub(crate) struct Undriven(Mutex<NextTurn>);

#[derive(Debug, Default)]
pub(crate) struct NextTurn {
    /// The endpoint of the last request.
    pub(crate) hub: Option<Arc<Hub>>,
    /// The moment that the future waits for, by the clock of that endpoint.
    pub(crate) until: Option<Instant>,
}

impl Undriven {
    pub(crate) fn wait(&self) -> MutexGuard<'_, NextTurn> {
        lock(&self.0)
    }

    /// Notes that a request uses this endpoint.
    pub(crate) fn drive(&self, hub: &Arc<Hub>) {
        self.wait().hub = Some(hub.clone());
    }

    /// Returns whether `event` happens before `until`.
    pub(crate) async fn before(
        &self,
        until: Instant,
        clock: &Clock,
        event: impl Future<Output = ()>,
    ) -> bool {
        self.wait().until = Some(until);
        let expired = poll_fn(|_| if clock.now() >= until { Poll::Ready(()) } else { Poll::Pending });
        let is_there = tokio::select! {
            biased;
            () = event => true,
            () = expired => false,
        };
        self.wait().until = None;
        is_there
    }
}
