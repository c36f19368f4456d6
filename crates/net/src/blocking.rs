//! A client for programs without a runtime: a call returns when the response is there.

use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use coap_numbers::code;
use coapace_proto::Code;

use crate::carrier::Single;
use crate::client::Deaf;
use crate::driver::Driver;
use crate::hub::Hub;
use crate::uri::Scheme;
use crate::{Call, ClientBuilder, Destination, Error, Profile, Response, Stats};

/// A client that a thread waits for: `coap` over UDP, one request after the other, and no runtime. A request takes two
/// calls of the system, to send and to receive.
///
/// Retransmissions, Block-wise, mechanisms and parameters are those of [`Client`](crate::Client). Between two calls nobody
/// listens: a server that repeats a response meanwhile is acknowledged with the next call.
///
/// ```no_run
/// # fn main() -> Result<(), coapace_net::Error> {
/// let mut client = coapace_net::blocking::Client::new();
/// println!("{}", client.get("coap://[::1]/temperature")?.text());
/// let put = coapace_net::Code(coap_numbers::code::PUT);
/// client.request(put, "coap://[::1]/store/a", |call| call.payload("21.5").content_format(0))?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Client {
    inner: crate::Client,
    endpoints: Vec<Endpoint>,
}

/// The hubs of a client that nobody drives yet.
#[derive(Debug, Default)]
pub(crate) struct Undriven(Mutex<Vec<Arc<Hub>>>);

impl Undriven {
    pub(crate) fn push(&self, hub: Arc<Hub>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(hub);
    }

    pub(crate) fn take(&self) -> Vec<Arc<Hub>> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::from(ClientBuilder::default())
    }
}

/// A client that is set up as others are. What is said of DTLS and TLS means nothing to it.
impl From<ClientBuilder> for Client {
    fn from(builder: ClientBuilder) -> Self {
        Self { inner: builder.build_blocking(), endpoints: Vec::new() }
    }
}

impl Client {
    /// A client with RFC 7252's own congestion control.
    pub fn new() -> Self {
        Self::default()
    }

    /// A GET of the resource at `uri`.
    ///
    /// # Errors
    /// Those of [`request`](Self::request).
    pub fn get(&mut self, uri: &str) -> Result<Response, Error> {
        self.request(Code(code::GET), uri, |call| call)
    }

    /// A request of any method; `prepare` gives it what else there is to say.
    ///
    /// # Errors
    /// [`Error::Scheme`] of another scheme than `coap`, and those of any request.
    pub fn request(
        &mut self,
        method: Code,
        uri: &str,
        prepare: impl FnOnce(Call) -> Call,
    ) -> Result<Response, Error> {
        let call = prepare(self.inner.request(method, uri));
        if let Some(other) = call.scheme().filter(|&scheme| scheme != Scheme::Coap) {
            return Err(Error::Scheme(other));
        }
        let give_up = call.patience().map(|patience| std::time::Instant::now() + patience);
        let mut call = std::pin::pin!(call.unhurried());
        let mut context = Context::from_waker(Waker::noop());
        loop {
            if let Poll::Ready(result) = call.as_mut().poll(&mut context) {
                return result;
            }
            for hub in self.inner.undriven() {
                self.endpoints.push(Endpoint::new(hub)?);
            }
            // The one that has sent the request: no other has anything under way.
            let Some(endpoint) = self.endpoints.iter_mut().find(|endpoint| !endpoint.driver.hub.is_idle())
            else {
                return Err(Error::Closed);
            };
            endpoint.turn(give_up).map_err(Error::Io)?;
            if give_up.is_some_and(|at| at <= std::time::Instant::now()) {
                return Err(Error::TimedOut);
            }
        }
    }

    /// What was counted so far.
    pub fn stats(&self) -> Stats {
        self.inner.stats()
    }

    /// What is known of the destinations that exchanges have ended with, and under which profile.
    pub fn destinations(&self) -> Vec<(Profile, Destination)> {
        self.inner.destinations()
    }
}

/// An endpoint that whoever waits drives.
#[derive(Debug)]
struct Endpoint {
    driver: Driver<Single, Deaf>,
    /// How long the system waits for a datagram.
    patience: Duration,
}

impl Endpoint {
    fn new(hub: Arc<Hub>) -> Result<Self, Error> {
        hub.socket.block().map_err(Error::Io)?;
        Ok(Self { driver: Driver::new(hub, Single::default(), Deaf), patience: Duration::MAX })
    }

    /// Waits for a datagram, a deadline, or `give_up`, and handles what there is.
    fn turn(&mut self, give_up: Option<std::time::Instant>) -> io::Result<()> {
        let hub = &self.driver.hub;
        let now = hub.clock.now();
        let give_up = give_up.map(|at| hub.clock.moment(at));
        let deadline = [hub.lock().endpoint.poll_timeout(), give_up].into_iter().flatten().min();
        let left = deadline.map_or(Duration::from_secs(60), |at| at.since(now).into());
        if left.is_zero() {
            self.driver.send(now);
        } else {
            self.be_patient(left)?;
            self.driver.round();
        }
        Ok(())
    }

    /// Has the system wait no longer than this. What it waits too short costs a call for nothing, and so does to tell it:
    /// it is told when it would wait too long, or far too short.
    fn be_patient(&mut self, left: Duration) -> io::Result<()> {
        if left < self.patience || left / 16 > self.patience {
            self.driver.hub.socket.set_patience(left.max(Duration::from_millis(1)))?;
            self.patience = left;
        }
        Ok(())
    }
}
