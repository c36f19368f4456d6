//! The end of an endpoint or server, which takes no new requests from its beginning on.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Says whether the end has begun, and wakes the tasks that wait for that.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    has_begun: AtomicBool,
    beginning: Notify,
}

impl Closing {
    pub(crate) fn begin(&self) {
        self.has_begun.store(true, Ordering::Release);
        self.beginning.notify_waiters();
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Acquire)
    }

    /// Returns once the end has begun. The future may be dropped at any time.
    pub(crate) async fn begun(&self) {
        // Made before the check, so that no notification is missed.
        let beginning = self.beginning.notified();
        if !self.has_begun() {
            beginning.await;
        }
    }
}
