//! A client's observation of a resource (RFC 7641, RFC 8323 §7).

use std::sync::Arc;

use coap_numbers::option;
use coapace_control::{Draw, Duration, Instant, Ratio};
use coapace_proto::block::TransferError;
use coapace_proto::{Code, Options, Tail, echo};

use crate::asker::{Asker, is_whole, within};
use crate::call::Call;
use crate::clock::Random;
use crate::inbox::{Inbox, InboxContent};
use crate::subscription::Subscription;
use crate::{Error, Response, log};

/// The representations of a resource as it changes. [`first`](Self::first) is the response to the registration, and each
/// call of [`next`](Self::next) returns a later representation.
///
/// If the server answers or notifies 5.03 Service Unavailable or 4.29 Too Many Requests, it has ended the observation
/// temporarily, for example to restart. [`next`](Self::next) registers again after the Max-Age of this response (RFC
/// 7252 §5.9.3.4, RFC 8516), or after 5 s if it has no Max-Age. The pauses grow to 5 minutes. If ten consecutive
/// registrations get such an answer, over some 25 minutes, the last of these responses ends the observation. With
/// [`Call::once`](crate::Call::once), the first such response ends it.
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
    /// The request, which also keeps the endpoint or connection open.
    call: Call,
    inbox: Arc<Inbox>,
    first: Response,
    /// A notification whose later blocks must still be fetched, if there is one.
    partial: Option<Response>,
    /// Whether the last registration was repeated with an Echo value on the server's request.
    is_repeated: bool,
    /// The number of consecutive registrations for which the server was unavailable.
    refused: u32,
    random: Random,
    /// The random delay of the next registration.
    draw: Draw,
}

/// The number of consecutive registrations for which a server may be unavailable before the observation ends.
const MAX_REFUSED: u32 = 10;

/// The first pause after a response without Max-Age, and the longest pause that a client chooses itself. Both are our choice:
/// the 60 s that RFC 7252 §5.10.5 specifies for a response without Max-Age are about caches.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// The longest Max-Age that a client waits for, in seconds.
const MAX_AGE: u64 = 24 * 60 * 60;

/// Returns the pause before the next registration, after the server has refused `refused` registrations as
/// unavailable. The pause is random, so that the observers of a server do not return all at once.
fn pause(refused: u32, max_age: Option<u64>, draw: Draw) -> Duration {
    // 5 s · 2⁶ is longer than the longest pause, so a larger shift is not needed.
    let own = FIRST_PAUSE.times(1 << refused.min(6)).min(LONGEST_PAUSE);
    let asked = max_age.map(|seconds| Duration::from_secs(seconds.min(MAX_AGE)));
    // The server chooses the first pause.
    let least = match asked {
        Some(asked) if refused == 0 => asked.max(Duration::from_secs(1)),
        asked => own.max(asked.unwrap_or(own)),
    };
    draw.dither(least, Ratio::new(3, 2))
}

/// Returns whether a registration that failed with this error may succeed later.
fn is_passing(error: &Error) -> bool {
    matches!(
        error,
        Error::GivenUp { .. }
            | Error::TimedOut
            | Error::Unreachable(_)
            | Error::Connection(_)
            | Error::Session(_)
            | Error::NotFound { .. }
            | Error::TooManyRequests { .. }
    )
}

impl Observation {
    pub(crate) async fn begin(call: Call, mut asker: Asker) -> Result<Self, Error> {
        if asker.turns.is_some() {
            // An observation stays with one address, so it is found out first which of them answers.
            Box::pin(asker.find()).await?;
        }
        let mut random = Random::default();
        let draw = random.draw();
        let mut this = Self {
            subscription: Subscription::new(asker),
            call,
            inbox: Arc::default(),
            first: Response::new(Code::EMPTY),
            partial: None,
            is_repeated: false,
            refused: 0,
            random,
            draw,
        };
        let mut response = this.register().await?;
        // A challenge has ended the first registration and its inbox.
        if let Some(value) = response.challenge() {
            this.show_address(&value);
            // The endpoint must not wait for notifications to the registration that was challenged.
            this.subscription.forget();
            this.inbox = Arc::default();
            response = this.register().await?;
        }
        if !response.is_success() {
            this.call.note(&response)?;
            return Err(Error::NotObserved(Box::new(response)));
        }
        this.first = this.complete(response).await?;
        Ok(this)
    }

    /// Returns the response to the registration, which is a success. No other follows if the resource cannot be observed.
    pub fn first(&self) -> &Response {
        &self.first
    }

