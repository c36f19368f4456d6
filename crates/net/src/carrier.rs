//! The requests of a block-wise transfer, of which several may be outstanding.

use std::collections::VecDeque;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::time::Instant;

use coapace_control::Duration;
use coapace_proto::block::{self, Piece, Progress, Transfer};
use coapace_proto::{Code, ExchangeId, Options, Tail};
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tokio::sync::oneshot;

use crate::asker::{Abandon, Asker, OnProgress, RequestPath, expect, fits};
use crate::datagram::hub::LockedHub;
use crate::receivers::Receivers;
use crate::{Error, Response, Salvage};

/// The maximum number of requests that the server has acknowledged and whose response the client still awaits. A body
/// has only one response, which may answer any of its requests, usually one of the last (RFC 9177 §4.3). If more than
/// this many requests are not acknowledged yet, their number is the limit instead.
const KEPT: usize = 32;

/// The number of consecutive refusals (5.03) of the only outstanding request after which the transfer fails.
const MAX_REFUSED: u32 = 7;

/// The pause after the first refusal of the only outstanding request. It doubles with each further refusal. All pauses
/// together take 3 s.
const PAUSE: Duration = Duration::from_millis(50);

/// The limit of outstanding requests, for a server that refuses more. A refusal sets the limit to half of the
/// outstanding requests. After as many answers as the limit, the limit grows by one.
struct Share {
    most: usize,
    answered: usize,
    /// The number of consecutive refusals of the only outstanding request.
    refused: u32,
}

impl Share {
    const WHOLE: Self = Self { most: usize::MAX, answered: 0, refused: 0 };

    /// Handles the refusal of a request while `under_way` other requests are outstanding. Returns the pause before the
    /// next request, or `None` if there were too many refusals.
    fn refuse(&mut self, under_way: usize) -> Option<Duration> {
        (self.most, self.answered) = ((under_way / 2).max(1), 0);
        // The answers to the others set the pace, so no pause is needed.
        if under_way > 0 {
            return Some(Duration::ZERO);
        }
        self.refused += 1;
        (self.refused < MAX_REFUSED).then(|| PAUSE.times(1 << (self.refused - 1)))
    }

    fn answer(&mut self) {
        (self.refused, self.answered) = (0, self.answered.saturating_add(1));
        if self.answered >= self.most {
            (self.most, self.answered) = (self.most.saturating_add(1), 0);
        }
    }
}

/// A transfer that keeps the blocks of its response if it ends early.
struct Salvaged<'a> {
    transfer: Transfer,
    place: Option<&'a Salvage>,
}

impl<'a> Salvaged<'a> {
    /// Continues `transfer` after the blocks that `place` holds, if it holds any.
    fn new(mut transfer: Transfer, place: Option<&'a Salvage>) -> Self {
        if let Some(earlier) = place.and_then(Salvage::take) {
            transfer.resume(earlier);
        }
        Self { transfer, place }
    }
}

impl Drop for Salvaged<'_> {
    fn drop(&mut self) {
        if let Some(place) = self.place
            && let Some(partial) = self.transfer.take_partial()
        {
            place.put(partial);
        }
    }
}

impl Deref for Salvaged<'_> {
    type Target = Transfer;

    fn deref(&self) -> &Transfer {
        &self.transfer
    }
}

impl DerefMut for Salvaged<'_> {
    fn deref_mut(&mut self) -> &mut Transfer {
        &mut self.transfer
    }
}

/// The outcome of a request of a transfer.
enum PieceOutcome<'a> {
    /// The server has acknowledged the block. The response may come to this request, or to another of the transfer.
    Acknowledged(Piece, ExchangeId, PendingRequest<'a>),
    /// The response, or the reason why there is none. Holds the exchange if the server had acknowledged the request
    /// before.
    Answered(Piece, Result<Response, Error>, Option<ExchangeId>),
}

/// The future of an outstanding request, which returns the outcome of the request.
type PendingRequest<'a> = Pin<Box<dyn Future<Output = PieceOutcome<'a>> + Send + 'a>>;

impl Asker {
    /// Returns whether several requests of a body may be outstanding at once.
    pub(crate) fn has_bulk(&self) -> bool {
        matches!(&self.path, RequestPath::Endpoint(hub, _) if hub.profile.bulk.is_some()) && self.confirmable
    }

