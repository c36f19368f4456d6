//! The server of one thread over datagrams. It calls handlers for requests and for changes of resources.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use coap_numbers::option;
use coapace_control::Instant;
use coapace_proto::block::Asked;
use coapace_proto::{Code, Kind, Message, Responder};

use super::driver::EndpointRole;
use super::hub::{Hub, LockedHub};
use super::rates::Rates;
use super::sets::BodyRequest;
use crate::access;
use crate::address::Remote;
use crate::conversation::{HandlerPlace, HandlerPlaces, NoPlace, ServerStep, Terms, Wish, has_terms};
use crate::handler::{Called, HandlerFuture, Routed};
use crate::{Rejection, Response, Router, ServerConfig};

/// The part of a server's driver that handles requests: it calls their handlers. Handlers that wait continue as tasks.
pub(crate) struct Serving {
    router: Router,
    pub(crate) config: ServerConfig,
    places: HandlerPlaces,
    /// The limit of each client's rate of requests, or `None` without such a limit.
    rates: Option<Rates>,
}

impl EndpointRole for Serving {
    fn request(&mut self, hub: &Arc<Hub>, now: Instant, responder: Responder<Remote>, message: &Message<'_>) {
        if responder.group {
            hub.lock().counters.group_requests += 1;
        }
        note_access(hub, &responder, message);
        // A server that stops takes no new requests, but says so (5.03).
        if hub.closing.has_begun() {
            return self.refuse(hub, now, responder);
        }
        if !responder.group
            && let Some(seconds) = self.rates.as_mut().and_then(|rates| rates.refuses(now, responder.to))
        {
            let mut state = hub.lock();
            state.counters.limited += 1;
            state.stopped = Some(responder.to);
            return state.respond(now, responder, &Rejection::too_many_requests(seconds).into());
        }
        // A non-confirmable request with an unknown critical option is ignored (RFC 7252 §5.4.1).
        if message.kind == Kind::NonConfirmable && self.router.is_bad_option(message) {
            return hub.lock().answers.note_answer(&responder, None, 0);
        }
        // The common request has none of these, and takes the short way below.
        if responder.group || !responder.is_remembered() || has_terms(message) {
            return self.negotiate(hub, now, responder, message);
        }
        // Most handlers do not wait, so the terms that a place depends on are read only if places are few.
        let Ok((called, mut place)) = self.call(hub, responder.to, message, true) else {
            return self.negotiate(hub, now, responder, message);
        };
        let mut state = hub.lock();
        if let Called::Ready(Some(response)) = &called
            && state.answers.write_small(responder.to, message, response)
        {
            return state.respond_encoded(now, responder, response.code);
        }
        let terms = state.answers.admit(now, responder.to, message, Terms::of(message, None));
        let responder = responder.limited(terms.allowance);
        drop(state);
        place.iter_mut().filter(|_| terms.verified).for_each(HandlerPlace::verify);
        self.settle(hub, now, responder, terms, called, place);
    }

    fn too_long(&mut self, hub: &Arc<Hub>, now: Instant, responder: Responder<Remote>, head: &Message<'_>) {
        note_access(hub, &responder, head);
        hub.lock().respond(now, responder, &self.config.too_large());
    }

    fn proceed(&mut self, hub: &Arc<Hub>, now: Instant, open: &BodyRequest) {
        // The client asked for the whole body once. Each further set is answered as if it had asked for it.
        let tail = open.next_tail();
        let responder = open.responder.further();
        let (code, token) = (responder.method, responder.token());
        let next = Message { code, token, tail: &tail, ..Message::empty(Kind::Confirmable, 0) };
        if !hub.closing.has_begun() {
            self.negotiate(hub, now, responder, &next);
        }
    }

    fn resources_changed(&mut self, hub: &Arc<Hub>) {
        let now = hub.clock.now();
        let due = hub.lock().answers.due();
        for due in due {
            let request =
                Message { code: Code::GET, tail: &due.tail, ..Message::empty(Kind::NonConfirmable, 0) };
            match self.router.call(hub.peer(due.from), &request) {
                Called::Ready(response) => {
                    if hub.lock().publish(now, due.number, response) {
                        hub.look_at_resources();
                    }
                }
                // There is at most one for each observed request, and the number of these is bounded.
                Called::Pending(rest) => {
                    let waiting = WaitingHandler::new(hub, None);
                    tokio::spawn(async move {
                        let (hub, response) = (&waiting.hub, rest.await);
                        if hub.with(|state, now| state.publish(now, due.number, response)) {
                            hub.look_at_resources();
                        }
                    });
                }
            }
        }
    }