    /// Returns the next representation, or `None` once the server has ended the observation. The last response may be
    /// an error of the server, such as 4.04.
    ///
    /// The future may be dropped before it is done, and `next` called again.
    ///
    /// # Errors
    /// The errors of fetching the rest of a large representation, after which the observation continues. The errors of
    /// registering again and of the connection, after which it has ended.
    pub async fn next(&mut self) -> Option<Result<Response, Error>> {
        loop {
            match self.inbox.take(self.draw) {
                InboxContent::News(news) => self.partial = Some(news),
                InboxContent::Over(None) | InboxContent::Nothing(_) if self.partial.is_some() => {}
                InboxContent::Over(Some(error))
                    if self.refused > 0 && is_passing(&error) && self.put_off(None) =>
                {
                    continue;
                }
                InboxContent::Over(error) => return error.map(Err),
                InboxContent::Nothing(again) => {
                    self.wait(again).await;
                    continue;
                }
            }
            // A copy stays in `partial`, so that the call can be dropped while it fetches further blocks.
            let Some(news) = self.partial.clone() else { continue };
            let challenge = news.challenge().filter(|_| !self.is_repeated);
            self.is_repeated = challenge.is_some();
            if let Some(value) = challenge {
                // The server wants to know whether this is the address of the client (RFC 9175 §2.4), for example because it
                // was restarted.
                self.partial = None;
                self.show_address(&value);
                self.inbox.reopen();
                self.register_again().await;
                continue;
            }
            if matches!(news.code, Code::SERVICE_UNAVAILABLE | Code::TOO_MANY_REQUESTS) {
                self.partial = None;
                if self.put_off(news.options.uint(option::MAX_AGE)) {
                    continue;
                }
                return Some(Ok(news));
            }
            // The server is back, so the next pauses begin small again.
            self.refused = 0;
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

    /// Returns the complete representation, after fetching its missing blocks if there are any.
    async fn complete(&self, response: Response) -> Result<Response, Error> {
        if is_whole(&response) || !response.is_success() {
            return within(response, self.call.blocks);
        }
        let transfer = self.subscription.transfer(self.registration(), self.call.blocks).await?;
        self.subscription.finish(transfer, response).await
    }

    fn registration(&self) -> Options {
        self.call.options.clone().observe(0)
    }

    /// Adds the Echo option that verifies the client's address (RFC 9175 §2.3).
    fn show_address(&mut self, value: &[u8]) {
        self.call.options = echo::repeated(std::mem::take(&mut self.call.options), value);
    }

    /// Delays the next registration by at least `max_age` seconds, because the server is unavailable. Returns `false` if the
    /// server was unavailable too often.
    fn put_off(&mut self, max_age: Option<u64>) -> bool {
        if self.call.once || self.refused >= MAX_REFUSED {
            return false;
        }
        let wait = pause(self.refused, max_age, self.random.draw());
        if self.refused == 0 {
            log::unavailable(wait);
        }
        self.refused += 1;
        self.inbox.resume_at(self.subscription.clock().now() + wait);
        true
    }

    async fn register(&mut self) -> Result<Response, Error> {
        let transfer = self.subscription.transfer(self.registration(), self.call.blocks).await?;
        self.subscription.register(transfer.request()?, &self.inbox).await
    }

    /// Registers again. An error ends the observation, unless the server was unavailable before and may return.
    async fn register_again(&mut self) {
        if let Err(error) = self.try_to_register_again().await
            && !(self.refused > 0 && is_passing(&error) && self.put_off(None))
        {
            self.inbox.fail(error);
        }
    }

    async fn try_to_register_again(&mut self) -> Result<(), Error> {
        if self.subscription.is_over() {
            // The server has closed the connection, as it does when it stops.
            let mut subscription = Subscription::new(self.call.asker().await?);
            let transfer = subscription.transfer(self.registration(), self.call.blocks).await?;
            let inbox = Arc::default();
            subscription.register_again(transfer.request()?, &inbox).await?;
            (self.subscription, self.inbox) = (subscription, inbox);
            return Ok(());
        }
        let transfer = self.subscription.transfer(self.registration(), self.call.blocks).await?;
        self.subscription.register_again(transfer.request()?, &self.inbox).await
    }

    /// Waits for a notification, or until it is time to register again, and then registers.
    async fn wait(&mut self, again: Option<Instant>) {
        let clock = self.subscription.clock();
        // Made before the inbox could change, so that no notification is missed.
        let arrived = self.inbox.arrived.notified();
        let Some((again, at)) = again.and_then(|again| Some((again, clock.at(again)?))) else {
            return arrived.await;
        };
        let has_arrived = match &self.call.client.undriven {
            Some(undriven) => undriven.before(again, &clock, arrived).await,
            None => tokio::time::timeout_at(at, arrived).await.is_ok(),
        };
        if !has_arrived {
            self.inbox.overdue(clock.now()).into_iter().for_each(log::overdue);
            self.draw = self.random.draw();
            self.register_again().await;
        }
    }

    /// Ends the observation in this client. Returns options and payload of the deregistration, if one is needed.
    fn farewell(&mut self) -> Option<Tail> {
        // Forgotten in any case, so that the endpoint rejects later notifications even if nothing is sent here.
        if !self.subscription.forget() || !self.inbox.goes_on() {
            return None;
        }
        self.call.options.clone().without(option::BLOCK2).observe(1).tail(&[]).ok()
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        if let Some(tail) = self.farewell() {
            self.subscription.send(tail);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_before_registrations_grow_and_are_at_least_those_of_the_server() {
        let seconds = |max_age| -> Vec<u64> {
            (0..9).map(|refused| pause(refused, max_age, Draw::ZERO).as_micros() / 1_000_000).collect()
        };
        assert_eq!(seconds(None), [5, 10, 20, 40, 80, 160, 300, 300, 300]);
        assert_eq!(seconds(Some(0)), [1, 10, 20, 40, 80, 160, 300, 300, 300]);
        assert_eq!(seconds(Some(30)), [30, 30, 30, 40, 80, 160, 300, 300, 300]);
        assert_eq!(seconds(Some(u64::MAX)), [86_400; 9]);
        assert!(pause(0, None, Draw::from_bits(u32::MAX)) < Duration::from_millis(7_501), "dithered by 1.5");
    }
}