    /// Returns whether another request of the transfer would depart soon: the bulk mechanism has room for it. Over a
    /// connection it returns `false`.
    fn wants_more(&self) -> bool {
        match &self.path {
            RequestPath::Endpoint(hub, to) => hub.lock().endpoint.wants_bulk(*to),
            RequestPath::Connection(_) => false,
        }
    }

    /// Starts a request of a transfer when the future is polled. The request departs with the next messages of the hub.
    /// If the server may acknowledge the request without a response (`acknowledged`), the request has its own token.
    async fn ask(&self, piece: Piece, tail: Tail, acknowledged: bool) -> PieceOutcome<'_> {
        let RequestPath::Endpoint(hub, to) = &self.path else {
            return PieceOutcome::Answered(piece, self.send(self.token, tail).await, None);
        };
        let begin = |state: &mut LockedHub, now| {
            // A request that may be acknowledged without a response has its own token: a late response must not answer another
            // one.
            let shared = self.token.filter(|_| !acknowledged);
            let token = shared.unwrap_or_else(|| state.random.token());
            let request = self.request(token, tail.as_bytes());
            if piece.is_alone() && !acknowledged {
                // Other bodies' blocks may overtake it because its handler takes longer. That does not mean a loss.
                state.endpoint.request(now, *to, request)
            } else {
                state.endpoint.request_part(now, *to, request)
            }
        };
        let (first, response) = oneshot::channel();
        let (acknowledge, acknowledgement) = oneshot::channel();
        let receivers =
            Receivers { first: Some(first), inbox: None, acknowledged: acknowledged.then_some(acknowledge) };
        let exchange = fits(tail.as_bytes()).and_then(|()| {
            // The request is only begun here. `gather` and the next sending let it depart together with others.
            let (mut state, now) = (hub.lock(), hub.clock.now());
            let exchange = expect(&mut state, now, *to, receivers, begin);
            state.gather(now);
            exchange
        });
        let id = match exchange {
            Ok(id) => id,
            Err(error) => return PieceOutcome::Answered(piece, Err(error), None),
        };
        // Moved into the future below, so that dropping it cancels the exchange.
        let abandoned = Abandon { hub, id };
        let mut answer = async move {
            let _abandoned = abandoned;
            response.await.unwrap_or(Err(Error::Closed))
        }
        .boxed();
        // Either the acknowledgement or the response comes first. Both end the wait for room in the window.
        if acknowledged {
            match select(acknowledgement, answer).await {
                Either::Left((Ok(()), answer)) => {
                    let later = async move { PieceOutcome::Answered(piece, answer.await, Some(id)) };
                    return PieceOutcome::Acknowledged(piece, id, later.boxed());
                }
                Either::Left((Err(_), unanswered)) => answer = unanswered,
                Either::Right((response, _)) => return PieceOutcome::Answered(piece, response, None),
            }
        }
        PieceOutcome::Answered(piece, answer.await, None)
    }

    /// Carries out a transfer. `first` is the response to its first request, if that was sent. Returns the whole response.
    pub(crate) async fn carry(
        &self,
        mut transfer: Transfer,
        first: Option<Response>,
    ) -> Result<Response, Error> {
        if self.has_bulk() && self.code == Code::GET {
            transfer = transfer.with_random_access();
        }
        let mut transfer = Salvaged::new(transfer, self.salvage.as_ref());
        let (begun, before) = (Instant::now(), first.as_ref().map_or_else(Default::default, |it| it.elapsed));
        let (mut transmissions, mut refusal, mut challenged) = (0, None::<Response>, None);
        let (mut under_way, mut kept) = (FuturesUnordered::new(), VecDeque::new());
        let mut share = Share::WHOLE;
        let mut answer = match first {
            // This is the request that the response answers.
            Some(first) => transfer.next_request()?.map(|(piece, _)| (piece, first)),
            None => None,
        };
        loop {
            if let Some((piece, mut response)) = answer.take() {
                transmissions = transmissions.max(response.transmissions);
                // A request is repeated with Echo only once, because a server that challenges the repetition would
                // challenge every one.
                let challenge = response.challenge().filter(|_| challenged != Some(piece));
                // A server without room for all blocks at once has it for fewer.
                let is_refused =
                    response.code == Code::SERVICE_UNAVAILABLE && transfer.transferred().received > 0;
                let pause = is_refused.then(|| share.refuse(under_way.len().saturating_sub(kept.len())));
                if let Some(pause) = pause.flatten() {
                    self.pause(pause);
                    transfer.lost(piece);
                } else if let Some(value) = challenge {
                    challenged = Some(piece);
                    transfer.repeat_with(&value);
                    transfer.lost(piece);
                } else if response.as_message(|message| transfer.handle_piece(piece, message))?
                    == Progress::Complete
                {
                    let elapsed = before + begun.elapsed();
                    let mut payload = transfer.take_body().into();
                    // A server that knows no blocks has not said why it refuses the body.
                    if let Some(refusal) = refusal.filter(|_| response.code == Code::BAD_OPTION) {
                        (payload, response) = (refusal.payload.clone(), refusal);
                    }
                    let options = block::OPTIONS.into_iter().fold(response.options, Options::without);
                    return Ok(Response { options, payload, elapsed, transmissions, ..response });
                } else if response.code == Code::REQUEST_ENTITY_TOO_LARGE {
                    transfer.tag(&self.tag());
                    refusal = Some(response);
                } else {
                    share.answer();
                }
                self.tell_progress(&transfer);
            }
            // Answers that have arrived together are handled first, so that the next requests depart together.
            let mut next = under_way.next().now_or_never().flatten();
            if next.is_none() {
                loop {
                    let before = under_way.len();
                    while under_way.len() <= kept.len()
                        || under_way.len() - kept.len() < share.most && self.wants_more()
                    {
                        let Some((piece, tail)) = transfer.next_request()? else { break };
                        let mut asked = self.ask(piece, tail, transfer.uses_q_block()).boxed();
                        // It begins now, so that `wants_more` counts it.
                        match asked.as_mut().now_or_never() {
                            // Another thread has received the answer already.
                            Some(outcome) => under_way.push(std::future::ready(outcome).boxed()),
                            None => under_way.push(asked),
                        }
                    }
                    if under_way.len() == before {
                        break;
                    }
                    // With these on their way, the mechanism may allow more.
                    self.depart();
                }
                next = under_way.next().await;
            }
            match next.ok_or(Error::TimedOut)? {
                PieceOutcome::Acknowledged(piece, id, later) => {
                    transfer.acknowledged(piece);
                    kept.push_back(id);
                    under_way.push(later);
                    self.let_go(&mut kept, under_way.len());
                    self.tell_progress(&transfer);
                }
                PieceOutcome::Answered(piece, response, acknowledged) => {
                    kept.retain(|&other| Some(other) != acknowledged);
                    match response {
                        Ok(response) => answer = Some((piece, response)),
                        // Its block was taken. Another request may bring the response.
                        Err(_) if acknowledged.is_some() => {}
                        Err(Error::Reset) if transfer.uses_q_block() && kept.is_empty() => {
                            transfer.without_q_block();
                        }
                        // The server has answered others in the meantime.
                        Err(Error::GivenUp { .. }) if transfer.lost(piece) => {}
                        Err(error) => return Err(error),
                    }
                }
            }
        }
    }

    /// Stops waiting for responses to the oldest of the acknowledged requests (`kept`), if there are too many. `all` is
    /// the number of outstanding requests, acknowledged or not.
    fn let_go(&self, kept: &mut VecDeque<ExchangeId>, all: usize) {
        let RequestPath::Endpoint(hub, _) = &self.path else { return };
        while kept.len() > KEPT.max(all.saturating_sub(kept.len()))
            && let Some(oldest) = kept.pop_front()
        {
            hub.abandon(oldest);
        }
    }

    /// Sends the requests that have been started.
    fn depart(&self) {
        if let RequestPath::Endpoint(hub, _) = &self.path {
            hub.with(|_, _| ());
        }
    }

    /// Delays all further blocks for this time.
    fn pause(&self, span: Duration) {
        if let RequestPath::Endpoint(hub, to) = &self.path {
            hub.with(|state, now| state.endpoint.pause_bulk(now, *to, span));
        }
    }

    fn tell_progress(&self, transfer: &Transfer) {
        if let Some(OnProgress(tell)) = &self.progress {
            tell(transfer.transferred());
        }
    }
}
