//! A resource of a server that can be observed.

use std::sync::{Arc, Mutex, Weak};

use tokio::sync::watch;

use crate::datagram::hub::Hub;
use crate::lock::lock;

/// A resource that can be observed. Clones are the same resource.
///
/// [`Router::observe`](crate::Router::observe) takes it together with the handler. The code that changes the representation
/// keeps a clone, and calls [`changed`](Self::changed):
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use coapace_net::{Rejection, Resource, Response, Router};
///
/// let state = Arc::new(Mutex::new(20));
/// let temperature = Resource::new();
/// let read = state.clone();
/// let router = Router::new().observe("/temperature", &temperature, move |_| {
///     let text = read.lock().unwrap().to_string();
///     async move { Ok::<_, Rejection>(Response::content(text)) }
/// });
/// // Later, from anywhere:
/// *state.lock().unwrap() = 21;
/// temperature.changed();
/// ```
#[derive(Clone, Debug)]
pub struct Resource(Arc<Watched>);

#[derive(Debug)]
struct Watched {
    /// The number of changes of the resource.
    version: watch::Sender<u64>,
    confirmable: bool,
    hubs: Mutex<Vec<Weak<Hub>>>,
}

impl Default for Resource {
    fn default() -> Self {
        Self::of(true)
    }
}

impl Resource {
    /// Returns a resource with confirmable notifications. The mechanism of the server's profile controls their
    /// retransmission. A retransmission has the newest representation.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a resource with non-confirmable notifications. Every eighth is still confirmable. Their rate is PROBING_RATE
    /// (RFC 7252 §4.7).
    pub fn non_confirmable() -> Self {
        Self::of(false)
    }

    fn of(confirmable: bool) -> Self {
        Self(Arc::new(Watched { version: watch::Sender::new(0), confirmable, hubs: Mutex::default() }))
    }

    /// Notifies the observers. Over datagrams, each thread calls the handler once for all observers whose requests are equal
    /// (query, Accept, parameters of the path), and sends them all the result. Over connections, the handler is called for each
    /// observer. Changes that come faster than handlers or the network are merged. An error ends the observations, and so does
    /// a change of Content-Format, for which observers are sent 4.06 (RFC 7641 §4.2).
    pub fn changed(&self) {
        // Changed before the hubs are woken, because their drivers compare versions.
        self.0.version.send_modify(|version| *version += 1);
        let hubs = lock(&self.0.hubs);
        hubs.iter().filter_map(Weak::upgrade).for_each(|hub| hub.look_at_resources());
    }

    pub(crate) fn version(&self) -> u64 {
        *self.0.version.borrow()
    }

    /// Returns a receiver of the changes from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.0.version.subscribe()
    }

    pub(crate) fn is_confirmable(&self) -> bool {
        self.0.confirmable
    }

    /// Makes changes wake the driver of this hub.
    pub(crate) fn attach(&self, hub: &Arc<Hub>) {
        let mut hubs = lock(&self.0.hubs);
        // Servers that were dropped leave their entries behind.
        hubs.retain(|other| other.strong_count() > 0);
        if !hubs.iter().any(|other| other.as_ptr() == Arc::as_ptr(hub)) {
            hubs.push(Arc::downgrade(hub));
        }
    }
}
