//! Servers.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use coapace_net as net;
use coapace_net::uri::Scheme;
use coapace_net::{
    BadZone, Code, Dtls, Error, Profile, Rejection, Resource, Router, ServerConfig, ServerHandle,
};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use tokio::sync::oneshot;

use super::client::mechanism;
use super::mailbox::{Mailbox, Post};
use super::request::RequestOfPython;
use super::response::Response;
use super::value::TextOrBytes;
use super::work::{Call, Desk};

/// The time that handlers, separate responses and last notifications have to finish when a server is closed.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// A server that is bound to an address, with callbacks in place of an asyncio interface.
#[pyclass(frozen, module = "coapace._native")]
pub(crate) struct NativeServer {
    desk: Desk,
    scheme: Scheme,
    #[pyo3(get)]
    address: String,
    max_pending: u32,
    /// The bound server; empty once it serves.
    bound: Mutex<Option<net::Server>>,
    /// The handle that shuts the server down; empty afterwards, so that the sockets are closed when the threads have
    /// ended.
    handle: Mutex<Option<ServerHandle>>,
    /// The resources that can be observed, by path.
    observable: Mutex<BTreeMap<String, Resource>>,
}

/// A handler: path, method, the function, and whether the resource can be observed.
type RouteArguments = (String, String, Py<PyAny>, bool);

#[pymethods]
impl NativeServer {
    /// Binds to an address.
    #[new]
    fn new(
        py: Python<'_>,
        address: &str,
        cc: &str,
        psk: Option<HashMap<String, TextOrBytes>>,
        max_pending: u32,
    ) -> PyResult<Self> {
        let (scheme, place) = split(address, psk.is_some())?;
        let config = ServerConfig {
            profile: Profile { mechanism: mechanism(cc)?, ..ServerConfig::default().profile },
            // Handlers run in one thread: the thread of the event loop.
            cores: 1,
            max_pending,
            shutdown_timeout: SHUTDOWN_TIMEOUT,
            ..ServerConfig::default()
        };
        // The resolver may take seconds, so other threads of Python run meanwhile.
        let places = py.detach(|| net::addresses(place)).map_err(|error| unbound(&error, address, place))?;
        let places = &*places;
        let bound = py.detach(|| match (scheme, psk) {
            (Scheme::Coap, None) => net::Server::bind_with(places, config),
            (Scheme::CoapTcp, None) => net::Server::bind_tcp(places, config),
            (Scheme::CoapWs, None) => net::Server::bind_ws(places, config),
            (Scheme::Coaps, Some(psk)) => {
                let keys: HashMap<_, _> =
                    psk.into_iter().map(|(name, key)| (name.into_bytes(), key.into_bytes())).collect();
                net::Server::bind_dtls(
                    places,
                    config,
                    // The server's thread calls this, so it has plain bytes and no objects of Python.
                    &Dtls::server(move |identity| keys.get(identity).cloned()),
                )
            }
            // Keys without DTLS, or a scheme that needs certificates.
            _ => Err(io::ErrorKind::Unsupported.into()),
        });
        let server = bound.map_err(|error| unbound(&error, address, place))?;
        Ok(Self {
            desk: Desk::new()?,
            scheme,
            address: server.local_addr()?.to_string(),
            max_pending,
            handle: Mutex::new(Some(server.handle())),
            bound: Mutex::new(Some(server)),
            observable: Mutex::default(),
        })
    }

    /// The mailbox that the event loop watches for requests.
    #[getter]
    fn mailbox(&self) -> Mailbox {
        Mailbox(self.desk.post.clone())
    }

