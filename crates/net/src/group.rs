//! A client's request to a group (RFC 7252 §8).

use std::net::SocketAddr;

use coapace_proto::{ExchangeId, Options, Request};
use tokio::sync::mpsc;

use crate::asker::{Asker, fits};
use crate::{Client, Error, Response};

/// Answers that may wait to be taken; more are lost, as on any path.
const MAX_WAITING: usize = 1_024;

/// What the members of a group answer, in the order of arrival. They spread their answers over a time of their own choice,
/// 5 s as a rule (DEFAULT_LEISURE, RFC 7252 §8.2), and nobody says which is the last: how long to wait is the caller's to
/// decide.
///
/// A member sends a large body in blocks, of which this is the first, or asks to repeat the request (4.01 with Echo): who
/// wants all of it asks that member alone (RFC 7959 §2.8).
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
    asker: Asker,
    /// Keeps the hub going.
    _client: Client,
    id: ExchangeId,
    answers: mpsc::Receiver<Answer>,
}

/// Who answers, and what.
pub(crate) type Answer = (SocketAddr, Response);

impl Group {
    pub(crate) fn begin(
        client: Client,
        asker: Asker,
        options: &Options,
        payload: &[u8],
    ) -> Result<Self, Error> {
        let mut tail = Vec::new();
        options.write(payload, &mut tail);
        fits(&tail)?;
        let (tell, answers) = mpsc::channel(MAX_WAITING);
        let &Asker { to, code, repeatable, .. } = &asker;
        let id = asker.hub.with(|state, now| {
            let token = state.token();
            let request = Request { confirmable: false, code, token, tail: &tail, repeatable };
            let id = state.endpoint.request_group(now, to, request)?;
            state.groups.insert(id, (now, tell));
            Ok::<_, Error>(id)
        })?;
        Ok(Self { asker, _client: client, id, answers })
    }

    /// The next answer, and who gave it; nothing once the client is closed. Answers with an option that must be understood
    /// and is not are left out. It may be dropped before it is done, and called again.
    pub async fn next(&mut self) -> Option<(SocketAddr, Response)> {
        self.answers.recv().await
    }
}

/// What comes later is nobody's.
impl Drop for Group {
    fn drop(&mut self) {
        self.asker.hub.with(|state, now| {
            state.groups.remove(&self.id);
            state.endpoint.cancel(now, self.id);
        });
    }
}
