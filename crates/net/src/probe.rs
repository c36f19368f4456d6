//! The test whether a server accepts several blocks of a body at once (Q-Block1, RFC 9177).

use std::time::Duration;

use coap_numbers::option;
use coapace_proto::block::{Block, TransferError};
use coapace_proto::{Code, Options, Tail};
use tokio::runtime::Handle;

use crate::asker::{Asker, RequestPath, exchange, fits};
use crate::call::in_time;
use crate::{Error, Response};

/// The number of blocks up to which a body is sent one block after the other, because the test takes a round trip, like a
/// block.
const TOO_FEW: usize = 4;

/// The longest wait for the answer. Some servers drop a request with an unknown critical option.
const PATIENCE: Duration = Duration::from_secs(10);

impl Asker {
    /// Returns whether Q-Block1 is worthwhile for a body of this many blocks, and the server supports it. From an
    /// unknown server the client requests 16 bytes of the server's links with Q-Block2: a server that supports Q-Block1
    /// also supports Q-Block2 (RFC 9177 §4.1). Testing with a block of the body could do harm: some servers ignore
    /// unknown critical options, and would take the block for the whole body.
    ///
    /// # Errors
    /// The errors of any request.
    pub(crate) async fn takes_q_block(&mut self, options: &Options, blocks: usize) -> Result<bool, Error> {
        let is_proxied =
            |(number, _): (u16, &[u8])| matches!(number, option::PROXY_URI | option::PROXY_SCHEME);
        if blocks <= TOO_FEW || options.iter().any(is_proxied) {
            // The answer of a proxy may come from its cache or from another server.
            return Ok(false);
        }
        if let Some(known) = self.noted() {
            return Ok(known);
        }
        let host = |&(number, _): &(u16, &[u8])| matches!(number, option::URI_HOST | option::URI_PORT);
        let to_host = options.iter().filter(host).fold(Options::default(), |mut to_host, (number, value)| {
            to_host.push(number, value);
            to_host
        });
        let links = to_host.uri_path(".well-known").uri_path("core");
        // The smallest block, because only the option in the answer matters.
        let least = Block::new(0, false, 0).into_iter().fold(links, Options::q_block2);
        let tail = least.tail(&[]).map_err(TransferError::Option)?;
        // A client that blocks may have no runtime. It waits until it gives up.
        let patience = Handle::try_current().is_ok().then_some(PATIENCE);
        let answer = in_time(patience, self.settle(|asker| asker.ask_for_links(tail.clone())));
        let response = match answer.await {
            // The server may also be away for a while, so nothing is noted.
            Err(Error::TimedOut | Error::GivenUp { .. }) => return Ok(false),
            answer => answer?,
        };
        let takes = response.code == Code::CONTENT && response.options.value(option::Q_BLOCK2).is_some();
        if let RequestPath::Endpoint(hub, to) = &self.path {
            hub.lock().destinations.note_q_block(*to, takes);
        }
        Ok(takes)
    }

    /// Returns whether the server supports Q-Block, if that is known.
    fn noted(&self) -> Option<bool> {
        match &self.path {
            RequestPath::Endpoint(hub, to) if self.turns.is_none() => hub.lock().destinations.q_block(*to),
            _ => None,
        }
    }

    async fn ask_for_links(self, tail: Tail) -> Result<Response, Error> {
        let RequestPath::Endpoint(hub, to) = &self.path else { return Ok(Response::new(Code::BAD_OPTION)) };
        fits(tail.as_bytes())?;
        let get = Self { code: Code::GET, ..self.clone() };
        let asked = exchange(hub, *to, None, |state, now| {
            let token = state.random.token();
            state.endpoint.request(now, *to, get.request(token, tail.as_bytes()))
        });
        match asked.await {
            // Some servers reject the unknown option with a Reset. That is an answer, too.
            Err(Error::Reset | Error::BadOption(_)) => Ok(Response::new(Code::BAD_OPTION)),
            response => response,
        }
    }
}
