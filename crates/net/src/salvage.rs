//! The first blocks of a response whose transfer ends before it is whole.

use std::sync::{Arc, Mutex};

use coapace_proto::block::Partial;

use crate::lock::lock;

/// Keeps the first blocks of a response if its call fails, times out or is dropped. Another [call](crate::Call::salvage) with the
/// same `Salvage` continues after them, if the server still has the same version (ETag).
///
/// ```no_run
/// # async fn update(client: coapace_net::Client) -> Result<(), coapace_net::Error> {
/// let salvage = coapace_net::Salvage::default();
/// let image = loop {
///     match client.get("coap://[2001:db8::1]/firmware").salvage(&salvage).await {
///         Err(coapace_net::Error::GivenUp { .. }) => continue, // from the first block that is missing
///         result => break result?,
///     }
/// };
/// # let _ = image;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Salvage(Arc<Mutex<Option<Partial>>>);

impl Salvage {
    /// Takes the blocks. There are none if the server names no versions.
    pub fn take(&self) -> Option<Partial> {
        lock(&self.0).take()
    }

    pub(crate) fn put(&self, partial: Partial) {
        *lock(&self.0) = Some(partial);
    }
}

/// Continues after blocks that were kept elsewhere, such as in a file.
impl From<Partial> for Salvage {
    fn from(partial: Partial) -> Self {
        Self(Arc::new(Mutex::new(Some(partial))))
    }
}
