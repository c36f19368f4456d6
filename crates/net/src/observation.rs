//! A client's observation of a resource (RFC 7641).

use std::sync::Arc;

use coap_numbers::option;
use coapace_control::{Draw, Instant};
#[cfg(feature = "tcp")]
use coapace_proto::Code;
use coapace_proto::block::{Transfer, TransferError};
use coapace_proto::{ExchangeId, Options, Request, SendError, Token, echo};

use crate::asker::{Asker, Asks, Blocks, exchange, fits, is_whole};
use crate::hub::State;
use crate::inbox::{Inbox, Taken};
#[cfg(feature = "tcp")]
use crate::stream::{Observing, Stream};
use crate::{Client, Error, Response, log};

/// What a server sends of a resource as it changes: the [response](Self::first) to the registration, and then
/// [`next`](Self::next), again and again.
///
/// Only the newest representation is kept, so that who takes a long time for each sees the latest, not all. When the
/// representation is stale (Max-Age) and 5 to 15 s later nothing has come, [`next`](Self::next) registers again (RFC 7641
/// §3.3.1). Dropping it tells the server, without waiting for its answer; [`end`](Self::end) waits.
///
/// ```no_run
/// # async fn example() -> Result<(), coapace_net::Error> {
/// let mut clock = coapace_net::Client::new().observe("coap://[::1]/clock").await?;
/// println!("{}", clock.first().text());
/// while let Some(now) = clock.next().await {
///     println!("{}", now?.text());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Observation(Way);

#[derive(Debug)]
enum Way {
    Datagrams(Box<Datagrams>),
    #[cfg(feature = "tcp")]
    Stream(Box<Observing>),
}

/// What is done, whatever carries it.
macro_rules! either {
    ($self:expr, $it:ident => $what:expr) => {
        match $self {
            Way::Datagrams($it) => $what,
            #[cfg(feature = "tcp")]
            Way::Stream($it) => $what,
        }
    };
}

impl Observation {
    pub(crate) async fn begin(
        client: Client,
        asker: Asker,
        options: Options,
        blocks: Blocks,
    ) -> Result<Self, Error> {
        let begun = Datagrams::begin(client, asker, options, blocks).await?;
        Ok(Self(Way::Datagrams(Box::new(begun))))
    }

    /// Over a reliable transport.
    #[cfg(feature = "tcp")]
    pub(crate) async fn over(
        client: Client,
        stream: Stream,
        code: Code,
        options: Options,
        blocks: Blocks,
    ) -> Result<Self, Error> {
        let begun = Observing::begin(client, stream, code, options, blocks).await?;
        Ok(Self(Way::Stream(Box::new(begun))))
    }

    /// The response to the registration: a success. It is all there is if the server does not let the resource be observed.
    pub fn first(&self) -> &Response {
        either!(&self.0, it => &it.first)
    }

    /// The next representation; nothing once the server has ended the observation. The last response may be an error
    /// of the server, such as 4.04.
    ///
    /// It may be dropped before it is done, and called again.
    ///
    /// # Errors
    /// What became of an attempt to register again, or to fetch the rest of a large representation; over a reliable
    /// transport, what became of the connection. The observation goes on after the second, and is over after the others.
    pub async fn next(&mut self) -> Option<Result<Response, Error>> {
        either!(&mut self.0, it => it.next().await)
    }

    /// Tells the server that nothing is to come any more, and waits until it knows (RFC 7641 §3.6).
    ///
    /// # Errors
    /// Why it does not know. It will learn it from the Reset that the next notification is answered with.
    pub async fn end(self) -> Result<(), Error> {
        either!(self.0, it => it.end().await)
    }
}

/// Over UDP or DTLS.
#[derive(Debug)]
struct Datagrams {
    asker: Asker,
    /// Keeps the hub going.
    client: Client,
    options: Options,
    blocks: Blocks,
    token: Token,
    id: Option<ExchangeId>,
    inbox: Arc<Inbox>,
    first: Response,
    /// A notification of which blocks are missing.
    partial: Option<Response>,
    draw: Draw,
}

impl Datagrams {
    async fn begin(client: Client, asker: Asker, options: Options, blocks: Blocks) -> Result<Self, Error> {
        let token = asker.hub.lock().token();
        let inbox = Arc::new(Inbox::default());
        let draw = asker.hub.lock().draw();
        let mut this = Self {
            asker,
            client,
            options,
            blocks,
            token,
            id: None,
            inbox,
            first: Response::new(coapace_proto::Code::EMPTY),
            partial: None,
            draw,
        };
        let mut response = this.register().await?;
        if let Some(value) = response.as_message(|message| echo::challenged(message).map(<[u8]>::to_vec)) {
            this.options = echo::repeated(std::mem::take(&mut this.options), &value);
            this.forget();
            this.inbox = Arc::new(Inbox::default());
            response = this.register().await?;
        }
        if !response.is_success() {
            return Err(Error::NotObserved(Box::new(response)));
        }
        this.first = this.complete(response).await?;
        Ok(this)
    }

