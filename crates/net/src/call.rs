//! A client's request: how it is set up, and how it is sent.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use coapace_control::Mechanism;
use coapace_proto::{Code, Config};

use crate::address::Remote;
use crate::asker::{Asker, Blocks, OnProgress, RequestPath, szx};
use crate::candidates::Candidates;
use crate::datagram::hub::Hub;
use crate::endpoints::Endpoints;
use crate::group::GroupRequest;
use crate::holds;
use crate::secure;
use crate::target::Target;
use crate::turns::Turns;
use crate::uri::{BadUri, Host, Scheme, Uri};
use crate::{Error, Group, Observation, Options, Profile, Refused, Response, Salvage, Transferred};

/// A request of a client, which is configured and then awaited. Dropping the future cancels the exchange.
#[derive(Clone, Debug)]
#[must_use = "nothing is sent until it is awaited"]
pub struct Call {
    pub(crate) client: Arc<Endpoints>,
    method: Code,
    target: Result<Arc<Target>, BadUri>,
    pub(crate) options: Options,
    payload: Bytes,
    confirmable: bool,
    repeatable: bool,
    pub(crate) timeout: Option<Duration>,
    leisure: Duration,
    profile: Profile,
    pub(crate) blocks: Blocks,
    progress: Option<OnProgress>,
    salvage: Option<Salvage>,
    /// Whether an observation ends when the server is unavailable. Otherwise the client registers again later.
    pub(crate) once: bool,
    /// The endpoint and the addresses that requests were sent to, if there is a timeout.
    asked: OnceLock<(Arc<Hub>, Vec<Remote>)>,
}

impl Call {
    pub(crate) fn new(client: Arc<Endpoints>, method: Code, uri: &str) -> Self {
        let target = client.last.target(uri, client.proxy.as_ref());
        let options = target.as_ref().map(|target| target.options.clone()).unwrap_or_default();
        let profile = target.as_ref().map_or(client.profile, |target| *client.profile_of(&target.uri));
        let blocks = client.blocks;
        Self {
            client,
            method,
            target,
            options,
            payload: Bytes::new(),
            confirmable: true,
            repeatable: false,
            timeout: None,
            leisure: coapace_proto::group::DEFAULT_LEISURE.into(),
            profile,
            blocks,
            progress: None,
            salvage: None,
            once: false,
            asked: OnceLock::new(),
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

    /// Sets the Content-Format of the payload: 0 for text, 50 for JSON, 60 for CBOR (RFC 7252 §12.3).
    pub fn content_format(mut self, format: u16) -> Self {
        self.options = self.options.content_format(format);
        self
    }

    /// Sets the Content-Format that the response shall have (RFC 7252 §5.10.4).
    pub fn accept(mut self, format: u16) -> Self {
        self.options = self.options.accept(format);
        self
    }

    /// Makes the request non-confirmable: it is not retransmitted. It may still be sent as confirmable
    /// ([`confirmable_every`](Config::confirmable_every)).
    pub fn non_confirmable(mut self) -> Self {
        self.confirmable = false;
        self
    }

    /// Declares that the server may execute the request more than once, although its method is not idempotent.
    pub fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }

    /// Sends the blocks of a payload one after the other. Without this call, a payload of more than four blocks is sent several
    /// blocks at once (Q-Block1, RFC 9177) if the server supports that. To find out, the client first requests 16 bytes of an
    /// unknown server's links.
    pub fn no_q_block(mut self) -> Self {
        self.blocks.at_once = false;
        self
    }

    /// Sets the time to wait for the response, independent of the mechanism. After this time the result is
    /// [`Error::TimedOut`]. If the server answers 4.29 (RFC 8516) and its pause ends within this time, the request is
    /// repeated after the pause.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the mechanism of this request, instead of the client's. Requests with another mechanism have separate
    /// estimates.
    pub fn mechanism(mut self, mechanism: Mechanism) -> Self {
        self.profile.mechanism = mechanism;
        self
    }

    /// Sets the mechanism for the blocks of a body, instead of the client's
    /// ([`ClientBuilder::bulk`](crate::ClientBuilder::bulk)).
    pub fn bulk(mut self, mechanism: Option<Mechanism>) -> Self {
        self.profile.bulk = mechanism;
        self
    }

    /// Sets the transmission parameters, instead of the client's.
    pub fn config(mut self, config: Config) -> Self {
        self.profile.config = config;
        self
    }

    /// Sets the largest block, in bytes, instead of the client's
    /// ([`ClientBuilder::block_size`](crate::ClientBuilder::block_size)).
    pub fn block_size(mut self, bytes: usize) -> Self {
        self.blocks.szx = szx(bytes);
        self
    }

    /// Sets the largest body of the response, in bytes, instead of the client's.
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.blocks.max_body = bytes;
        self
    }

    /// Calls `each` after every block of a body that does not fit into a message, with the progress of the transfer.
    pub fn progress(mut self, each: impl Fn(Transferred) + Send + Sync + 'static) -> Self {
        self.progress = Some(OnProgress(Arc::new(each)));
        self
    }

