//! A client for programs without an async runtime. Its calls block until the response arrives.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use coapace_control::Instant;
use coapace_proto::Code;

use crate::datagram::driver::Driver;
use crate::datagram::hub::Hub;
use crate::datagram::io::{ANY_DATAGRAM, Single};
use crate::endpoints::ClientService;
use crate::holds;
use crate::undriven::Undriven;
use crate::uri::Scheme;
use crate::{Call, ClientBuilder, Destination, Error, Metrics, Profile, Response, Stats};

/// A client whose calls block. It speaks `coap` over UDP, makes one request after the other, and needs no runtime. A request
/// takes two system calls, to send and to receive.
///
/// Retransmissions, block-wise transfers, mechanisms and parameters are the same as with [`Client`](crate::Client). Nothing is
/// received between two calls. A response that the server repeats in the meantime is acknowledged by the next call.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use coapace_net::blocking::Client;
///
/// let mut client = Client::builder().mechanism("fasor".parse()?).build_blocking();
/// println!("{}", client.get("coap://[::1]/temperature")?.text());
/// client.put("coap://[::1]/store/a", "21.5")?;
///
/// let mut clock = client.observe("coap://[::1]/clock")?;
/// println!("{}", clock.first().text());
/// while let Some(now) = clock.next() {
///     println!("{}", now?.text());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Client {
    inner: crate::Client,
    endpoints: Vec<DrivenEndpoint>,
}

impl Default for Client {
    fn default() -> Self {
        Self::builder().build_blocking()
    }
}

impl ClientBuilder {
    /// Builds a client for programs without a runtime. Settings of DTLS and TLS have no effect.
    pub fn build_blocking(mut self) -> Client {
        self.0.undriven = Some(Undriven::default());
        Client { inner: self.build(), endpoints: Vec::new() }
    }
}

macro_rules! methods {
    ($($name:ident = $code:ident $(, $payload:ident)?;)+) => {
        $(
            #[doc = concat!("Is like [`Client::", stringify!($name), "`](crate::Client::", stringify!($name), ").")]
            ///
            /// # Errors
            /// The errors of [`request`](Self::request).
            pub fn $name(&mut self, uri: &str $(, $payload: impl Into<Bytes>)?) -> Result<Response, Error> {
                self.request(Code::$code, uri, |call| call$(.payload($payload))?)
            }
        )+
    };
}

impl Client {
    /// Returns a client with RFC 7252's congestion control, like [`Client::new`](crate::Client::new).
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a builder with the default settings, like [`Client::builder`](crate::Client::builder).
    /// [`ClientBuilder::build_blocking`] builds the client.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    methods! {
        get = GET;
        delete = DELETE;
        ping = EMPTY;
        post = POST, payload;
        put = PUT, payload;
        fetch = FETCH, payload;
        patch = PATCH, payload;
        ipatch = IPATCH, payload;
    }

    /// Makes a request of any method. `prepare` adds options and a payload.
    ///
    /// # Errors
    /// [`Error::Scheme`] if the scheme is not `coap`, and the errors of any request.
    pub fn request(
        &mut self,
        method: Code,
        uri: &str,
        prepare: impl FnOnce(Call) -> Call,
    ) -> Result<Response, Error> {
        let (call, give_up) = self.prepared(method, uri, prepare)?;
        loop {
            let result = call.explained(self.block_on(call.again(), give_up).unwrap_or_else(Err));
            match give_up.and_then(|deadline| holds::pause(&result, deadline)) {
                Some(wait) => std::thread::sleep(wait),
                None => return result,
            }
        }
    }

    /// Observes the resource at `uri`, like [`Client::observe`](crate::Client::observe). The client is borrowed until
    /// the observation ends.
    ///
    /// # Errors
    /// [`Error::NotObserved`] if the server answers with an error, and the errors of [`request`](Self::request).
    pub fn observe(&mut self, uri: &str) -> Result<Observation<'_>, Error> {
        self.observe_with(Code::GET, uri, |call| call)
    }

    /// Observes a resource with GET or FETCH. `prepare` adds options to the request.
    ///
    /// # Errors
    /// The errors of [`observe`](Self::observe).
    pub fn observe_with(
        &mut self,
        method: Code,
        uri: &str,
        prepare: impl FnOnce(Call) -> Call,
    ) -> Result<Observation<'_>, Error> {
        let (call, give_up) = self.prepared(method, uri, prepare)?;
        let begun = self.block_on(call.observe_unhurried(), give_up).unwrap_or_else(Err);
        let inner = call.explained(begun)?;
        Ok(Observation { client: self, inner })
    }

    /// Returns the counters, like [`Client::stats`](crate::Client::stats).
    pub fn stats(&self) -> Stats {
        self.inner.stats()
    }

    /// Returns the metrics, like [`Client::metrics`](crate::Client::metrics).
    pub fn metrics(&self) -> Metrics {
        self.inner.metrics()
    }

    /// Returns the destinations of all ended exchanges, like [`Client::destinations`](crate::Client::destinations).
    pub fn destinations(&self) -> Vec<(Profile, Destination)> {
        self.inner.destinations()
    }

    /// Returns a call that is ready to be awaited, and the time at which the call is given up if it has a timeout.
    fn prepared(
        &self,
        method: Code,
        uri: &str,
        prepare: impl FnOnce(Call) -> Call,
    ) -> Result<(Call, Option<std::time::Instant>), Error> {
        let call = prepare(self.inner.request(method, uri));
        // Sessions and connections need the tasks of a runtime.
        match call.uri()?.scheme {
            Scheme::Coap => {}
            other => return Err(Error::Scheme(other)),
        }
        let give_up = call.timeout.map(|timeout| std::time::Instant::now() + timeout);
        Ok((call, give_up))
    }

    /// Receives and sends for the endpoints until `future` is done, or until the time `give_up`.
    fn block_on<T>(
        &mut self,
        future: impl Future<Output = T>,
        give_up: Option<std::time::Instant>,
    ) -> Result<T, Error> {
        let mut future = pin!(future);
        // Nobody wakes the future: it is polled after each turn of its endpoint.
        let mut context = Context::from_waker(Waker::noop());
        let undriven = self.inner.0.undriven.as_ref().ok_or(Error::Closed)?;
        // An earlier call may have been given up while it waited for this moment.
        undriven.wait().until = None;
        loop {
            if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
                return Ok(result);
            }
            let (hub, until) = {
                let wait = undriven.wait();
                // The future says by this record which endpoint it waits for.
                (wait.hub.clone().ok_or(Error::Closed)?, wait.until)
            };
            let drives = |endpoint: &DrivenEndpoint| Arc::ptr_eq(&endpoint.driver.hub, &hub);
            // The endpoint is new: the request has opened it during this poll.
            if !self.endpoints.iter().any(drives) {
                self.endpoints.push(DrivenEndpoint::new(hub.clone())?);
            }
            let driving = self.endpoints.iter_mut().find(|endpoint| drives(endpoint));
            let endpoint = driving.ok_or(Error::Closed)?;
            endpoint.turn(give_up, until).map_err(Error::Io)?;
            // A response that this turn has brought came too late.
            if give_up.is_some_and(|at| at <= std::time::Instant::now()) {
                return Err(Error::TimedOut);
            }
        }
    }
}

