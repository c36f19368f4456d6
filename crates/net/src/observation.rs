//! A client's observation of a resource (RFC 7641, RFC 8323 §7).

use std::sync::Arc;

use coap_numbers::option;
use coapace_control::{Draw, Instant};
use coapace_proto::block::TransferError;
use coapace_proto::{Code, Options, Tail, echo};

use crate::asker::{Asker, Blocks, is_whole, within};
use crate::clock::Random;
use crate::endpoints::Endpoints;
use crate::inbox::{Inbox, Taken};
use crate::subscription::Subscription;
use crate::{Error, Response, log};

/// The representations of a resource as it changes. [`first`](Self::first) is the response to the registration, and each
/// call of [`next`](Self::next) returns a later representation.
///
/// Only the newest representation is kept, so a slow program does not see all of them. If none has come 5 to 15 s after the
/// last became stale (Max-Age), [`next`](Self::next) registers again (RFC 7641 §3.3.1). Over a connection, this shows
/// whether the server is still there (RFC 8323 §7.3). Dropping the observation deregisters without waiting for the server's
/// answer. [`end`](Self::end) waits for it.
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
pub struct Observation {
    subscription: Subscription,
    /// Keeps the endpoint or connection open.
    client: Arc<Endpoints>,
    options: Options,
    blocks: Blocks,
    inbox: Arc<Inbox>,
    first: Response,
    /// A notification that lacks blocks.
    partial: Option<Response>,
    /// Set if the last registration was one that the server had asked for with an Echo value.
    is_repeated: bool,
    random: Random,
    /// The random delay of the next registration.
    draw: Draw,
}

impl Observation {
    pub(crate) async fn begin(
        client: Arc<Endpoints>,
        asker: Asker,
        options: Options,
        blocks: Blocks,
    ) -> Result<Self, Error> {
        let mut random = Random::default();
        let draw = random.draw();
        let mut this = Self {
            subscription: Subscription::new(asker),
            client,
            options,
            blocks,
            inbox: Arc::default(),
            first: Response::new(Code::EMPTY),
            partial: None,
            is_repeated: false,
            random,
            draw,
        };
        let mut response = this.register().await?;
        if let Some(value) = response.challenge() {
            this.options = echo::repeated(std::mem::take(&mut this.options), &value);
            this.subscription.forget();
            this.inbox = Arc::default();
            response = this.register().await?;
        }
        if !response.is_success() {
            return Err(Error::NotObserved(Box::new(response)));
        }
        this.first = this.complete(response).await?;
        Ok(this)
    }

    /// Returns the response to the registration, which is a success. No other follows if the server does not let the
    /// resource be observed.
    pub fn first(&self) -> &Response {
        &self.first
    }

    /// Returns the next representation, or nothing once the server has ended the observation. The last response may be an
    /// error of the server, such as 4.04.
    ///
    /// The future may be dropped before it is done, and `next` called again.
    ///
    /// # Errors
    /// The errors of fetching the rest of a large representation, after which the observation goes on. The errors of
    /// registering again and of the connection, after which it is over.
    pub async fn next(&mut self) -> Option<Result<Response, Error>> {
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
            let challenge = news.challenge().filter(|_| !self.is_repeated);
            self.is_repeated = challenge.is_some();
            if let Some(value) = challenge {
                // The server wants to know whether this is the address of the client (RFC 9175 §2.4), for example because it
                // was restarted.
                self.partial = None;
                self.options = echo::repeated(std::mem::take(&mut self.options), &value);
                self.inbox.reopen();
                self.register_again().await;
                continue;
            }
            let finished = self.complete(news).await;
            self.partial = None;
            match finished {
                // There is a newer representation, whose notification will arrive.
                Err(Error::Transfer(TransferError::Changed)) => {}
                finished => return Some(finished),
            }
        }
    }

    /// Deregisters, and waits for the server's answer (RFC 7641 §3.6).
    ///
    /// # Errors
    /// The error of the request. The server will then remove the observer when it gets a Reset for the next notification.
    pub async fn end(mut self) -> Result<(), Error> {
        match self.farewell() {
            Some(tail) => self.subscription.ask(tail).await.map(drop),
            None => Ok(()),
        }
    }

    /// Fetches the blocks that a representation lacks.
    async fn complete(&self, response: Response) -> Result<Response, Error> {
        if is_whole(&response) || !response.is_success() {
            return within(response, self.blocks);
        }
        let transfer = self.subscription.transfer(self.registration(), self.blocks).await?;
        self.subscription.finish(transfer, response).await
    }

    fn registration(&self) -> Options {
        self.options.clone().observe(0)
    }

    async fn register(&mut self) -> Result<Response, Error> {
        let transfer = self.subscription.transfer(self.registration(), self.blocks).await?;
        self.subscription.register(transfer.request()?, &self.inbox).await
    }

    /// Registers again. An error ends the observation.
    async fn register_again(&mut self) {
        let registered = async {
            let transfer = self.subscription.transfer(self.registration(), self.blocks).await?;
            self.subscription.register_again(transfer.request()?, &self.inbox).await
        };
        if let Err(error) = registered.await {
            self.inbox.fail(error);
        }
    }

    /// Waits for a notification, or registers again when it is time.
    async fn wait(&mut self, again: Option<Instant>) {
        let clock = self.subscription.clock();
        let arrived = self.inbox.arrived.notified();
        let Some((again, at)) = again.and_then(|again| Some((again, clock.at(again)?))) else {
            return arrived.await;
        };
        let has_arrived = match &self.client.undriven {
            Some(undriven) => undriven.before(again, &clock, arrived).await,
            None => tokio::time::timeout_at(at, arrived).await.is_ok(),
        };
        if !has_arrived {
            log::overdue(self.inbox.overdue(clock.now()));
            self.draw = self.random.draw();
            self.register_again().await;
        }
    }

    /// Ends the observation in this client. Returns options and payload of the request that deregisters, if one is needed.
    fn farewell(&mut self) -> Option<Tail> {
        if !self.subscription.forget() || !self.inbox.goes_on() {
            return None;
        }
        self.options.clone().without(option::BLOCK2).observe(1).tail(&[]).ok()
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        if let Some(tail) = self.farewell() {
            self.subscription.send(tail);
        }
    }
}
