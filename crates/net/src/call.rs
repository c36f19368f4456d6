//! A client's request, in the making and under way.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use coapace_control::Mechanism;
use coapace_proto::{Code, Config};

use crate::asker::{Asker, Asks, Blocks, exchange, is_whole, szx};
use crate::client::{Client, resolve};
use crate::uri::{BadUri, Scheme, Uri};
use crate::{Error, Observation, Options, Profile, Response};

/// A request that a client is to make: set up, then awaited. If what awaits it is dropped, the exchange is cancelled.
#[derive(Debug)]
#[must_use = "nothing is sent until it is awaited"]
pub struct Call {
    client: Client,
    method: Code,
    uri: Result<Uri, BadUri>,
    options: Options,
    payload: Bytes,
    confirmable: bool,
    repeatable: bool,
    timeout: Option<Duration>,
    mechanism: Option<Mechanism>,
    config: Option<Config>,
    blocks: Blocks,
}

impl Call {
    pub(crate) fn new(client: Client, method: Code, uri: &str) -> Self {
        let uri = uri.parse::<Uri>();
        let options = uri.as_ref().map(Uri::options).unwrap_or_default();
        let blocks = client.blocks();
        Self {
            client,
            method,
            uri,
            options,
            payload: Bytes::new(),
            confirmable: true,
            repeatable: false,
            timeout: None,
            mechanism: None,
            config: None,
            blocks,
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

    /// How long to wait for the response, whatever the mechanism has in mind; then it is [`Error::TimedOut`].
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The mechanism, in place of the client's. Requests of one mechanism learn from each other, and from no other.
    pub fn mechanism(mut self, mechanism: Mechanism) -> Self {
        self.mechanism = Some(mechanism);
        self
    }

    /// The transmission parameters, in place of the client's.
    pub fn config(mut self, config: Config) -> Self {
        self.config = Some(config);
        self
    }

    /// The largest block, in bytes, in place of the client's
    /// ([`ClientBuilder::block_size`](crate::ClientBuilder::block_size)).
    pub fn block_size(mut self, bytes: usize) -> Self {
        self.blocks.szx = szx(bytes);
        self
    }

    /// The largest body of the response, in bytes, in place of the client's.
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.blocks.max_body = bytes;
        self
    }

    /// Sends it with the Observe option, once: what comes is the response, and then a representation whenever the
    /// resource changes. The method is GET, or FETCH without a payload (RFC 7641 §2, RFC 8132 §2.4).
    ///
    /// # Errors
    /// Those of any request. A response that is no success, or without notifications to come, is none:
    /// [`Observation::first`] has it.
    pub async fn observe(self) -> Result<Observation, Error> {
        let timeout = self.timeout;
        let begin = async {
            let (client, options, blocks) = (self.client.clone(), self.options.clone(), self.blocks);
            #[cfg(feature = "tcp")]
            if let Some(stream) = self.stream().await? {
                return Observation::over(client, stream, self.method, options, blocks).await;
            }
            let (asker, _) = self.asker().await?;
            Observation::begin(client, asker, options, blocks).await
        };
        in_time(timeout, begin).await
    }

    async fn run(self) -> Result<Response, Error> {
        in_time(self.timeout, self.transact()).await
    }

    async fn transact(mut self) -> Result<Response, Error> {
        let (options, payload) = (std::mem::take(&mut self.options), std::mem::take(&mut self.payload));
        let (code, blocks) = (self.method, self.blocks);
        #[cfg(feature = "tcp")]
        if let Some(stream) = self.stream().await? {
            return stream.transact(code, options, payload, blocks).await;
        }
        let (asker, _client) = self.asker().await?;
        if code == Code::EMPTY {
            return exchange(&asker.hub, asker.to, |state, now, to| state.endpoint.ping(now, to)).await;
        }
        let in_one = payload.len() <= blocks.size();
        let transfer = asker.transfer(options, payload.into(), blocks);
        let response = asker.ask(&transfer).await?;
        if in_one && is_whole(&response) {
            return Ok(response);
        }
        asker.finish(transfer, response).await
    }

    /// The connection it goes over, if its scheme is one of a reliable transport (RFC 8323 §8).
    #[cfg(feature = "tcp")]
    async fn stream(&self) -> Result<Option<crate::stream::Stream>, Error> {
        let Ok(uri) = &self.uri else { return Ok(None) };
        match uri.scheme {
            Scheme::Coap | Scheme::Coaps => Ok(None),
            #[cfg(not(feature = "tls"))]
            Scheme::CoapsTcp | Scheme::CoapsWs => Err(Error::Scheme(uri.scheme)),
            #[cfg(all(not(feature = "ws"), feature = "tls"))]
            Scheme::CoapWs | Scheme::CoapsWs => Err(Error::Scheme(uri.scheme)),
            #[cfg(not(any(feature = "ws", feature = "tls")))]
            Scheme::CoapWs => Err(Error::Scheme(uri.scheme)),
            _ => self.client.0.connections.to(uri, resolve(uri).await?).map(Some),
        }
    }

    /// Where it goes, and the client, which is to live until it is over.
    async fn asker(self) -> Result<(Asker, Client), Error> {
        let Self { client, method: code, uri, confirmable, repeatable, .. } = self;
        let uri = uri?;
        let secure = match uri.scheme {
            Scheme::Coap => false,
            Scheme::Coaps => true,
            other => return Err(Error::Scheme(other)),
        };
        let usual = client.profile_of(&uri);
        let profile = Profile {
            mechanism: self.mechanism.unwrap_or(usual.mechanism),
            config: self.config.unwrap_or(usual.config),
        };
        let hub = client.hub(profile, secure)?;
        let to = hub.reach(resolve(&uri).await?).await?;
        Ok((Asker { hub, to, code, confirmable, repeatable }, client))
    }
}

/// The result of what takes no longer than `timeout`, if there is one.
async fn in_time<T>(
    timeout: Option<Duration>,
    what: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    match timeout {
        Some(timeout) => tokio::time::timeout(timeout, what).await.unwrap_or(Err(Error::TimedOut)),
        None => what.await,
    }
}

impl IntoFuture for Call {
    type Output = Result<Response, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}
