//! Sends the requests of a call: one request for each block of the bodies.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use coap_numbers::option;
use coapace_control::Instant;
use coapace_proto::block::{Transfer, TransferError, Transferred};
use coapace_proto::{Code, ExchangeId, Options, SendError, Tail, Token};
use tokio::sync::oneshot;

use crate::address::Remote;
use crate::datagram::hub::{Hub, LockedHub};
use crate::datagram::io::MAX_DATAGRAM;
use crate::inbox::Inbox;
use crate::receivers::Receivers;
use crate::stream::{ConnectionHandle, StreamRequest};
use crate::turns::Turns;
use crate::{Error, Response, Salvage};

/// The settings for bodies that are larger than a datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocks {
    /// The size exponent of the largest block that either side shall send (RFC 7959 §2.2).
    pub(crate) szx: u8,
    /// The largest accepted body of a response, in bytes.
    pub(crate) max_body: usize,
    /// True if several blocks of a request are sent at once (Q-Block1, RFC 9177).
    pub(crate) at_once: bool,
}

impl Default for Blocks {
    fn default() -> Self {
        Self { szx: coapace_proto::block::MAX_SZX, max_body: 16 << 20, at_once: true }
    }
}

impl Blocks {
    /// Returns the size of a block, in bytes.
    pub(crate) fn size(self) -> usize {
        16 << self.szx
    }

    /// Returns whether a request needs Block options, or has some already.
    pub(crate) fn are_needed(self, options: &Options, payload: usize) -> bool {
        let needs = |(number, _)| matches!(number, option::BLOCK1 | option::BLOCK2 | option::SIZE1);
        // A client that wants smaller blocks says so in its first request (RFC 7959 §2.4).
        self.szx < coapace_proto::block::MAX_SZX || payload > self.size() || options.iter().any(needs)
    }
}

/// Returns the size exponent of the largest block that has at most `bytes` bytes (RFC 7959 §2.2). Fewer than 16 bytes count as
/// 16.
pub(crate) fn szx(bytes: usize) -> u8 {
    // A block of 2^(szx + 4) bytes must not be larger than `bytes`, and `ilog2` rounds down.
    (bytes.max(16).ilog2() - 4).min(coapace_proto::block::MAX_SZX.into()) as u8
}

/// A function of the program that is called after every block of a body.
#[derive(Clone)]
pub(crate) struct OnProgress(pub(crate) Arc<dyn Fn(Transferred) + Send + Sync>);

impl fmt::Debug for OnProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnProgress")
    }
}

/// The transport of requests to a server.
#[derive(Clone, Debug)]
pub(crate) enum RequestPath {
    /// Datagrams of an endpoint to this peer, over UDP or DTLS.
    Endpoint(Arc<Hub>, Remote),
    /// Messages over a connection.
    Connection(ConnectionHandle),
}

/// Sends the requests of one call.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    pub(crate) path: RequestPath,
    /// The addresses of the server, until it is known which of them answers.
    pub(crate) turns: Option<Arc<Turns>>,
    pub(crate) code: Code,
    /// Whether requests in datagrams are confirmable.
    pub(crate) confirmable: bool,
    pub(crate) repeatable: bool,
    /// The token of all requests, if they share one.
    pub(crate) token: Option<Token>,
    pub(crate) progress: Option<OnProgress>,
    /// The place for the first blocks of a response whose transfer ends early.
    pub(crate) salvage: Option<Salvage>,
}

