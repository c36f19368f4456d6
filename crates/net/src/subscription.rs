//! The registration of an observing client, over datagrams or a connection.

use std::sync::Arc;

use coapace_proto::block::Transfer;
use coapace_proto::{ExchangeId, Options, SendError, Tail, Token};
use tokio::sync::OwnedSemaphorePermit;

use crate::asker::{Asker, Blocks, RequestPath, exchange, fits};
use crate::clock::Clock;
use crate::inbox::Inbox;
use crate::receivers::Receivers;
use crate::{Error, Response};

/// A registration for notifications.
#[derive(Debug)]
pub(crate) struct Subscription {
    asker: Asker,
    /// The token of all registrations, and of the notifications.
    token: Token,
    begun: Option<OpenRegistration>,
}

/// A registration that was sent and has not ended.
#[derive(Debug)]
enum OpenRegistration {
    /// Over datagrams: an exchange of the endpoint.
    Exchange(ExchangeId),
    /// Over a connection: a slot among its outstanding requests.
    Place(#[allow(dead_code)] OwnedSemaphorePermit),
}

impl Subscription {
    pub(crate) fn new(asker: Asker) -> Self {
        let token = match &asker.path {
            RequestPath::Endpoint(hub, _) => hub.lock().random.token(),
            RequestPath::Connection(connection) => connection.token(),
        };
        // A second execution of a registration replaces the first (RFC 7641 §4.1).
        Self { asker: Asker { repeatable: true, ..asker }, token, begun: None }
    }

    /// Returns the clock for the inbox.
    pub(crate) fn clock(&self) -> Clock {
        match &self.asker.path {
            RequestPath::Endpoint(hub, _) => hub.clock,
            RequestPath::Connection(connection) => connection.clock,
        }
    }

    /// Returns whether the connection takes no more requests. Returns `false` over datagrams.
    pub(crate) fn is_over(&self) -> bool {
        matches!(&self.asker.path, RequestPath::Connection(connection) if connection.is_closed())
    }

    /// Returns the transfer of a registration with these options.
    pub(crate) async fn transfer(&self, options: Options, blocks: Blocks) -> Result<Transfer, Error> {
        self.asker.transfer(options, Vec::new(), blocks).await
    }

    /// Fetches the rest of a representation, after its first blocks.
    pub(crate) async fn finish(&self, transfer: Transfer, response: Response) -> Result<Response, Error> {
        let mut asker = self.asker.clone();
        // On a connection the token of the registration is reserved for notifications.
        if matches!(asker.path, RequestPath::Connection(_)) {
            asker.share_token();
        }
        asker.carry(transfer, Some(response)).await
    }

    /// Registers for the first time, and returns the response. Notifications after it go into the inbox.
    pub(crate) async fn register(&mut self, tail: Tail, inbox: &Arc<Inbox>) -> Result<Response, Error> {
        let Self { asker, token, begun } = self;
        match &asker.path {
            &RequestPath::Endpoint(ref hub, to) => {
                fits(tail.as_bytes())?;
                exchange(hub, to, Some(inbox), |state, now| {
                    let id = state.endpoint.observe(now, to, asker.request(*token, tail.as_bytes()))?;
                    *begun = Some(OpenRegistration::Exchange(id));
                    Ok::<_, SendError>(id)
                })
                .await
            }
            RequestPath::Connection(connection) => {
                // Noted before the registration is sent, so that it is ended if its response is rejected or not waited for.
                *begun = Some(OpenRegistration::Place(connection.place().await?));
                connection.register(asker.stream_request(*token, tail), inbox).await
            }
        }
    }

    /// Registers again. The response goes into the inbox, like a notification.
    pub(crate) async fn register_again(&mut self, tail: Tail, inbox: &Arc<Inbox>) -> Result<(), Error> {
        let Self { asker, token, begun } = self;
        match &asker.path {
            &RequestPath::Endpoint(ref hub, to) => {
                // The response may arrive as soon as the registration is sent.
                inbox.register();
                hub.with(|state, now| {
                    // The token stays the same, so the old exchange must not take the new notifications.
                    if let Some(OpenRegistration::Exchange(id)) = begun.take() {
                        state.forget(now, id);
                    }
                    let id = state.endpoint.observe(now, to, asker.request(*token, tail.as_bytes()))?;
                    state.expect(
                        now,
                        id,
                        to,
                        Receivers { inbox: Some(inbox.clone()), ..Receivers::default() },
                    );
                    *begun = Some(OpenRegistration::Exchange(id));
                    Ok(())
                })
            }
            RequestPath::Connection(connection) => {
                // The place of the first registration is kept for all later ones.
                if begun.is_none() {
                    *begun = Some(OpenRegistration::Place(connection.place().await?));
                }
                connection.register_again(asker.stream_request(*token, tail), inbox).await
            }
        }
    }

    /// Ends the registration in this client. An endpoint rejects later notifications. Returns whether there was a
    /// registration.
    pub(crate) fn forget(&mut self) -> bool {
        match (self.begun.take(), &self.asker.path) {
            (Some(OpenRegistration::Exchange(id)), RequestPath::Endpoint(hub, _)) => {
                hub.with(|state, now| state.forget(now, id))
            }
            (begun, _) => begun.is_some(),
        }
    }

    /// Sends the deregistration, and waits for the response.
    pub(crate) async fn ask(&self, tail: Tail) -> Result<Response, Error> {
        self.asker.send(Some(self.token), tail).await
    }

    /// Sends the deregistration without waiting for the response.
    pub(crate) fn send(&self, tail: Tail) {
        let Self { asker, token, .. } = self;
        match &asker.path {
            &RequestPath::Endpoint(ref hub, to) => {
                let request = asker.request(*token, tail.as_bytes());
                let _ = hub.with(|state, now| state.endpoint.request(now, to, request));
            }
            RequestPath::Connection(connection) => connection.send(asker.stream_request(*token, tail)),
        }
    }
}