    /// Fetches what is missing of a representation.
    async fn complete(&self, response: Response) -> Result<Response, Error> {
        if is_whole(&response) || !response.is_success() {
            return Ok(response);
        }
        self.asker.finish(self.transfer(), response).await
    }

    fn transfer(&self) -> Transfer {
        let options = self.options.clone().observe(0);
        self.asker.transfer(options, Vec::new(), self.blocks)
    }

    /// Registers for the first time.
    async fn register(&mut self) -> Result<Response, Error> {
        let tail = self.transfer().request()?;
        fits(tail.as_bytes())?;
        let Self { asker, token, inbox, id, .. } = self;
        exchange(&asker.hub, asker.to, |state, now, _| {
            let begun = observe(asker, *token, inbox, state, now, tail.as_bytes())?;
            *id = Some(begun);
            Ok(begun)
        })
        .await
    }

    /// Asks the server to go on. What it answers comes as a notification does.
    fn register_again(&mut self) -> Result<(), Error> {
        let tail = self.transfer().request()?;
        let Self { asker, token, inbox, id, .. } = self;
        inbox.register();
        asker.hub.with(|state, now| {
            id.take().map(|id| state.forget(now, id));
            *id = Some(observe(asker, *token, inbox, state, now, tail.as_bytes())?);
            Ok::<_, Error>(())
        })
    }

    async fn next(&mut self) -> Option<Result<Response, Error>> {
        loop {
            match self.inbox.take(self.draw) {
                Taken::News(news) => self.partial = Some(news),
                Taken::Over(None) | Taken::Nothing(_) if self.partial.is_some() => {}
                Taken::Over(error) => return error.map(Err),
                Taken::Nothing(again) => {
                    self.wait(again).await;
                    continue;
                }
            }
            let Some(news) = self.partial.clone() else { continue };
            let finished = self.complete(news).await;
            self.partial = None;
            match finished {
                // There is a newer one, and it will be told.
                Err(Error::Transfer(TransferError::Changed)) => {}
                finished => return Some(finished),
            }
        }
    }

    /// Waits for something to come, or until it is time to register again.
    async fn wait(&mut self, again: Option<Instant>) {
        let hub = &self.asker.hub;
        let arrived = self.inbox.arrived.notified();
        let Some((again, at)) = again.and_then(|again| Some((again, hub.clock.at(again)?))) else {
            return arrived.await;
        };
        let has_arrived = match self.client.undriven() {
            Some(undriven) => undriven.before(again, &hub.clock, arrived).await,
            None => tokio::time::timeout_at(at, arrived).await.is_ok(),
        };
        if !has_arrived {
            log::overdue(self.inbox.overdue(self.asker.hub.clock.now()));
            self.draw = self.asker.hub.lock().draw();
            if let Err(error) = self.register_again() {
                self.inbox.fail(error);
            }
        }
    }

    async fn end(mut self) -> Result<(), Error> {
        if !self.forget() {
            return Ok(());
        }
        let tail = self.farewell()?;
        let ended = exchange(&self.asker.hub, self.asker.to, |state, now, to| {
            state.endpoint.request(now, to, self.last_request(&tail))
        });
        ended.await.map(drop)
    }

    /// What comes from now on is rejected. Returns whether the server has to be told.
    fn forget(&mut self) -> bool {
        let Some(id) = self.id.take() else { return false };
        self.asker.hub.with(|state, now| state.forget(now, id)) && self.inbox.goes_on()
    }

    /// Options of the request that ends it.
    fn farewell(&self) -> Result<Vec<u8>, Error> {
        let options = self.options.clone().without(option::BLOCK2).observe(1);
        Ok(options.tail(&[]).map_err(TransferError::Option)?.into_bytes())
    }

    fn last_request<'a>(&self, tail: &'a [u8]) -> Request<'a> {
        let Asker { code, confirmable, .. } = self.asker;
        Request { confirmable, code, token: self.token, tail, repeatable: true }
    }
}

impl Drop for Datagrams {
    fn drop(&mut self) {
        if self.forget()
            && let Ok(tail) = self.farewell()
        {
            // Whatever comes of it.
            let request = self.last_request(&tail);
            let _ = self.asker.hub.with(|state, now| state.endpoint.request(now, self.asker.to, request));
        }
    }
}

/// Sends a registration, and has its responses put into the inbox.
fn observe(
    asker: &Asker,
    token: Token,
    inbox: &Arc<Inbox>,
    state: &mut State,
    now: Instant,
    tail: &[u8],
) -> Result<ExchangeId, SendError> {
    let &Asker { to, code, confirmable, .. } = asker;
    let request = Request { confirmable, code, token, tail, repeatable: true };
    let id = state.endpoint.observe(now, to, request)?;
    state.observed.insert(id, inbox.clone());
    Ok(id)
}
