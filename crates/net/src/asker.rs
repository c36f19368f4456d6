//! The exchanges of one call: as many as its bodies take blocks.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use coap_numbers::option;
use coapace_control::Instant;
use coapace_proto::block::{self, Transfer};
use coapace_proto::{Code, ExchangeId, Options, Request, SendError, Tail, Token, echo};

use crate::address::Remote;
use crate::datagram::hub::{Hub, Locked};
use crate::datagram::io::MAX_DATAGRAM;
use crate::progress::OnProgress;
use crate::{Error, Response};

/// The bounds of bodies larger than a datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocks {
    /// The size exponent of the largest block either side shall send.
    pub(crate) szx: u8,
    /// The most bytes of a response that are taken.
    pub(crate) max_body: usize,
}

impl Default for Blocks {
    fn default() -> Self {
        Self { szx: coapace_proto::block::MAX_SZX, max_body: 16 << 20 }
    }
}

impl Blocks {
    /// Returns the bytes of a block.
    pub(crate) fn size(self) -> usize {
        16 << self.szx
    }

    /// Returns whether a request takes more than its options and payload in one message.
    pub(crate) fn are_needed(self, options: &Options, payload: usize) -> bool {
        let said = |(number, _)| matches!(number, option::BLOCK1 | option::BLOCK2 | option::SIZE1);
        self.szx < coapace_proto::block::MAX_SZX || payload > self.size() || options.iter().any(said)
    }
}

/// Returns the exponent of the largest block of at most so many bytes (RFC 7959 §2.2).
pub(crate) fn szx(bytes: usize) -> u8 {
    (bytes.max(16).ilog2() - 4).min(coapace_proto::block::MAX_SZX.into()) as u8
}

/// The endpoint, destination and form of the requests of a call.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    pub(crate) hub: Arc<Hub>,
    pub(crate) to: Remote,
    pub(crate) code: Code,
    pub(crate) confirmable: bool,
    pub(crate) repeatable: bool,
    /// The token of all requests, if they have one in common.
    pub(crate) token: Option<Token>,
    pub(crate) progress: Option<OnProgress>,
}

impl Asker {
    /// Gives all blocks of a body one token, except over DTLS, where no token is used twice (RFC 9175 §4.2). Some servers know
    /// the blocks that belong together by that alone (go-coap, node-coap), though nothing asks a client for it.
    pub(crate) fn with_one_token(mut self) -> Self {
        if !self.hub.is_secure() {
            self.token = Some(self.hub.lock().token());
        }
        self
    }

    /// Returns the transfer of a body to come, and of another back.
    pub(crate) fn transfer(&self, mut options: Options, body: Vec<u8>, blocks: Blocks) -> Transfer {
        if body.len() > blocks.size() && options.value(option::REQUEST_TAG).is_none() {
            // Tells it from others that this client has under way to the same resource (RFC 9175 §3.3).
            options.push(option::REQUEST_TAG, &self.hub.lock().token());
        }
        Transfer::new(options, body, blocks.szx, blocks.max_body)
    }

    /// Sends one request of these options and this payload, and returns the response.
    pub(crate) async fn send(&self, tail: &Tail) -> Result<Response, Error> {
        let tail = tail.as_bytes();
        fits(tail)?;
        let &Self { code, confirmable, repeatable, token, .. } = self;
        exchange(&self.hub, self.to, |state, now, to| {
            let token = token.unwrap_or_else(|| state.token());
            state.endpoint.request(now, to, Request { confirmable, code, token, tail, repeatable })
        })
        .await
    }
}

impl Asks for Asker {
    async fn ask(&self, transfer: &Transfer) -> Result<Response, Error> {
        self.send(&transfer.request()?).await
    }

    fn progress(&self) -> Option<&OnProgress> {
        self.progress.as_ref()
    }
}

/// Asks for the parts of a transfer, over one transport or the other.
pub(crate) trait Asks: Sync {
    /// Sends the next request of a transfer, and returns the response.
    fn ask(&self, transfer: &Transfer) -> impl Future<Output = Result<Response, Error>> + Send;

    /// Returns the listener that is told of every block, if there is one.
    fn progress(&self) -> Option<&OnProgress>;

    /// Goes on from the response to the first request, until all of the response is there.
    fn finish(
        &self,
        mut transfer: Transfer,
        mut response: Response,
    ) -> impl Future<Output = Result<Response, Error>> + Send {
        async move {
            let (mut elapsed, mut transmissions) = (Duration::ZERO, 0);
            let mut repeated = false;
            loop {
                elapsed += response.elapsed;
                transmissions = transmissions.max(response.transmissions);
                // Once for each request: who asks again after that will go on asking.
                let asked = response.as_message(|message| echo::challenged(message).map(<[u8]>::to_vec));
                let challenge = asked.filter(|_| !repeated);
                repeated = challenge.is_some();
                if let Some(value) = challenge {
                    transfer.repeat_with(&value);
                } else if response.as_message(|message| transfer.handle(message))?
                    == block::Progress::Complete
                {
                    let options = response.options.without(option::BLOCK1).without(option::BLOCK2);
                    let payload = transfer.into_body().into();
                    return Ok(Response { options, payload, elapsed, transmissions, ..response });
                }
                if let Some(progress) = self.progress() {
                    progress.tell(transfer.transferred());
                }
                response = self.ask(&transfer).await?;
            }
        }
    }
}

/// Returns whether a response is all there is: no part of a body, and no challenge.
pub(crate) fn is_whole(response: &Response) -> bool {
    !response
        .options
        .iter()
        .any(|(number, _)| matches!(number, option::BLOCK1 | option::BLOCK2 | option::ECHO))
}

/// Checks that a request fits into a datagram.
pub(crate) fn fits(tail: &[u8]) -> Result<(), Error> {
    if tail.len() > MAX_DATAGRAM { Err(Error::TooLarge { bytes: tail.len() }) } else { Ok(()) }
}

/// Begins an exchange on a hub and waits for its end; if that is not waited for, it is cancelled.
pub(crate) async fn exchange(
    hub: &Arc<Hub>,
    to: Remote,
    begin: impl FnOnce(&mut Locked, Instant, Remote) -> Result<ExchangeId, SendError>,
) -> Result<Response, Error> {
    let (id, told) = hub.with(|state, now| {
        let id = begin(state, now, to)?;
        Ok::<_, Error>((id, state.wait(now, id, to)))
    })?;
    let _abandoned = Abandon { hub, id };
    told.await.unwrap_or(Err(Error::Closed))
}

/// Cancels an exchange that nobody waits for any more.
struct Abandon<'a> {
    hub: &'a Hub,
    id: ExchangeId,
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
    fn a_block_is_the_largest_that_is_allowed() {
        let sizes = [0, 16, 31, 32, 100, 512, 1023, 1024, 70_000].map(|bytes| 16 << szx(bytes));
        assert_eq!(sizes, [16, 16, 16, 32, 64, 512, 512, 1024, 1024]);
    }
}
