//! Keeps the first blocks of a response whose transfer ends early.

use std::sync::{Arc, Mutex};

use coapace_proto::block::Partial;

use crate::lock::lock;

/// A place for the first blocks of a response, which are kept if the call fails, times out or is dropped. Another
/// [call](crate::Call::salvage) with the same `Salvage` continues after these blocks, if the server still has the same
/// version (ETag).
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
    /// Takes the kept blocks out. Returns `None` if there are none, for example because the server sends no ETag.
    pub fn take(&self) -> Option<Partial> {
        lock(&self.0).take()
    }

    pub(crate) fn put(&self, partial: Partial) {
        *lock(&self.0) = Some(partial);
    }
}

/// Lets a call continue after blocks that were stored elsewhere, such as in a file.
impl From<Partial> for Salvage {
    fn from(partial: Partial) -> Self {
        Self(Arc::new(Mutex::new(Some(partial))))
    }
}
