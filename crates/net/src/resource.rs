//! A resource of a server that can be observed.

use std::sync::{Arc, Mutex, Weak};

use tokio::sync::watch;

use crate::datagram::hub::Hub;
use crate::lock::lock;

/// A resource that tells when it has [`changed`](Self::changed). Clones are the same resource.
///
/// It is handed to [`Router::observe`](crate::Router::observe) together with the handler. The code that changes what the
/// handler says keeps a clone:
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
    /// The number of its changes.
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
    /// Returns a resource with confirmable notifications. A lost notification is sent again, in its newest state, under the
    /// mechanism of the server's profile.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a resource with non-confirmable notifications, but for every eighth. Their rate is that of RFC 7252 §4.7 for
    /// silent peers.
    pub fn non_confirmable() -> Self {
        Self::of(false)
    }

    fn of(confirmable: bool) -> Self {
        Self(Arc::new(Watched { version: watch::Sender::new(0), confirmable, hubs: Mutex::default() }))
    }

    /// Notes that it has changed. On every core whose clients observe it, the handler is called, once for each form of the request that they made
    /// (query, Accept, parameters of the path), and what it returns is sent to all who made it. Changes that come
    /// faster than handlers or the network take them become one. An error ends the observations, and so does a
    /// Content-Format other than before: observers are sent 4.06 (RFC 7641 §4.2).
    pub fn changed(&self) {
        self.0.version.send_modify(|version| *version += 1);
        let hubs = lock(&self.0.hubs);
        hubs.iter().filter_map(Weak::upgrade).for_each(|hub| hub.look_at_resources());
    }

    pub(crate) fn version(&self) -> u64 {
        *self.0.version.borrow()
    }

    /// Returns what changes are awaited with, from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.0.version.subscribe()
    }

    pub(crate) fn is_confirmable(&self) -> bool {
        self.0.confirmable
    }

    /// Has this hub told of changes too.
    pub(crate) fn attach(&self, hub: &Arc<Hub>) {
        let mut hubs = lock(&self.0.hubs);
        hubs.retain(|other| other.strong_count() > 0);
        if !hubs.iter().any(|other| other.as_ptr() == Arc::as_ptr(hub)) {
            hubs.push(Arc::downgrade(hub));
        }
    }
}