    /// Keeps the first blocks of a response in `salvage`, if the call fails, times out or is dropped. If `salvage` already has
    /// blocks, the call continues with the first missing block, as long as the server still has the same version (ETag).
    pub fn salvage(mut self, salvage: &Salvage) -> Self {
        self.salvage = Some(salvage.clone());
        self
    }

    /// Ends an observation when the server answers 5.03 or 4.29. Without this call, the client registers again, see
    /// [`Observation`].
    pub fn once(mut self) -> Self {
        self.once = true;
        self
    }

    /// Sends the request with the Observe option. The result has the response, and later a representation whenever the resource
    /// changes. The method is GET, or FETCH without a payload (RFC 7641 §2, RFC 8132 §2.4).
    ///
    /// # Errors
    /// The errors of any request, and [`Error::NotObserved`] if the response is not a success. A success from a resource that
    /// cannot be observed is not an error: [`Observation::first`] returns the response.
    pub async fn observe(self) -> Result<Observation, Error> {
        self.explained(in_time(self.timeout, self.observe_unhurried()).await)
    }

    /// Starts the observation without a timeout, which would need a runtime.
    pub(crate) async fn observe_unhurried(&self) -> Result<Observation, Error> {
        let asker = self.asker().await?;
        let observation = Observation::begin(self.clone(), asker).await;
        match &observation {
            Err(Error::NotObserved(response)) => self.note(response)?,
            Err(_) => self.forget_address(),
            Ok(_) => {}
        }
        observation
    }

    /// Sets the time over which the members of a [group](Self::group) spread their answers. The default is 5 s
    /// (DEFAULT_LEISURE, RFC 7252 §8.2). [`least_leisure`](coapace_proto::group::least_leisure) computes this time for
    /// a large group or a slow network.
    pub fn leisure(mut self, leisure: Duration) -> Self {
        self.leisure = leisure;
        self
    }

    /// Sends the request to a group, such as 224.0.1.187 or `[ff02::fd%25eth0]` (RFC 7252 §12.8): once, non-confirmable, and
    /// over UDP, as soon as earlier requests to this group allow. The result has the answers of the members.
    ///
    /// # Errors
    /// The errors that a request may have before it is sent, and [`Error::Unreachable`] if the system refuses to send it.
    pub async fn group(self) -> Result<Group, Error> {
        let uri = self.uri()?;
        // A group is reached over UDP without DTLS only (RFC 7252 §8).
        if uri.scheme != Scheme::Coap {
            return Err(Error::Scheme(uri.scheme));
        }
        // No answer comes from the address of a group itself, so nothing shows which address works: take the first.
        let group = self.client.resolve(uri).await?.first;
        let hub = self.client.hub(&self.profile, false, group)?;
        let path = RequestPath::Endpoint(hub.clone(), hub.socket.remote(group));
        let Self {
            client,
            method: code,
            repeatable,
            options,
            payload,
            blocks,
            leisure,
            timeout,
            progress,
            ..
        } = self;
        let asker = Asker {
            path,
            turns: None,
            code,
            // A request to a group is never confirmable (RFC 7252 §8.1).
            confirmable: false,
            repeatable,
            token: None,
            progress,
            salvage: None,
        };
        let payload = payload.into();
        Group::begin(client, GroupRequest { asker, options, payload, blocks, leisure, timeout }).await
    }

    /// Returns the URI of the request.
    pub(crate) fn uri(&self) -> Result<&Uri, Error> {
        Ok(&self.target.as_ref().map_err(|&bad| bad)?.uri)
    }

    /// Makes the request without a timeout, which would need a runtime.
    async fn unhurried(mut self) -> Result<Response, Error> {
        // The call is made once, so its options and payload need no copy.
        let (options, payload) = (std::mem::take(&mut self.options), std::mem::take(&mut self.payload));
        self.attempt(options, payload).await
    }

