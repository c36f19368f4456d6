//! An observation over a reliable transport (RFC 8323 §7).

use std::sync::Arc;

use coap_numbers::option;
use coapace_control::Draw;
use coapace_proto::block::TransferError;
use coapace_proto::{Code, Kind, Message, Observation, Options, Token};

use super::client::{Asking, Outstanding, Stream, is_all};
use crate::asker::{Asks, Blocks};
use crate::clock::{Clock, Random};
use crate::inbox::{Inbox, Taken};
use crate::{Client, Error, Response, log};

/// What a server sends of a resource, in the order in which it was sent. It ends with its connection. When the
/// representation is stale and nothing has come, it is registered again, as over datagrams: the connection then shows
/// whether the server is there (RFC 8323 §7.3).
#[derive(Debug)]
pub(crate) struct Observing {
    stream: Stream,
    /// Keeps the connection.
    _client: Client,
    _outstanding: Outstanding,
    code: Code,
    options: Options,
    blocks: Blocks,
    token: Token,
    inbox: Arc<Inbox>,
    pub(crate) first: Response,
    /// A notification of which blocks are missing.
    partial: Option<Response>,
    /// The server sends no more, as far as is known here.
    over: bool,
    /// The registration, to be sent again.
    tail: Vec<u8>,
    clock: Clock,
    random: Random,
    /// How long the newest representation is fresh.
    order: Observation,
    draw: Draw,
}

impl Observing {
    pub(crate) async fn begin(
        client: Client,
        stream: Stream,
        code: Code,
        options: Options,
        blocks: Blocks,
    ) -> Result<Self, Error> {
        let (token, inbox) = (stream.token(), Arc::new(Inbox::default()));
        let transfer = stream.transfer(options.clone().observe(0), Vec::new(), blocks).await?;
        let tail = transfer.request()?.into_bytes();
        let (first, outstanding) = stream.register(code, token, tail.clone(), inbox.clone()).await?;
        if !first.is_success() {
            return Err(Error::NotObserved(Box::new(first)));
        }
        let over = first.options.value(option::OBSERVE).is_none();
        let mut this = Self {
            stream,
            _client: client,
            _outstanding: outstanding,
            code,
            options,
            blocks,
            token,
            inbox,
            first: Response::new(Code::EMPTY),
            partial: None,
            over,
            tail,
            clock: Clock::start(),
            random: Random::default(),
            order: Observation::new(),
            draw: Draw::ZERO,
        };
        this.note(&first);
        this.first = this.complete(first).await?;
        Ok(this)
    }

    /// Fetches what is missing of a representation.
    async fn complete(&self, response: Response) -> Result<Response, Error> {
        if is_all(&response) {
            return Ok(response);
        }
        let asking = Asking::new(&self.stream, self.code);
        let transfer = self.stream.transfer(self.options.clone(), Vec::new(), self.blocks).await?;
        asking.finish(transfer, response).await
    }

    /// As [`Observation::next`](crate::Observation::next).
    pub(crate) async fn next(&mut self) -> Option<Result<Response, Error>> {
        loop {
            if self.over && self.partial.is_none() {
                return None;
            }
            match self.inbox.take(Draw::ZERO) {
                Taken::News(news) => {
                    self.note(&news);
                    self.partial = Some(news);
                }
                Taken::Nothing(_) if self.partial.is_none() => {
                    self.wait().await;
                    continue;
                }
                Taken::Over(error) if self.partial.is_none() => {
                    self.over = true;
                    return error.map(Err);
                }
                Taken::Over(_) | Taken::Nothing(_) => {}
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

    /// Notes for how long a representation is fresh.
    fn note(&mut self, response: &Response) {
        let Self { order, clock, .. } = self;
        response.as_message(|message| {
            *order = Observation::new();
            order.update(clock.now(), message)
        });
        self.draw = self.random.draw();
    }

    /// Waits for something to come, or until it is time to register again.
    async fn wait(&mut self) {
        let arrived = self.inbox.arrived.notified();
        let Some(at) = self.clock.at(self.order.register_again_at(self.draw)) else { return arrived.await };
        if tokio::time::timeout_at(at, arrived).await.is_err() {
            log::overdue(self.clock.now().since(self.order.fresh_until()));
            self.stream.register_again(self.code, self.token, self.tail.clone(), self.inbox.clone());
            // As if something had come, so that the server has as long as any to answer.
            self.order.update(self.clock.now(), &Message::empty(Kind::Acknowledgement, 0));
        }
    }

    /// As [`Observation::end`](crate::Observation::end).
    pub(crate) async fn end(mut self) -> Result<(), Error> {
        let Some(tail) = self.farewell() else { return Ok(()) };
        self.stream.ask(self.code, self.token, tail).await.map(drop)
    }

    /// The request that ends it, if it goes on.
    fn farewell(&mut self) -> Option<Vec<u8>> {
        if std::mem::replace(&mut self.over, true) || !self.inbox.goes_on() {
            return None;
        }
        let options = self.options.clone().without(option::BLOCK2).observe(1);
        Some(options.tail(&[]).ok()?.into_bytes())
    }
}

impl Drop for Observing {
    fn drop(&mut self) {
        if let Some(tail) = self.farewell() {
            self.stream.send_off(self.code, self.token, tail);
        }
    }
}
