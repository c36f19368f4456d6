//! A client's request to a group (RFC 7252 §8).

use std::net::SocketAddr;
use std::sync::Arc;

use coapace_proto::ExchangeId;
use tokio::sync::mpsc;

use crate::address::Remote;
use crate::asker::fits;
use crate::datagram::hub::Hub;
use crate::endpoints::Endpoints;
use crate::response::MemberResponse;
use crate::{Error, Response};

/// The number of answers that may wait to be taken. Further ones are dropped.
const MAX_WAITING: usize = 1_024;

/// The answers of a group's members, in the order of arrival. Members spread their answers over a time, usually 5 s
/// (DEFAULT_LEISURE, RFC 7252 §8.2). No answer is marked as the last, so the caller decides how long to wait.
///
/// A member with a large body sends its first block, or asks for an Echo option (4.01). The whole body comes from a request
/// to that member alone (RFC 7959 §2.8).
///
/// ```no_run
/// # async fn example() -> Result<(), coapace_net::Error> {
/// let mut answers = coapace_net::Client::new().get("coap://224.0.1.187/.well-known/core").group().await?;
/// while let Some((member, response)) = answers.next().await {
///     println!("{member}: {}", response.text());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Group {
    hub: Arc<Hub>,
    /// Keeps the hub open.
    _client: Arc<Endpoints>,
    id: ExchangeId,
    answers: mpsc::Receiver<MemberResponse>,
}

impl Group {
    /// Sends a request to the group at `to`.
    pub(crate) fn begin(
        client: Arc<Endpoints>,
        hub: Arc<Hub>,
        to: Remote,
        request: coapace_proto::Request<'_>,
    ) -> Result<Self, Error> {
        fits(request.tail)?;
        let (tell, answers) = mpsc::channel(MAX_WAITING);
        let id = hub.with(|state, now| {
            let id = state.endpoint.request_group(now, to, request)?;
            state.groups.insert(id, (now, tell));
            Ok::<_, Error>(id)
        })?;
        Ok(Self { hub, _client: client, id, answers })
    }

    /// Returns the next answer and its member, or nothing once the client is closed. Answers with an unknown critical option
    /// are left out. The future may be dropped before it is done, and `next` called again.
    pub async fn next(&mut self) -> Option<(SocketAddr, Response)> {
        self.answers.recv().await
    }
}

/// Drops later answers.
impl Drop for Group {
    fn drop(&mut self) {
        self.hub.with(|state, now| {
            state.groups.remove(&self.id);
            state.endpoint.cancel(now, self.id);
        });
    }
}
