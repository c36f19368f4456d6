//! What a core of a server does with requests, and with resources that have changed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use coap_numbers::{code, option};
use coapace_control::Instant;
use coapace_proto::block::{Assembled, Reassembly};
use coapace_proto::{Code, Kind, Message, Options, Responder};

use crate::access;
use crate::address::Remote;
use crate::driver::Service;
use crate::handler::{Called, Pending, panicked};
use crate::hub::Hub;
use crate::identity::Peer;
use crate::terms::{Terms, has_terms};
use crate::waiting::{NoPlace, Place, Waiting};
use crate::{Rejection, Response, Router, ServerConfig, log};

/// Routes requests, and lets handlers that wait go on as tasks.
pub(crate) struct Serving {
    router: Router,
    pub(crate) config: ServerConfig,
    /// Request bodies that are not complete.
    bodies: Reassembly<Remote>,
    waiting: Waiting,
}

impl Service for Serving {
    fn request(&mut self, hub: &Arc<Hub>, now: Instant, responder: Responder<Remote>, message: &Message<'_>) {
        if responder.group {
            hub.lock().counters.group_requests += 1;
        }
        if access::is_wanted() {
            let Peer { remote, identity } = hub.peer(responder.to);
            let transport = if hub.is_secure() { "coaps" } else { "coap" };
            let mut state = hub.lock();
            state.answers.access.note(
                (remote, responder.token()),
                transport,
                remote.address(),
                identity,
                message,
            );
        }
        if hub.is_closing() {
            return self.refuse(hub, now, responder);
        }
        if responder.group || has_terms(message) {
            return self.negotiate(hub, now, responder, message);
        }
        match self.router.call(hub.peer(responder.to), message) {
            Called::Ready(response) => {
                let mut state = hub.lock();
                if response.size() <= state.answers.unconditional(responder.to) {
                    return state.respond(now, responder, &response);
                }
                let mut terms = Terms::of(message, None);
                state.answers.admit(now, responder.to, message, &mut terms);
                state.answer(now, responder, &terms, response, false);
            }
            called => {
                let mut terms = Terms::of(message, None);
                hub.lock().answers.admit(now, responder.to, message, &mut terms);
                self.settle(hub, now, responder, terms, called, message);
            }
        }
    }

    fn resources_changed(&mut self, hub: &Arc<Hub>) {
        let now = hub.clock.now();
        let due = hub.lock().answers.due();
        for due in due {
            let request =
                Message { code: Code(code::GET), tail: &due.tail, ..Message::empty(Kind::NonConfirmable, 0) };
            let again = match self.router.call(hub.peer(due.from), &request) {
                Called::Ready(response) => hub.lock().publish(now, due.number, response),
                Called::Panicked => {
                    let mut state = hub.lock();
                    state.counters.panics += 1;
                    state.publish(now, due.number, panicked())
                }
                Called::Pending(rest) => {
                    // One for each form of a request, and these are bounded.
                    tokio::spawn(publish_later(count(hub, None), due.number, rest));
                    false
                }
            };
            if again {
                hub.look_at_resources();
            }
        }
    }

    fn closing(&mut self, hub: &Arc<Hub>) {
        hub.lock().dismiss_observers(&Rejection::unavailable(self.retry_after()).into());
    }
}

impl Serving {
    /// Max-Age of a 5.03, in seconds.
    fn retry_after(&self) -> u32 {
        u32::try_from(self.config.retry_after.as_secs()).unwrap_or(u32::MAX)
    }

    pub(crate) fn new(hub: &Arc<Hub>, router: Router, config: ServerConfig) -> Self {
        router.resources().for_each(|resource| resource.attach(hub));
        let (bodies, waiting) = (Reassembly::new(config.bodies), Waiting::new(config.max_pending));
        Self { router, config, bodies, waiting }
    }

