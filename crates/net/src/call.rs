//! A client's request, in the making and under way.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use coapace_control::Mechanism;
use coapace_proto::{Code, Config, Request};

use crate::carrier::MAX_DATAGRAM;
use crate::client::{Client, exchange, resolve};
use crate::uri::{BadUri, Scheme, Uri};
use crate::{Error, Options, Profile, Response};

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
}

impl Call {
    pub(crate) fn new(client: Client, method: Code, uri: &str) -> Self {
        let uri = uri.parse::<Uri>();
        let options = uri.as_ref().map(Uri::options).unwrap_or_default();
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

    async fn run(self) -> Result<Response, Error> {
        match self.timeout {
            Some(timeout) => {
                tokio::time::timeout(timeout, self.transact()).await.unwrap_or(Err(Error::TimedOut))
            }
            None => self.transact().await,
        }
    }

    async fn transact(self) -> Result<Response, Error> {
        let Self { client, method: code, uri, options, payload, confirmable, repeatable, .. } = self;
        let uri = uri?;
        if uri.scheme != Scheme::Coap {
            return Err(Error::Scheme(uri.scheme));
        }
        let usual = client.profile_of(&uri);
        let profile = Profile {
            mechanism: self.mechanism.unwrap_or(usual.mechanism),
            config: self.config.unwrap_or(usual.config),
        };
        let hub = client.hub(profile)?;
        let to = resolve(&uri).await?;
        if code == Code::EMPTY {
            return exchange(&hub, to, |state, now, to| state.endpoint.ping(now, to)).await;
        }
        let mut tail = Vec::new();
        options.write(&payload, &mut tail);
        if tail.len() > MAX_DATAGRAM {
            return Err(Error::TooLarge { bytes: tail.len() });
        }
        exchange(&hub, to, |state, now, to| {
            let token = state.token();
            state.endpoint.request(now, to, Request { confirmable, code, token, tail: &tail, repeatable })
        })
        .await
    }
}

impl IntoFuture for Call {
    type Output = Result<Response, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}