impl Asker {
    /// Makes the request of a call and returns the complete response. Rarely needed futures are boxed, so that the future of
    /// every call is small.
    pub(crate) async fn transact(
        mut self,
        options: Options,
        payload: Bytes,
        blocks: Blocks,
    ) -> Result<Response, Error> {
        if self.code == Code::EMPTY {
            return Box::pin(self.settle(Self::ping_owned)).await;
        }
        // A short request is sent without Block options. The answer shows whether a transfer is needed: it has a Block or Echo
        // option, or it is 4.13.
        let is_short = !blocks.are_needed(&options, payload.len());
        let first = if is_short && matches!(self.path, RequestPath::Endpoint(..)) {
            let tail = options.tail(&payload).map_err(TransferError::Option)?;
            let response = match self.turns {
                // One address is known to answer, so nothing has to be raced.
                None => self.send(None, tail).await?,
                Some(_) => Box::pin(self.send_first(None, tail)).await?,
            };
            let in_blocks = response.code == Code::REQUEST_ENTITY_TOO_LARGE && !payload.is_empty();
            if is_whole(&response) && !in_blocks {
                return within(response, blocks);
            }
            // The body goes again in blocks, because 4.13 came to a request that had all of it (RFC 7959 §2.9.3).
            if in_blocks {
                self.share_token();
            }
            Some(response)
        } else {
            self.share_token();
            None
        };
        Box::pin(async move {
            // A server that has answered a short request already gets the rest with Block1.
            let may_hurry = first.is_none() && blocks.at_once && self.has_bulk();
            let in_all = payload.len().div_ceil(blocks.size());
            let hurries = may_hurry && self.takes_q_block(&options, in_all).await?;
            let mut transfer = self.transfer(options, payload.into(), blocks).await?;
            if hurries {
                transfer = transfer.with_q_block(self.code, &self.tag());
            }
            // With Q-Block1 the transfer sends its first block itself, together with the next ones.
            let first = match first {
                None if transfer.uses_q_block() => None,
                None => Some(self.send_first(self.token, transfer.request()?).await?),
                first => first,
            };
            self.carry(transfer, first).await
        })
        .await
    }

    /// Gives all blocks of a body one token, except over DTLS, where no token is used twice (RFC 9175 §4.2). No specification
    /// requires one token, but go-coap and node-coap reassemble blocks only by their token.
    pub(crate) fn share_token(&mut self) {
        self.token = match &self.path {
            RequestPath::Endpoint(hub, _) => (!hub.is_secure()).then(|| hub.lock().random.token()),
            RequestPath::Connection(connection) => Some(connection.token()),
        };
    }

    /// Returns a transfer that sends `body` to the server, and receives the body of the response.
    pub(crate) async fn transfer(
        &self,
        options: Options,
        body: Vec<u8>,
        blocks: Blocks,
    ) -> Result<Transfer, Error> {
        if let RequestPath::Connection(connection) = &self.path {
            return connection.transfer(options, body, blocks).await;
        }
        let is_in_blocks = body.len() > blocks.size();
        let mut transfer = Transfer::new(options, body, blocks.szx, blocks.max_body);
        // A server tells bodies of one client apart by their Request-Tag (RFC 9175 §3.3).
        if is_in_blocks {
            transfer.tag(&self.tag());
        }
        Ok(transfer)
    }

    /// Returns a Request-Tag, which distinguishes a body from other bodies of this client for the same resource (RFC 9175
    /// §3.3).
    pub(crate) fn tag(&self) -> Token {
        match &self.path {
            RequestPath::Endpoint(hub, _) => hub.lock().random.token(),
            RequestPath::Connection(connection) => connection.token(),
        }
    }

    /// Sends an empty message, and returns when it is answered.
    pub(crate) async fn ping(&self) -> Result<Response, Error> {
        match &self.path {
            &RequestPath::Endpoint(ref hub, to) => {
                exchange(hub, to, None, |state, now| state.endpoint.ping(now, to)).await
            }
            RequestPath::Connection(connection) => {
                connection.ask(StreamRequest::new(Code::EMPTY, connection.token(), Vec::new())).await
            }
        }
    }