    fn closing(&mut self, hub: &Arc<Hub>) {
        hub.lock().dismiss_observers(&self.config.unavailable());
    }
}

impl Serving {
    pub(crate) fn new(hub: &Arc<Hub>, router: Router, config: ServerConfig) -> Self {
        router.resources().for_each(|resource| resource.attach(hub));
        let places = HandlerPlaces::new(config.max_pending);
        let peers = config.of_each_core().config.max_peers;
        let rates = config.max_rate.map(|rate| Rates::new(rate.get(), peers));
        Self { router, config, places, rates }
    }

    /// Handles a request whose answer depends on its terms, such as its Block options or whether the client is
    /// verified.
    fn negotiate(
        &mut self,
        hub: &Arc<Hub>,
        now: Instant,
        responder: Responder<Remote>,
        message: &Message<'_>,
    ) {
        let mut state = hub.lock();
        if let Some(refusal) = self.router.refuses_block(message) {
            return state.respond(now, responder, &refusal);
        }
        let Ok(block2) = message.block2() else {
            return state.respond(now, responder, &Response::new(Code::BAD_REQUEST));
        };
        let terms = Terms::of(message, block2);
        let set = match Asked::of(message, state.answers.max_szx()) {
            // A server ignores it in a request to a group (RFC 9177 §4.8), and beside Block it must not be (§4.1).
            Ok(Some(_)) if responder.group => return state.answers.note_answer(&responder, None, 0),
            Ok(Some(_)) if has_block_options(message) => {
                return state.respond(now, responder, &Response::new(Code::BAD_OPTION));
            }
            Ok(set) => set,
            Err(bad) => {
                let bad = Response::new(Code::BAD_REQUEST).payload(bad.to_string());
                return state.respond(now, responder, &bad);
            }
        };
        if set.is_some() {
            state.answers.sets.note(responder, message);
        }
        let terms = set.into_iter().fold(terms, Terms::for_set);
        let terms = if responder.group { terms.to_group() } else { terms };
        let mut terms = state.answers.admit(now, responder.to, message, terms);
        let responder = responder.limited(terms.allowance);
        // A request that a copy could repeat is not carried out, unless the source is verified and a place is left for it.
        let remembered =
            responder.is_remembered() || terms.verified && state.endpoint.remember(now, &responder);
        if !remembered {
            return self.forgo(&mut state, now, responder, &terms);
        }
        let tail = match state.answers.bodies.take(now, responder.to, message, &mut terms) {
            ServerStep::Call(tail) => tail,
            ServerStep::Answer(response) => return state.answer(now, responder, &terms, Some(response)),
            ServerStep::Reply(code, tail) => {
                return state.respond_with(now, responder, code, tail.as_bytes());
            }
            ServerStep::Acknowledge => {
                // A later request gets the response, so this one needs no responder any more.
                let _ = state.endpoint.acknowledge(now, responder);
                return state.answers.note_answer(&responder, None, 0);
            }
            ServerStep::Challenge => return state.challenge(now, responder, &terms),
        };
        let request = Message { tail: &tail, ..*message };
        match terms.wish(&request) {
            Some(Wish::Observe) => {
                if let Some(resource) = self.router.observable(&request)
                    && !state.register(now, &responder, resource, &request, &mut terms)
                {
                    return state.challenge(now, responder, &terms);
                }
            }
            Some(Wish::Deregister) => state.deregister(now, &responder, message.token),
            None => {}
        }
        // A handler may use the hub.
        drop(state);
        match self.call(hub, responder.to, &request, !terms.verified) {
            Ok((called, place)) => self.settle(hub, now, responder, terms, called, place),
            Err(why) => self.turn_away(hub, now, responder, &terms, why),
        }
    }

    /// Calls the handler of a request in a slot, if one is free.
    fn call(
        &mut self,
        hub: &Hub,
        from: Remote,
        request: &Message<'_>,
        stranger: bool,
    ) -> Result<(Called, Option<HandlerPlace>), NoPlace> {
        Ok(match self.router.route_of(request) {
            Routed::Answer(response) => (response.into(), None),
            Routed::Handler(chosen) => {
                // The place comes before the call, because a handler that has begun cannot be taken back.
                let place = self.places.take(chosen.resource, stranger)?;
                (chosen.call(hub.peer(from), request), Some(place))
            }
        })
    }

