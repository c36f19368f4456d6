//! The closing state of an endpoint or server, which then takes no new requests.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// The closing state: whether closing has begun, and the tasks that wait for this.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    has_begun: AtomicBool,
    beginning: Notify,
}

impl Closing {
    pub(crate) fn begin(&self) {
        // Set before the tasks wake, because they look at it.
        self.has_begun.store(true, Ordering::Release);
        self.beginning.notify_waiters();
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Acquire)
    }

    /// Returns once closing has begun. The future may be dropped at any time.
    pub(crate) async fn begun(&self) {
        // Made before the check, so that no notification is missed.
        let beginning = self.beginning.notified();
        if !self.has_begun() {
            beginning.await;
        }
    }
}
