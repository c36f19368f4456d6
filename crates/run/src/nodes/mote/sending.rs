//! The state of one flow at one client.

use std::collections::VecDeque;
use std::sync::Arc;

use coapace_control::Seam;
use coapace_proto::{Endpoint, ExchangeId, Request, Responder, SendError};
use coapace_scenario::WhenBusy;
use coapace_scenario::patterns::{Pace, Turn};
use coapace_sim::{NodeId, Span, Time};

use super::plan::{self, FlowPlan};
use crate::nodes::CONTENT;

/// The state of one flow at one client.
#[derive(Debug)]
pub(super) struct Sending {
    pub(super) flow: Arc<FlowPlan>,
    /// The sink that gets the messages.
    pub(super) sink: NodeId,
    client: u32,
    /// The time when the next message is due; `None` if no time is fixed for it.
    pub(super) next: Option<Time>,
    /// The number of messages that were due so far.
    turns: u32,
    /// The number of messages that were accepted so far. It is also the number of the next message.
    accepted: u32,
    /// The numbers of the accepted messages that wait to be sent.
    waiting: VecDeque<u32>,
    /// The times when the open exchanges or notifications began, the oldest first.
    open: VecDeque<Time>,
    /// True if the sink has registered for notifications.
    observed: bool,
    /// The destination of notifications without congestion control; `None` if the flow has congestion control, or the
    /// sink has not registered.
    uncontrolled: Option<Responder<NodeId>>,
    /// The Message IDs of the open notification. Each of its transmissions may have a different one.
    pub(super) notified_as: Vec<u16>,
    /// The number of completed exchanges. The next field is the sum of their durations.
    pub(super) completed: u32,
    pub(super) busy: Span,
}

impl Sending {
    /// Returns the state of `flow` at `client` before the first message; `None` if the client does not take part in the
    /// flow.
    pub(super) fn new(flow: Arc<FlowPlan>, client: u32) -> Option<Self> {
        let mut sending = Self {
            sink: flow.sink_of(client)?,
            client,
            next: None,
            turns: 0,
            accepted: 0,
            waiting: VecDeque::new(),
            open: VecDeque::new(),
            observed: false,
            uncontrolled: None,
            notified_as: Vec::new(),
            completed: 0,
            busy: Span::ZERO,
            flow,
        };
        // A backlogged client acts first when its flow starts, and then whenever a message ends.
        sending.next = match sending.flow.keys.pattern.pace {
            Pace::Clock(_) | Pace::Once(_) => sending.due_after(sending.flow.timing.start),
            Pace::Backlogged => Some(sending.flow.timing.start),
        };
        Some(sending)
    }

    /// Returns the time of the next message, if the last one was due at `last`; `None` if there is none, or if the flow
    /// ends before it.
    fn due_after(&self, last: Time) -> Option<Time> {
        let turn = Turn { client: self.client, number: self.turns, last };
        let next = match self.flow.keys.pattern.pace {
            Pace::Clock(next) => Some(next(&self.flow.timing, turn)),
            Pace::Once(at) if self.turns == 0 => Some(at(&self.flow.timing, turn)),
            Pace::Once(_) | Pace::Backlogged => None,
        };
        next.filter(|&next| next < self.flow.end)
    }

    /// Sets the time of the next message, as the current message is offered.
    pub(super) fn advance(&mut self) {
        let Some(last) = self.next else { return };
        self.turns += 1;
        // Counted from the time at which the message was due, not from now, so that the clock does not drift.
        self.next = self.due_after(last);
    }

    /// Returns whether a client that always has something to send may offer a message now.
    pub(super) fn is_wanted(&self, now: Time) -> bool {
        let is_time = self.flow.timing.start <= now && now < self.flow.end;
        is_time && self.has_room() && (self.observed || !self.flow.keys.observe)
    }

    fn has_room(&self) -> bool {
        self.open.len() < usize::from(self.flow.keys.outstanding)
    }

