//! The registration of a client that observes, whatever carries it.

use std::sync::Arc;

use coapace_proto::block::Transfer;
use coapace_proto::{Code, ExchangeId, Options, Request, SendError, Token};

use crate::asker::{Asker, Asks, Blocks, exchange, fits};
use crate::clock::Clock;
use crate::inbox::Inbox;
use crate::stream::{Asking, Outstanding, Stream};
use crate::{Error, Response};

/// A registration.
#[derive(Debug)]
pub(crate) enum Subscription {
    /// An exchange of an endpoint, over UDP or DTLS. There is none once the observation has ended.
    Datagrams { asker: Asker, token: Token, exchange: Option<ExchangeId> },
    /// A request of a connection, which has a place among those under way until the observation ends.
    Stream { stream: Stream, code: Code, token: Token, place: Option<Outstanding> },
}

impl Subscription {
    pub(crate) fn datagrams(asker: Asker) -> Self {
        let token = asker.hub.lock().token();
        Self::Datagrams { asker, token, exchange: None }
    }

    pub(crate) fn stream(stream: Stream, code: Code) -> Self {
        let token = stream.token();
        Self::Stream { stream, code, token, place: None }
    }

    /// Returns the clock that the inbox goes by.
    pub(crate) fn clock(&self) -> Clock {
        match self {
            Self::Datagrams { asker, .. } => asker.hub.clock,
            Self::Stream { stream, .. } => stream.clock,
        }
    }

    /// Returns the transfer of a registration with these options.
    pub(crate) async fn transfer(&self, options: Options, blocks: Blocks) -> Result<Transfer, Error> {
        match self {
            Self::Datagrams { asker, .. } => Ok(asker.transfer(options, Vec::new(), blocks)),
            Self::Stream { stream, .. } => stream.transfer(options, Vec::new(), blocks).await,
        }
    }

    /// Fetches what is missing of a representation.
    pub(crate) async fn finish(&self, transfer: Transfer, response: Response) -> Result<Response, Error> {
        match self {
            Self::Datagrams { asker, .. } => asker.finish(transfer, response).await,
            Self::Stream { stream, code, .. } => Asking::new(stream, *code).finish(transfer, response).await,
        }
    }

    /// Registers for the first time, and returns the response. Notifications after it go into the inbox.
    pub(crate) async fn register(&mut self, tail: &[u8], inbox: &Arc<Inbox>) -> Result<Response, Error> {
        match self {
            Self::Datagrams { asker, token, exchange: begun } => {
                fits(tail)?;
                exchange(&asker.hub, asker.to, |state, now, to| {
                    let id = state.endpoint.observe(now, to, request(asker, *token, tail))?;
                    state.observed.insert(id, inbox.clone());
                    *begun = Some(id);
                    Ok::<_, SendError>(id)
                })
                .await
            }
            Self::Stream { stream, code, token, place } => {
                let (response, outstanding) =
                    stream.register(*code, *token, tail.to_vec(), inbox.clone()).await?;
                *place = Some(outstanding);
                Ok(response)
            }
        }
    }

    /// Asks the server to go on. Its answer goes into the inbox, like a notification.
    pub(crate) async fn register_again(&mut self, tail: &[u8], inbox: &Arc<Inbox>) -> Result<(), Error> {
        match self {
            Self::Datagrams { asker, token, exchange } => {
                inbox.register();
                asker.hub.with(|state, now| {
                    exchange.take().map(|id| state.forget(now, id));
                    let id = state.endpoint.observe(now, asker.to, request(asker, *token, tail))?;
                    state.observed.insert(id, inbox.clone());
                    *exchange = Some(id);
                    Ok::<_, Error>(())
                })
            }
            Self::Stream { stream, code, token, .. } => {
                stream.register_again(*code, *token, tail.to_vec(), inbox).await
            }
        }
    }

    /// Ends it here: an endpoint rejects what comes from now on. Returns whether there was something to end.
    pub(crate) fn forget(&mut self) -> bool {
        match self {
            Self::Datagrams { asker, exchange, .. } => {
                let Some(id) = exchange.take() else { return false };
                asker.hub.with(|state, now| state.forget(now, id))
            }
            Self::Stream { place, .. } => place.take().is_some(),
        }
    }

    /// Sends a last request, and waits for the response.
    pub(crate) async fn ask(&self, tail: &[u8]) -> Result<Response, Error> {
        match self {
            Self::Datagrams { asker, token, .. } => {
                let begin = exchange(&asker.hub, asker.to, |state, now, to| {
                    state.endpoint.request(now, to, request(asker, *token, tail))
                });
                begin.await
            }
            Self::Stream { stream, code, token, .. } => stream.ask(*code, *token, tail.to_vec()).await,
        }
    }

    /// Sends a last request, whatever comes of it.
    pub(crate) fn send(&self, tail: &[u8]) {
        match self {
            Self::Datagrams { asker, token, .. } => {
                let request = request(asker, *token, tail);
                let _ = asker.hub.with(|state, now| state.endpoint.request(now, asker.to, request));
            }
            Self::Stream { stream, code, token, .. } => stream.send(*code, *token, tail.to_vec()),
        }
    }
}

fn request<'a>(asker: &Asker, token: Token, tail: &'a [u8]) -> Request<'a> {
    let &Asker { code, confirmable, .. } = asker;
    Request { confirmable, code, token, tail, repeatable: true }
}