    /// Answers with the result of a handler, or lets the handler wait in its slot.
    fn settle(
        &self,
        hub: &Arc<Hub>,
        now: Instant,
        responder: Responder<Remote>,
        terms: Terms,
        called: Called,
        place: Option<HandlerPlace>,
    ) {
        match called {
            Called::Ready(response) => hub.lock().answer(now, responder, &terms, response),
            Called::Pending(rest) => {
                hub.lock().counters.deferred += 1;
                let waiting = WaitingHandler::new(hub, place);
                tokio::spawn(answer_later(waiting, responder, terms, rest, self.config.acknowledge_after));
            }
        }
    }

    /// Refuses a request because no slot is free for its handler. The request has had no effect, so an unverified
    /// client may repeat it with an Echo option, unless its body would have to be sent again.
    fn turn_away(
        &self,
        hub: &Arc<Hub>,
        now: Instant,
        responder: Responder<Remote>,
        terms: &Terms,
        why: NoPlace,
    ) {
        let mut state = hub.lock();
        if why == NoPlace::Strangers && !terms.to_group && terms.block1.is_none() {
            return state.challenge(now, responder, terms);
        }
        state.refuse_to_observe(now, &responder, terms, true);
        drop(state);
        self.refuse(hub, now, responder);
    }

    /// Refuses a request that the endpoint has no space to remember, because a copy of the request would be executed
    /// again. A verified client gets 5.03, an unverified client is challenged, and a group request is not answered.
    fn forgo(&self, state: &mut LockedHub, now: Instant, responder: Responder<Remote>, terms: &Terms) {
        state.counters.unremembered += 1;
        state.stopped = Some(responder.to);
        if responder.group {
            state.answers.note_answer(&responder, None, 0);
        } else if terms.verified {
            state.respond(now, responder, &self.config.unavailable());
        } else {
            // The repetition is verified, and may take a slot for verified sources.
            state.challenge(now, responder, terms);
        }
    }

    fn refuse(&self, hub: &Hub, now: Instant, responder: Responder<Remote>) {
        let mut state = hub.lock();
        // Requests to a group are not answered with errors.
        state.counters.refused += u64::from(!responder.group);
        state.stopped = Some(responder.to);
        state.respond(now, responder, &self.config.unavailable());
    }
}

/// Returns whether a request has Block options.
fn has_block_options(message: &Message<'_>) -> bool {
    message.value(option::BLOCK1).or(message.value(option::BLOCK2)).is_some()
}

/// Starts the access log entry of a request.
fn note_access(hub: &Hub, responder: &Responder<Remote>, message: &Message<'_>) {
    if access::is_wanted() {
        let (peer, key) = (hub.peer(responder.to), (responder.to, responder.token()));
        let transport = if hub.is_secure() { "coaps" } else { "coap" };
        hub.lock().answers.access.note(key, transport, peer, message);
    }
}

/// A guard that counts a waiting handler and holds its slot until the guard is dropped. A handler called for observers
/// needs no slot.
struct WaitingHandler {
    hub: Arc<Hub>,
    place: Option<HandlerPlace>,
}

impl WaitingHandler {
    fn new(hub: &Arc<Hub>, place: Option<HandlerPlace>) -> Self {
        hub.pending.fetch_add(1, Ordering::Relaxed);
        Self { hub: hub.clone(), place }
    }
}

impl Drop for WaitingHandler {
    fn drop(&mut self) {
        self.hub.pending.fetch_sub(1, Ordering::Release);
        if self.hub.closing.has_begun() {
            self.hub.attention.notify_one();
        }
    }
}

/// Acknowledges a request if its handler takes longer than `patience`, and answers when the handler is done.
async fn answer_later(
    mut waiting: WaitingHandler,
    mut responder: Responder<Remote>,
    mut terms: Terms,
    mut rest: HandlerFuture,
    patience: Duration,
) {
    let hub = waiting.hub.clone();
    let response = if let Ok(response) = tokio::time::timeout(patience, &mut rest).await {
        response
    } else {
        responder = hub.with(|state, now| state.endpoint.acknowledge(now, responder));
        // An acknowledged request cannot be challenged any more, and the acknowledgement counts.
        (terms.repeatable, terms.allowance) = (false, responder.allowance());
        rest.await
    };
    // The client may ask again as soon as it is answered.
    waiting.place = None;
    hub.with(|state, now| state.answer(now, responder, &terms, response));
}
