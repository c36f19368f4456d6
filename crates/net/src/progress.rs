//! The progress of transfers in blocks.

use std::fmt;
use std::sync::Arc;

use coapace_proto::block::Transferred;

/// A function that is called after every block.
#[derive(Clone)]
pub(crate) struct OnProgress(Arc<dyn Fn(Transferred) + Send + Sync>);

impl OnProgress {
    pub(crate) fn new(each: impl Fn(Transferred) + Send + Sync + 'static) -> Self {
        Self(Arc::new(each))
    }

    pub(crate) fn tell(&self, transferred: Transferred) {
        (self.0)(transferred);
    }
}

impl fmt::Debug for OnProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnProgress")
    }
}
