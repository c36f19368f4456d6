//! A client's request, in the making and under way.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use coapace_control::Mechanism;
use coapace_proto::{Code, Config};

use crate::address::Remote;
use crate::asker::{Asker, Blocks, OnProgress, Path, szx};
use crate::client::Client;
use crate::datagram::hub::Hub;
use crate::secure;
use crate::target::Target;
use crate::uri::{BadUri, Scheme, Uri};
use crate::{Error, Group, Observation, Options, Profile, Response, Transferred};

/// A request of a client, which is set up and then awaited. If the future is dropped, the exchange is cancelled.
#[derive(Debug)]
#[must_use = "nothing is sent until it is awaited"]
pub struct Call {
    client: Client,
    method: Code,
    target: Result<Arc<Target>, BadUri>,
    options: Options,
    payload: Bytes,
    confirmable: bool,
    repeatable: bool,
    timeout: Option<Duration>,
    mechanism: Option<Mechanism>,
    config: Option<Config>,
    blocks: Blocks,
    progress: Option<OnProgress>,
}

impl Call {
    pub(crate) fn new(client: Client, method: Code, uri: &str) -> Self {
        let target = client.target(uri);
        let options = target.as_ref().map(|target| target.options.clone()).unwrap_or_default();
        let blocks = client.blocks();
        Self {
            client,
            method,
            target,
            options,
            payload: Bytes::new(),
            confirmable: true,
            repeatable: false,
            timeout: None,
            mechanism: None,
            config: None,
            blocks,
            progress: None,
        }
    }

    /// Sets the payload.
    pub fn payload(mut self, payload: impl Into<Bytes>) -> Self {
        self.payload = payload.into();
        self
    }

    /// Adds an option.
    pub fn option(mut self, number: u16, value: &[u8]) -> Self {
        self.options.push(number, value);
        self
    }

    /// Says what the payload is: 0 for text, 50 for JSON, 60 for CBOR (RFC 7252 §12.3).
    pub fn content_format(mut self, format: u16) -> Self {
        self.options = self.options.content_format(format);
        self
    }

    /// Says which Content-Format the response is to have (RFC 7252 §5.10.4).
    pub fn accept(mut self, format: u16) -> Self {
        self.options = self.options.accept(format);
        self
    }

    /// Sends it without asking for an acknowledgement: it is not retransmitted. It may still leave as confirmable
    /// ([`confirmable_every`](Config::confirmable_every)).
    pub fn non_confirmable(mut self) -> Self {
        self.confirmable = false;
        self
    }

