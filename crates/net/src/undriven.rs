//! The state shared between a blocked thread and the futures of its calls.

use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;

use coapace_control::Instant;

use crate::clock::Clock;
use crate::datagram::hub::Hub;
use crate::lock::lock;

/// The endpoint that the blocked thread shall drive, and the time at which the thread shall poll the future again.
#[derive(Debug, Default)]
pub(crate) struct Undriven(Mutex<NextTurn>);

#[derive(Debug, Default)]
pub(crate) struct NextTurn {
    /// The endpoint of the last request, if there was one.
    pub(crate) hub: Option<Arc<Hub>>,
    /// The time until which the polled future waits, by the clock of that endpoint. `None` if it waits only for
    /// datagrams.
    pub(crate) until: Option<Instant>,
}

impl Undriven {
    pub(crate) fn wait(&self) -> MutexGuard<'_, NextTurn> {
        lock(&self.0)
    }

    /// Records that a request uses this endpoint.
    pub(crate) fn drive(&self, hub: &Arc<Hub>) {
        self.wait().hub = Some(hub.clone());
    }

    /// Waits for `event`, but not longer than `until`. Returns whether it has happened.
    pub(crate) async fn before(
        &self,
        until: Instant,
        clock: &Clock,
        event: impl Future<Output = ()>,
    ) -> bool {
        self.wait().until = Some(until);
        // No waker is registered: the blocked thread polls after each of its turns.
        let expired = poll_fn(|_| if clock.now() >= until { Poll::Ready(()) } else { Poll::Pending });
        let is_there = tokio::select! {
            // An event that came by the deadline counts.
            biased;
            () = event => true,
            () = expired => false,
        };
        self.wait().until = None;
        is_there
    }
}