    /// Makes the request, and repeats it if the server asks for that within the timeout (RFC 8516).
    async fn patient(self, timeout: Duration) -> Result<Response, Error> {
        let deadline = Instant::now() + timeout;
        loop {
            // Pauses and repetitions all count against the one timeout of the call.
            let left = deadline.saturating_duration_since(Instant::now());
            let result = self.explained(in_time(Some(left), self.again()).await);
            match holds::pause(&result, deadline) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return result,
            }
        }
    }

    /// Makes the request once, without a timeout. This function may be called several times for one `Call`.
    pub(crate) async fn again(&self) -> Result<Response, Error> {
        self.attempt(self.options.clone(), self.payload.clone()).await
    }

    async fn attempt(&self, options: Options, payload: Bytes) -> Result<Response, Error> {
        let asker = self.asker().await?;
        let response = asker.transact(options, payload, self.blocks).await;
        // The server may answer at another of its addresses by now.
        if response.is_err() {
            self.forget_address();
        }
        let response = response?;
        self.note(&response)?;
        Ok(response)
    }

    /// Returns the result of a request. Replaces [`Error::TimedOut`] with the network's error for one of the addresses, if
    /// there was one.
    pub(crate) fn explained<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        // Only a timeout hides the cause. Other errors name it themselves.
        let (Err(Error::TimedOut), Some((hub, asked))) = (&result, self.asked.get()) else { return result };
        self.forget_address();
        let state = hub.lock();
        match asked.iter().find_map(|&to| state.refusals.of(to)) {
            Some(kind) if hub.is_secure() => Err(Error::Session(Refused::Unreachable(kind))),
            Some(kind) => Err(Error::Unreachable(kind)),
            None => result,
        }
    }

    /// Forgets which of the server's addresses has answered, so that the next request tries all of them again.
    fn forget_address(&self) {
        // A URI with an address has no other addresses.
        if let Ok(Uri { host: Host::Name(name), port, .. }) = self.uri() {
            self.client.answered.forget(name, *port);
        }
    }

    /// If `response` is 4.29 (RFC 8516), records that further requests of this method to this path must wait.
    pub(crate) fn note(&self, response: &Response) -> Result<(), Error> {
        if response.code == Code::TOO_MANY_REQUESTS {
            self.client.holds.note(Instant::now(), self.method, self.uri()?, response);
        }
        Ok(())
    }

    /// Prepares the [`Asker`] that sends the request: resolves the name of the server, and opens an endpoint or
    /// connection if there is none.
    pub(crate) async fn asker(&self) -> Result<Asker, Error> {
        let uri = self.uri()?;
        // A request on hold fails before a name is looked up or a connection is opened.
        if let Some(wait) = self.client.holds.left(Instant::now(), self.method, uri) {
            return Err(Error::TooManyRequests { wait });
        }
        // Without the feature `tls` these schemes are not built.
        let is_secure = matches!(uri.scheme, Scheme::Coaps | Scheme::CoapsTcp | Scheme::CoapsWs);
        if is_secure && !secure::IS_BUILT {
            return Err(Error::Scheme(uri.scheme));
        }
        let candidates = self.client.resolve(uri).await?;
        let ip = candidates.first.ip();
        // A confirmable request must not go to a group (RFC 7252 §8.1).
        if ip.is_multicast() {
            return Err(Error::Group(ip));
        }
        let mut turns = None;
        let path = match uri.scheme {
            Scheme::Coap | Scheme::Coaps => {
                let (path, addresses) = self.endpoint(uri, candidates).await?;
                turns = addresses;
                path
            }
            _ => RequestPath::Connection(self.client.connections.to(uri, candidates)?),
        };
        let Self { method: code, confirmable, repeatable, .. } = *self;
        let (progress, salvage) = (self.progress.clone(), self.salvage.clone());
        Ok(Asker { path, turns, code, confirmable, repeatable, token: None, progress, salvage })
    }

    /// Returns the endpoint that sends the request over UDP or DTLS, and the server's address there. Over UDP, also returns all
    /// addresses of the server if it is unknown which of them answers.
    async fn endpoint(
        &self,
        uri: &Uri,
        candidates: Candidates,
    ) -> Result<(RequestPath, Option<Arc<Turns>>), Error> {
        let (profile, secure) = (&self.profile, uri.scheme == Scheme::Coaps);
        if candidates.others.is_empty() {
            let hub = self.client.hub(profile, secure, candidates.first)?;
            // Noted before the handshake, because that may take longer than the timeout of the call, too.
            self.note_asked(&hub, &candidates);
            let to = hub.reach(candidates.first).await?;
            return Ok((RequestPath::Endpoint(hub, to), None));
        }
        // All attempts share one endpoint, because a blocking client can wait on one socket only (decision 0073).
        let (hub, candidates) = self.client.hub_for_all(profile, secure, &candidates)?;
        self.note_asked(&hub, &candidates);
        let first = hub.socket.remote(candidates.first);
        let turns = Turns::new(self.client.clone(), uri, candidates);
        // The handshake shows which address answers, so the addresses are tried before the request is sent.
        if secure {
            let to = Box::pin(turns.first_of(&hub, |address| hub.reach(address))).await?;
            return Ok((RequestPath::Endpoint(hub, to), None));
        }
        Ok((RequestPath::Endpoint(hub, first), Some(Arc::new(turns))))
    }

    /// Remembers the addresses that a request with a timeout goes to, for [`explained`](Self::explained).
    fn note_asked(&self, hub: &Arc<Hub>, candidates: &Candidates) {
        // Without a timeout, the request fails by itself, and its error names the cause.
        if self.timeout.is_some() {
            let remotes = candidates.iter().map(|address| hub.socket.remote(address));
            let _ = self.asked.set((hub.clone(), remotes.collect()));
        }
    }
}

/// Returns the result of `what`, or [`Error::TimedOut`] if it takes longer than `timeout`.
pub(crate) async fn in_time<T>(
    timeout: Option<Duration>,
    what: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    // Pinned before the match, the future is stored once. Otherwise each arm would have room for it.
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
        match self.timeout {
            Some(timeout) => Box::pin(self.patient(timeout)),
            None => Box::pin(self.unhurried()),
        }
    }
}