    /// Says that it may be carried out more than once, though its method does not say so.
    pub fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }

    /// Sets how long to wait for the response, whatever the mechanism has in mind. Then it is [`Error::TimedOut`].
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the mechanism, in place of the client's. Requests of one mechanism learn from each other, and from no other.
    pub fn mechanism(mut self, mechanism: Mechanism) -> Self {
        self.mechanism = Some(mechanism);
        self
    }

    /// Sets the transmission parameters, in place of the client's.
    pub fn config(mut self, config: Config) -> Self {
        self.config = Some(config);
        self
    }

    /// Sets the largest block, in bytes, in place of the client's
    /// ([`ClientBuilder::block_size`](crate::ClientBuilder::block_size)).
    pub fn block_size(mut self, bytes: usize) -> Self {
        self.blocks.szx = szx(bytes);
        self
    }

    /// Sets the largest body of the response, in bytes, in place of the client's.
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.blocks.max_body = bytes;
        self
    }

    /// Calls `each` after every block of a body that does not fit into a message, and says how far the transfer has come.
    pub fn progress(mut self, each: impl Fn(Transferred) + Send + Sync + 'static) -> Self {
        self.progress = Some(OnProgress::new(each));
        self
    }

    /// Sends it with the Observe option, once: what comes is the response, and then a representation whenever the
    /// resource changes. The method is GET, or FETCH without a payload (RFC 7641 §2, RFC 8132 §2.4).
    ///
    /// # Errors
    /// Those of any request, and [`Error::NotObserved`] if the response is no success. A success without notifications to
    /// come is no error: [`Observation::first`] has it.
    pub async fn observe(self) -> Result<Observation, Error> {
        in_time(self.timeout, self.observe_unhurried()).await
    }

    /// Begins the observation without a timeout, which would take a runtime.
    pub(crate) async fn observe_unhurried(self) -> Result<Observation, Error> {
        let asker = self.asker().await?;
        Observation::begin(self.client, asker, self.options, self.blocks).await
    }

    /// Sends it to a group, such as 224.0.1.187 or `[ff02::fd%25eth0]` (RFC 7252 §12.8): once, never confirmable, over UDP
    /// alone. The result has the answers of its members. A timeout that was set has no effect.
    ///
    /// # Errors
    /// Those that a request meets before it is sent.
    pub async fn group(self) -> Result<Group, Error> {
        let uri = self.uri()?;
        if uri.scheme != Scheme::Coap {
            return Err(Error::Scheme(uri.scheme));
        }
        let (hub, to) = self.endpoint(uri).await?;
        let mut tail = Vec::new();
        self.options.write(&self.payload, &mut tail);
        let Self { client, method: code, repeatable, .. } = self;
        Group::begin(client, hub, to, |token| coapace_proto::Request {
            confirmable: false,
            code,
            token,
            tail: &tail,
            repeatable,
        })
    }

    /// Returns how long the response is waited for, if that was set.
    pub(crate) fn patience(&self) -> Option<Duration> {
        self.timeout
    }

    /// Returns its URI.
    pub(crate) fn uri(&self) -> Result<&Uri, Error> {
        Ok(&self.target.as_ref().map_err(|&bad| bad)?.uri)
    }

    /// Makes the request without a timeout, which would take a runtime.
    pub(crate) async fn unhurried(mut self) -> Result<Response, Error> {
        let asker = self.asker().await?;
        let (options, payload) = (std::mem::take(&mut self.options), std::mem::take(&mut self.payload));
        asker.transact(options, payload, self.blocks).await
    }

    /// Returns what sends its requests.
    async fn asker(&self) -> Result<Asker, Error> {
        let uri = self.uri()?;
        let path = match uri.scheme {
            Scheme::Coaps | Scheme::CoapsTcp | Scheme::CoapsWs if !secure::IS_BUILT => {
                return Err(Error::Scheme(uri.scheme));
            }
            Scheme::Coap | Scheme::Coaps => {
                let (hub, to) = self.endpoint(uri).await?;
                Path::Endpoint(hub, to)
            }
            _ => Path::Connection(self.client.0.connections.to(uri, self.client.resolve(uri).await?)?),
        };
        let Self { method: code, confirmable, repeatable, .. } = *self;
        Ok(Asker { path, code, confirmable, repeatable, token: None, progress: self.progress.clone() })
    }

    /// Returns the endpoint that sends its requests over UDP or DTLS, and the server's address there.
    async fn endpoint(&self, uri: &Uri) -> Result<(Arc<Hub>, Remote), Error> {
        let address = self.client.resolve(uri).await?;
        let usual = self.client.profile_of(uri);
        let profile = Profile {
            mechanism: self.mechanism.unwrap_or(usual.mechanism),
            config: self.config.unwrap_or(usual.config),
        };
        let hub = self.client.hub(&profile, uri.scheme == Scheme::Coaps, address)?;
        let to = hub.reach(address).await?;
        Ok((hub, to))
    }
}

/// Returns the result of `what`, or [`Error::TimedOut`] if it takes longer than `timeout`.
async fn in_time<T>(
    timeout: Option<Duration>,
    what: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    // Pinned here, it is kept once; each arm would have room for it otherwise.
    let what = std::pin::pin!(what);
    match timeout {
        Some(timeout) => tokio::time::timeout(timeout, what).await.unwrap_or(Err(Error::TimedOut)),
        None => what.await,
    }
}

impl IntoFuture for Call {
    type Output = Result<Response, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(in_time(self.timeout, self.unhurried()))
    }
}