    /// Sends one request with these options and this payload, and returns the response.
    pub(crate) async fn send(&self, token: Option<Token>, tail: Tail) -> Result<Response, Error> {
        match &self.path {
            &RequestPath::Endpoint(ref hub, to) => {
                fits(tail.as_bytes())?;
                exchange(hub, to, None, |state, now| {
                    let token = token.unwrap_or_else(|| state.random.token());
                    state.endpoint.request(now, to, self.request(token, tail.as_bytes()))
                })
                .await
            }
            RequestPath::Connection(connection) => {
                let token = token.unwrap_or_else(|| connection.token());
                Box::pin(connection.ask(self.stream_request(token, tail))).await
            }
        }
    }

    /// Returns the request with this token and these options and payload (`tail`), in the form for a connection.
    pub(crate) fn stream_request(&self, token: Token, tail: Tail) -> StreamRequest {
        StreamRequest::new(self.code, token, tail.into_bytes())
    }

    /// Returns the request with this token and this tail, in the form for an endpoint.
    pub(crate) fn request<'a>(&self, token: Token, tail: &'a [u8]) -> coapace_proto::Request<'a> {
        let &Self { confirmable, code, repeatable, .. } = self;
        coapace_proto::Request { confirmable, code, token, tail, repeatable }
    }
}

/// Returns whether a response is complete: it has no Block option, and asks for no Echo option.
pub(crate) fn is_whole(response: &Response) -> bool {
    let more =
        |(number, _)| matches!(number, option::BLOCK1 | option::BLOCK2 | option::Q_BLOCK1 | option::ECHO);
    !response.options.iter().any(more)
}

/// Returns a single-message response, or an error if its body is larger than the client accepts.
pub(crate) fn within(response: Response, blocks: Blocks) -> Result<Response, Error> {
    let fits = response.payload.len() <= blocks.max_body;
    if fits { Ok(response) } else { Err(TransferError::TooLarge.into()) }
}

/// Checks that the options and payload of a request (`tail`) are not longer than a datagram may be.
pub(crate) fn fits(tail: &[u8]) -> Result<(), Error> {
    if tail.len() > MAX_DATAGRAM { Err(Error::TooLarge { bytes: tail.len() }) } else { Ok(()) }
}

/// Starts an exchange on a hub and waits for its first response. Later responses go into the inbox. If the future is
/// dropped, the exchange is cancelled.
pub(crate) async fn exchange(
    hub: &Arc<Hub>,
    to: Remote,
    inbox: Option<&Arc<Inbox>>,
    begin: impl FnOnce(&mut LockedHub, Instant) -> Result<ExchangeId, SendError>,
) -> Result<Response, Error> {
    let (first, response) = oneshot::channel();
    let receivers = Receivers { first: Some(first), inbox: inbox.cloned(), acknowledged: None };
    // A future that is dropped while it waits cancels the exchange, so that no more copies are sent.
    let _abandoned = Abandon { hub, id: hub.with(|state, now| expect(state, now, to, receivers, begin))? };
    response.await.unwrap_or(Err(Error::Closed))
}

/// Starts an exchange at the endpoint of a hub, and registers the receivers of its responses.
pub(crate) fn expect(
    state: &mut LockedHub,
    now: Instant,
    to: Remote,
    receivers: Receivers,
    begin: impl FnOnce(&mut LockedHub, Instant) -> Result<ExchangeId, SendError>,
) -> Result<ExchangeId, Error> {
    let id = begin(state, now)?;
    state.expect(now, id, to, receivers);
    Ok(id)
}

/// A guard that cancels an exchange when the guard is dropped, unless the first response has come.
pub(crate) struct Abandon<'a> {
    pub(crate) hub: &'a Hub,
    pub(crate) id: ExchangeId,
}

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        self.hub.abandon(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_uses_the_largest_block_size_that_is_allowed() {
        let sizes = [0, 16, 31, 32, 100, 512, 1023, 1024, 70_000].map(|bytes| 16 << szx(bytes));
        assert_eq!(sizes, [16, 16, 16, 32, 64, 512, 512, 1024, 1024]);
    }
}