    /// A request that says how it is to be answered.
    fn negotiate(
        &mut self,
        hub: &Arc<Hub>,
        now: Instant,
        responder: Responder<Remote>,
        message: &Message<'_>,
    ) {
        let Ok(block2) = message.block2() else {
            return hub.lock().respond(now, responder, &Response::new(Code(code::BAD_REQUEST)));
        };
        let mut terms = Terms::of(message, block2);
        hub.lock().answers.admit(now, responder.to, message, &mut terms);
        if let Some(block) = block2
            && block.num() > 0
        {
            let kept = hub.lock().answers.kept(now, responder.to, &terms);
            match kept {
                Some(response) => return hub.lock().answer(now, responder, &terms, response, false),
                // Once more does no harm, and is the only way where nothing could be kept.
                None if message.code.0 == code::GET => {}
                None => {
                    let incomplete = Response::new(Code(code::REQUEST_ENTITY_INCOMPLETE));
                    return hub.lock().respond(now, responder, &incomplete);
                }
            }
        }
        let mut whole = Vec::new();
        let mut request = *message;
        let Ok(assembled) = self.bodies.handle_from(now, responder.to, terms.verified, message) else {
            return hub.lock().challenge(now, responder, &terms);
        };
        match assembled {
            Assembled::Answer { code, tail } => {
                return hub.lock().respond_in_between(now, responder, code, tail.as_bytes());
            }
            Assembled::Whole { block: None, .. } => {}
            Assembled::Whole { body, block } => {
                terms.block1 = block;
                Options::of(message).without(option::BLOCK1).without(option::SIZE1).write(&body, &mut whole);
                request.tail = &whole;
            }
        }
        if request.code.0 == code::GET && !responder.group && block2.is_none_or(|block| block.num() == 0) {
            match message.observe() {
                Some(0) => {
                    if let Some(resource) = self.router.observable(&request) {
                        let mut state = hub.lock();
                        if !state.register(now, &responder, resource, &request, &mut terms) {
                            return state.challenge(now, responder, &terms);
                        }
                    }
                }
                Some(1) => {
                    let mut state = hub.lock();
                    let was_there = state.endpoint.deregister(now, responder.to, message.token);
                    state.counters.deregistered += u64::from(was_there);
                    drop(state);
                    log::observer(responder.to.address(), "deregistered");
                }
                _ => {}
            }
        }
        let called = self.router.call(hub.peer(responder.to), &request);
        self.settle(hub, now, responder, terms, called, &request);
    }

    /// Answers what a handler has said, or when it has.
    fn settle(
        &self,
        hub: &Arc<Hub>,
        now: Instant,
        responder: Responder<Remote>,
        terms: Terms,
        called: Called,
        request: &Message<'_>,
    ) {
        match called {
            Called::Ready(response) => hub.lock().answer(now, responder, &terms, response, false),
            Called::Panicked => {
                let mut state = hub.lock();
                state.counters.panics += 1;
                state.answer(now, responder, &terms, panicked(), false);
            }
            Called::Pending(rest) => {
                let place = match self.waiting.take(self.router.number_of(request), !terms.verified) {
                    Ok(place) => place,
                    Err(NoPlace::Strangers) if terms.is_safe && !responder.group => {
                        return hub.lock().challenge(now, responder, &terms);
                    }
                    Err(_) => {
                        if terms.observed.is_some() {
                            hub.lock().endpoint.deregister(now, responder.to, terms.token);
                        }
                        return self.refuse(hub, now, responder);
                    }
                };
                hub.lock().counters.deferred += 1;
                let counted = count(hub, Some(place));
                tokio::spawn(answer_later(counted, responder, terms, rest, self.config.acknowledge_after));
            }
        }
    }

    fn refuse(&self, hub: &Hub, now: Instant, responder: Responder<Remote>) {
        let mut state = hub.lock();
        // A group is not told.
        state.counters.refused += u64::from(!responder.group);
        state.respond(now, responder, &Rejection::unavailable(self.retry_after()).into());
    }
}

fn count(hub: &Arc<Hub>, place: Option<Place>) -> Counted {
    hub.pending.fetch_add(1, Ordering::Relaxed);
    Counted(hub.clone(), place)
}

/// A handler that waits, as long as it does, and its place; those of observers have none.
struct Counted(Arc<Hub>, #[allow(dead_code)] Option<Place>); // held for its end alone

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.pending.fetch_sub(1, Ordering::Release);
        if self.0.is_closing() {
            self.0.attention.notify_one();
        }
    }
}

/// Acknowledges if the handler takes long, and answers when it is done.
async fn answer_later(
    counted: Counted,
    mut responder: Responder<Remote>,
    terms: Terms,
    mut rest: Pending,
    patience: Duration,
) {
    let hub = &counted.0;
    let (answer, acknowledged) = if let Ok(answer) = tokio::time::timeout(patience, &mut rest).await {
        (answer, false)
    } else {
        responder = hub.with(|state, now| state.endpoint.acknowledge(now, responder));
        (rest.await, true)
    };
    let response = answer.unwrap_or_else(|| {
        hub.lock().counters.panics += 1;
        panicked()
    });
    hub.with(|state, now| state.answer(now, responder, &terms, response, acknowledged));
}

/// Publishes what a handler says of a resource that has changed.
async fn publish_later(counted: Counted, number: u64, rest: Pending) {
    let hub = &counted.0;
    let response = rest.await.unwrap_or_else(|| {
        hub.lock().counters.panics += 1;
        panicked()
    });
    if hub.with(|state, now| state.publish(now, number, response)) {
        hub.look_at_resources();
    }
}
