//! A client's request to a group (RFC 7252 §8).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use coap_numbers::option;
use coapace_control::Instant;
use coapace_proto::{ExchangeId, Message, Options};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep_until;

use crate::address::Remote;
use crate::asker::{Asker, Blocks, RequestPath, fits, is_whole};
use crate::datagram::hub::Hub;
use crate::endpoints::Endpoints;
use crate::{Error, Response};

/// The maximum number of answers that may be queued. Further answers are dropped.
const MAX_WAITING: usize = 1_024;

/// The time added to the leisure of the members, for the way there and back, and for their processing.
const MARGIN: Duration = Duration::from_secs(1);

/// The value of No-Response that suppresses responses of all classes (RFC 7967 §2.1).
const NO_CLASS: u64 = 26;

/// The answers of a group's members, sorted by arrival. Members spread their answers over a time, usually 5 s (DEFAULT_LEISURE,
/// RFC 7252 §8.2). The last answer cannot be recognised: answers are awaited for the [leisure](crate::Call::leisure) and a
/// second more, or for the [timeout](crate::Call::timeout) of the request.
///
/// A member with a large body sends its first block, or asks for an Echo option (4.01). [`whole`](Self::whole) then gets the
/// rest from only that member (RFC 7959 §2.8).
///
/// ```no_run
/// # async fn example() -> Result<(), coapace_net::Error> {
/// let mut answers = coapace_net::Client::new().get("coap://224.0.1.187/.well-known/core").group().await?;
/// while let Some((member, response)) = answers.next().await {
///     println!("{member}: {}", answers.whole(member, response).await?.text());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Group {
    hub: Arc<Hub>,
    /// The client, which is kept so that the hub stays open.
    _client: Arc<Endpoints>,
    id: ExchangeId,
    answers: mpsc::Receiver<(Remote, Response)>,
    until: tokio::time::Instant,
    request: GroupRequest,
}

/// The request to a group, which is also sent to a single member to get the rest of the member's answer.
#[derive(Debug)]
pub(crate) struct GroupRequest {
    /// The `Asker` that sends the request. Its destination is the group.
    pub(crate) asker: Asker,
    pub(crate) options: Options,
    pub(crate) payload: Vec<u8>,
    pub(crate) blocks: Blocks,
    pub(crate) leisure: Duration,
    pub(crate) timeout: Option<Duration>,
}

/// A request to a group, as registered at its endpoint.
#[derive(Debug)]
pub(crate) struct GroupExchange {
    to: Remote,
    /// The time at which the request departed; before that, the time of the call.
    since: Instant,
    departed: Option<oneshot::Sender<Result<(), Error>>>,
    answers: mpsc::Sender<(Remote, Response)>,
}

impl GroupExchange {
    /// Queues the answer of a member. The answer is dropped if too many are queued, or if the receiver is gone.
    pub(crate) fn answer(&self, now: Instant, from: Remote, message: &Message<'_>) {
        let response = Response::of(message, now.since(self.since).into(), 1);
        // The caller holds the lock of the hub, so it must not wait for room.
        let _ = self.answers.try_send((from, response));
    }

    /// Records that the request has departed, and wakes the task that waits for this. Later calls have no effect.
    pub(crate) fn depart(&mut self, now: Instant) {
        if let Some(departed) = self.departed.take() {
            self.since = now;
            let _ = departed.send(Ok(()));
        }
    }

    /// Records that the system refused to send a datagram. If it was this request, the request has failed.
    pub(crate) fn fail(&mut self, to: Remote, error: &io::Error) {
        if to == self.to
            && let Some(departed) = self.departed.take()
        {
            let _ = departed.send(Err(Error::Unreachable(error.kind())));
        }
    }
}

impl Group {
    /// Sends a request to a group, as soon as NSTART and PROBING_RATE allow. Each group is a separate destination.
    pub(crate) async fn begin(client: Arc<Endpoints>, request: GroupRequest) -> Result<Self, Error> {
        let RequestPath::Endpoint(hub, to) = request.asker.path.clone() else { return Err(Error::Closed) };
        let mut tail = Vec::new();
        request.options.write(&request.payload, &mut tail);
        fits(&tail)?;
        let (tell, answers) = mpsc::channel(MAX_WAITING);
        let (departed, departure) = oneshot::channel();
        let id = hub.with(|state, now| {
            let asked = request.asker.request(state.random.token(), &tail);
            let id = state.endpoint.request_group(now, to, asked)?;
            state
                .groups
                .insert(id, GroupExchange { to, since: now, departed: Some(departed), answers: tell });
            Ok::<_, Error>(id)
        })?;
        let until = tokio::time::Instant::now();
        // Made before the wait, so that the request is cancelled if the future is dropped.
        let mut this = Self { hub, _client: client, id, answers, until, request };
        // The time for answers begins when the request departs: PROBING_RATE may delay it.
        departure.await.unwrap_or(Err(Error::Closed))?;
        this.until = tokio::time::Instant::now() + this.wait();
        Ok(this)
    }

    /// Returns the time for which answers are awaited; zero if No-Response suppresses them.
    fn wait(&self) -> Duration {
        let suppressed = self.request.options.uint(option::NO_RESPONSE).unwrap_or(0);
        let wait = self.request.timeout.unwrap_or(self.request.leisure.saturating_add(MARGIN));
        // A timer of tokio that is set for years ahead expires at once.
        if suppressed & NO_CLASS == NO_CLASS { Duration::ZERO } else { wait.min(Duration::from_secs(86_400)) }
    }

    /// Returns the next answer and the address of its member, or `None` once the time has passed or the client is
    /// closed. Answers with an unknown critical option are left out. The future may be dropped before it is done, and
    /// `next` called again.
    pub async fn next(&mut self) -> Option<(SocketAddr, Response)> {
        let (from, response) = tokio::select! {
            // Answers that arrived while a member was asked for the rest come before the end of the time.
            biased;
            answer = self.answers.recv() => answer?,
            () = sleep_until(self.until) => return None,
        };
        Some((self.hub.socket.address(from), response))
    }

    /// Returns the complete answer of a member. If it was a first block, or asked for an Echo option, the rest is requested
    /// from the member with confirmable requests (RFC 7959 §2.8, RFC 9175 §2.3).
    ///
    /// # Errors
    /// The errors of any request to the member.
    pub async fn whole(&self, member: SocketAddr, response: Response) -> Result<Response, Error> {
        if is_whole(&response) {
            return Ok(response);
        }
        let GroupRequest { asker, options, payload, blocks, timeout, .. } = &self.request;
        let path = RequestPath::Endpoint(self.hub.clone(), self.hub.socket.remote(member));
        let mut asker = Asker { path, confirmable: true, ..asker.clone() };
        asker.share_token();
        // No-Response is for the group. This member has to answer every request for a block.
        let options = options.clone().without(option::NO_RESPONSE);
        let transfer = asker.transfer(options, payload.clone(), *blocks).await?;
        crate::call::in_time(*timeout, asker.carry(transfer, Some(response))).await
    }
}

/// Discards later answers.
impl Drop for Group {
    fn drop(&mut self) {
        self.hub.with(|state, now| {
            state.groups.remove(&self.id);
            state.endpoint.cancel(now, self.id);
        });
    }
}