    /// The URI of the root.
    #[getter]
    fn uri(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// Begins to serve. `dispatch(handler, request, reply)` is called for each request, and `future` is done when the
    /// server ends.
    fn serve(
        &self,
        future: Py<PyAny>,
        dispatch: Py<PyAny>,
        routes: Vec<RouteArguments>,
        attributes: Vec<(String, Vec<(String, String)>)>,
    ) -> PyResult<Call> {
        // A server serves once, because it gives its sockets away.
        let server = lock(&self.bound).take();
        let server = server.ok_or_else(|| PyRuntimeError::new_err("the server is already running"))?;
        // Cloning a `Py` needs the interpreter, and a request must not wait for it. So an `Arc` is cloned.
        let (post, dispatch) = (self.desk.post.clone(), Arc::new(dispatch));
        let places = RequestPlaces { taken: Arc::default(), max: self.max_pending };
        let mut observable = lock(&self.observable);
        let mut handlers = Router::new();
        for (path, method, handler, is_observable) in routes {
            let handling = Arc::new(Handling {
                post: post.clone(),
                places: places.clone(),
                dispatch: dispatch.clone(),
                handler,
            });
            let handle = move |request| handling.clone().handle(request);
            // The resource is kept by its path, so that `notify` finds it.
            if is_observable {
                let resource = Resource::new();
                handlers = handlers.observe(&path, &resource, handle);
                observable.insert(path, resource);
            } else {
                let method = method.parse::<Code>().map_err(|bad| PyValueError::new_err(bad.to_string()))?;
                handlers = handlers.route(method, &path, handle);
            }
        }
        for (path, attributes) in &attributes {
            let attributes: Vec<(&str, &str)> =
                attributes.iter().map(|(name, value)| (&**name, &**value)).collect();
            handlers = handlers.describe(path, &attributes);
        }
        self.desk.start(future, self.uri(), async move { server.serve(handlers).await.map_err(Error::Io) })
    }

    /// Notifies the observers of a resource. Returns whether the resource can be observed.
    fn notify(&self, py: Python<'_>, path: &str) -> bool {
        let observable = lock(&self.observable);
        let resource = observable.get(path).cloned();
        // Notifying takes a while, and must not keep the lock.
        drop(observable);
        py.detach(|| resource.map(|resource| resource.changed())).is_some()
    }

    /// Shuts the server down: new requests are answered 5.03, and requests under way get two seconds.
    fn shutdown(&self, py: Python<'_>) {
        py.detach(|| {
            // A server that never served closes its sockets here.
            drop(lock(&self.bound).take());
            if let Some(handle) = lock(&self.handle).take() {
                handle.shutdown();
            }
        });
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the scheme and the rest of an address. The scheme of an address without one is `coap`, or `coaps` if there
/// are keys.
fn split(address: &str, has_keys: bool) -> PyResult<(Scheme, &str)> {
    let usual = if has_keys { Scheme::Coaps } else { Scheme::Coap };
    let Some((name, place)) = address.split_once("://") else { return Ok((usual, address)) };
    let schemes = [Scheme::Coap, Scheme::Coaps, Scheme::CoapTcp, Scheme::CoapWs];
    let scheme = schemes.into_iter().find(|scheme| scheme.name() == name).ok_or_else(|| {
        PyValueError::new_err(format!("{address}: expected coap, coaps, coap+tcp or coap+ws as the scheme"))
    })?;
    match (scheme, has_keys) {
        (Scheme::Coaps, false) => {
            Err(PyValueError::new_err(format!("{address}: DTLS needs a key; give psk={{IDENTITY: KEY}}")))
        }
        (Scheme::Coap | Scheme::CoapTcp | Scheme::CoapWs, true) => {
            Err(PyValueError::new_err(format!("{address}: psk needs the scheme coaps")))
        }
        // Many write the URI of the root, with a slash at its end.
        _ => Ok((scheme, place.trim_end_matches('/'))),
    }
}

/// Returns the exception that says why the server is not bound.
fn unbound(error: &io::Error, address: &str, place: &str) -> PyErr {
    if let Some(inner) = error.get_ref()
        && inner.is::<BadZone>()
    {
        return PyValueError::new_err(format!("{address}: {error}"));
    }
    let text = match error.kind() {
        io::ErrorKind::InvalidInput => {
            return PyValueError::new_err(format!(
                "{address:?} is not an address; write it like 127.0.0.1:5683 or coap+tcp://[::]:5683"
            ));
        }
        io::ErrorKind::AddrInUse => format!("{place} is in use; name another port (0 takes any free one)"),
        io::ErrorKind::AddrNotAvailable => {
            format!("{place} is not an address of this host; [::]:PORT is all of them")
        }
        io::ErrorKind::PermissionDenied => {
            format!("{place}: this user may not bind to it; name a port above 1023")
        }
        _ => format!("cannot bind to {place}: {error}"),
    };
    // With two arguments Python picks the fitting class, such as `PermissionError`.
    PyOSError::new_err((error.raw_os_error(), text))
}

/// Slots for the requests that handlers have not answered, including requests that still wait for the event loop.
#[derive(Clone)]
struct RequestPlaces {
    taken: Arc<AtomicU32>,
    max: u32,
}

/// A slot that a request occupies. Dropping it frees the slot.
struct RequestPlace(Arc<AtomicU32>);

impl RequestPlaces {
    fn take(&self) -> Option<RequestPlace> {
        let place = RequestPlace(self.taken.clone());
        // If all places are taken, dropping this one gives it back.
        // Relaxed suffices: the count guards no other memory.
        (self.taken.fetch_add(1, Ordering::Relaxed) < self.max).then_some(place)
    }
}

impl Drop for RequestPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A handler, and the mailbox through which it is called.
struct Handling {
    post: Post,
    places: RequestPlaces,
    dispatch: Arc<Py<PyAny>>,
    handler: Py<PyAny>,
}

impl Handling {
    /// Passes a request to the event loop, and waits for the reply.
    async fn handle(self: Arc<Self>, request: net::Request) -> Result<net::Response, Rejection> {
        let Some(place) = self.places.take() else { return Err(Rejection::unavailable(1)) };
        let (sender, answer) = oneshot::channel();
        let this = self.clone();
        self.post.post(Box::new(move |py| {
            // The client may have closed its connection meanwhile.
            // A handler would work for nobody.
            if sender.is_closed() {
                return Ok(());
            }
            let reply = Reply(Mutex::new(Some((sender, place))));
            this.dispatch.call1(py, (&this.handler, RequestOfPython(request), reply)).map(drop)
        }));
        // If the reply is dropped, the handler was cancelled.
        answer.await.map_err(|_| Code::INTERNAL_SERVER_ERROR.into())
    }
}

/// The reply to one request. If it is dropped before it is sent, the client gets 5.00.
#[pyclass(frozen, module = "coapace._native")]
pub(crate) struct Reply(Mutex<Option<(oneshot::Sender<net::Response>, RequestPlace)>>);

#[pymethods]
impl Reply {
    /// Sends the response. A second one has no effect.
    fn send(&self, response: &Response) {
        let reply = lock(&self.0).take();
        if let Some((tell, _place)) = reply {
            // The client may have lost its connection.
            let _ = tell.send(response.0.clone());
        }
    }
}