    /// Accepts a message and returns its number; `None` if the message is dropped, because too many are open or
    /// waiting, or because no sink observes the client.
    pub(super) fn offer(&mut self, now: Time) -> Option<u32> {
        let keys = &self.flow.keys;
        let room = match keys.when_busy {
            WhenBusy::Queue => usize::from(keys.queue_messages),
            WhenBusy::Drop => 0,
        };
        // A message that may depart at once passes through `waiting` all the same, so it needs no place there.
        let is_taken = now < self.flow.end
            && (self.observed || !keys.observe)
            && (self.has_room() || self.waiting.len() < room);
        is_taken.then(|| {
            let number = self.accepted;
            self.accepted += 1;
            self.waiting.push_back(number);
            number
        })
    }

    /// Removes the next waiting message and returns its number; `None` if no message may be sent now.
    pub(super) fn next_to_go(&mut self) -> Option<u32> {
        let may_go = self.has_room() && (self.observed || !self.flow.keys.observe);
        if may_go { self.waiting.pop_front() } else { None }
    }

    /// Sends a message. Returns its exchange; `None` for notifications and non-confirmable requests, because no event
    /// of the endpoint ends them.
    ///
    /// # Errors
    /// Returns an error if the endpoint has no room for it.
    pub(super) fn send(
        &mut self,
        now: Time,
        endpoint: &mut Endpoint<Seam, NodeId>,
        number: u32,
    ) -> Result<Option<ExchangeId>, SendError> {
        let FlowPlan { keys, code, request, .. } = &*self.flow;
        if keys.observe {
            let notification = self.flow.notification(number);
            if let Some(responder) = self.uncontrolled {
                // Without congestion control, the notification is one more response, of which the endpoint keeps nothing.
                return endpoint.respond(now.instant(), responder, CONTENT, &notification);
            }
            endpoint.notify(u64::from(self.flow.number), keys.confirmable, CONTENT, &notification);
            self.open.push_back(now);
            return Ok(None);
        }
        let request = Request {
            confirmable: keys.confirmable,
            code: *code,
            token: plan::token(self.flow.number, number),
            tail: request,
            // A sink only counts a message, so receiving one twice does no harm.
            repeatable: true,
        };
        if !keys.confirmable {
            // A non-confirmable request asks for no response, so it opens no exchange.
            return endpoint.tell(now.instant(), self.sink, request).map(|_| None);
        }
        let id = endpoint.request(now.instant(), self.sink, request)?;
        self.open.push_back(now);
        Ok(Some(id))
    }

    /// Ends the oldest open exchange or notification. If `completed` is true, counts it and its duration.
    pub(super) fn is_over(&mut self, now: Time, completed: bool) {
        self.notified_as.clear();
        let began = self.open.pop_front().unwrap_or(now);
        if completed {
            self.completed += 1;
            self.busy += now - began;
        }
    }

    /// Returns whether a notification is open, which means that it is not acknowledged yet.
    pub(super) fn is_telling(&self) -> bool {
        self.flow.keys.observe && !self.open.is_empty()
    }

    /// Begins to send notifications to the sink, which has registered. Returns the encoded options of the response to
    /// the registration.
    pub(super) fn registered(&mut self, responder: Responder<NodeId>) -> Vec<u8> {
        self.observed = true;
        self.uncontrolled = (!self.flow.keys.controlled).then(|| responder.unconfirmed());
        // The answer has the sequence number 0. Notifications have higher ones.
        coapace_proto::Tail::default().option(coap_numbers::option::OBSERVE, &[]).into_bytes()
    }

    /// Ends the notifications, because the sink no longer observes. Drops waiting messages and the open notification.
    pub(super) fn observer_left(&mut self, now: Time) {
        self.observed = false;
        self.waiting.clear();
        if !self.open.is_empty() {
            self.is_over(now, false);
        }
    }
}