/// The representations of a resource as it changes: an [`Observation`](crate::Observation) whose calls block.
///
/// Notifications that arrive between two calls wait in the socket's buffer, unacknowledged, until the next call. Dropping
/// the observation deregisters without waiting for the server's answer. [`end`](Self::end) waits for it.
#[derive(Debug)]
pub struct Observation<'a> {
    client: &'a mut Client,
    inner: crate::Observation,
}

impl Observation<'_> {
    /// Returns the response to the registration, like [`Observation::first`](crate::Observation::first).
    pub fn first(&self) -> &Response {
        self.inner.first()
    }

    /// Waits for the next representation, at most for `patience`. Returns [`Error::TimedOut`] if none comes; the observation
    /// continues.
    ///
    /// # Errors
    /// The errors of the [iterator](Self::next).
    pub fn next_within(&mut self, patience: Duration) -> Option<Result<Response, Error>> {
        let give_up = std::time::Instant::now() + patience;
        self.client.block_on(self.inner.next(), Some(give_up)).unwrap_or_else(|error| Some(Err(error)))
    }

    /// Deregisters, and waits for the server's answer, like [`Observation::end`](crate::Observation::end).
    ///
    /// # Errors
    /// The errors of a request.
    pub fn end(self) -> Result<(), Error> {
        self.client.block_on(self.inner.end(), None)?
    }
}

/// Iterates over the representations, like [`Observation::next`](crate::Observation::next).
impl Iterator for Observation<'_> {
    type Item = Result<Response, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.client.block_on(self.inner.next(), None).unwrap_or_else(|error| Some(Err(error)))
    }
}

/// An endpoint driven by the blocked thread.
#[derive(Debug)]
struct DrivenEndpoint {
    driver: Driver<Single, ClientService>,
    /// The longest time that the system waits for a datagram, as set on the socket.
    patience: Duration,
}

impl DrivenEndpoint {
    fn new(hub: Arc<Hub>) -> Result<Self, Error> {
        hub.socket.block().map_err(Error::Io)?;
        let driver = Driver::new(hub, Single::taking(ANY_DATAGRAM), ClientService);
        Ok(Self { driver, patience: Duration::MAX })
    }

    /// Waits until a datagram arrives, a deadline of the endpoint expires, or the time `give_up` or `until` has come.
    /// Then handles arrived datagrams and expired deadlines.
    fn turn(&mut self, give_up: Option<std::time::Instant>, until: Option<Instant>) -> io::Result<()> {
        let hub = &self.driver.hub;
        let now = hub.clock.now();
        let give_up = give_up.map(|at| hub.clock.moment(at));
        // Only servers have delayed responses and overdue blocks, so the endpoint has all other deadlines of a client.
        let deadline = [hub.lock().endpoint.poll_timeout(), give_up, until].into_iter().flatten().min();
        // Any long wait suffices without a deadline: after it, the socket is read again.
        let left = deadline.map_or(Duration::from_secs(60), |at| at.since(now).into());
        // A deadline has come. Receiving would block, so only timeouts are handled.
        if left.is_zero() {
            self.driver.send(now);
        } else {
            self.be_patient(left)?;
            self.driver.round();
        }
        Ok(())
    }

    /// Limits the time that the system waits for a datagram to about `left`. Each new limit costs a system call, and so
    /// does receiving again because the limit was too short. So the limit is changed only if it is longer than `left`,
    /// or far shorter.
    fn be_patient(&mut self, left: Duration) -> io::Result<()> {
        if left < self.patience || left / 16 > self.patience {
            self.driver.hub.socket.set_patience(left.max(Duration::from_millis(1)))?;
            self.patience = left;
        }
        Ok(())
    }
}
