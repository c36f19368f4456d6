//! One flow at one client.

use std::collections::VecDeque;
use std::sync::Arc;

use coapace_control::Mechanism;
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
    /// The time when the next message is due; `None` if it is not due at a certain time.
    pub(super) next: Option<Time>,
    /// The number of messages that were due.
    turns: u32,
    /// The number of messages that were accepted, which is the number of the next.
    accepted: u32,
    /// The numbers of the messages that wait.
    waiting: VecDeque<u32>,
    /// The times when the open exchanges began, the oldest first.
    open: VecDeque<Time>,
    /// Whether the sink has registered to observe.
    observed: bool,
    /// The destination of notifications without congestion control, if the flow has these.
    uncontrolled: Option<Responder<NodeId>>,
    /// The Message IDs of the open notification. Each of its transmissions may have its own.
    pub(super) notified_as: Vec<u16>,
    /// The number of completed exchanges, and their total time.
    pub(super) completed: u32,
    pub(super) busy: Span,
}

impl Sending {
    /// Returns the state before the first message; `None` if the client does not take part.
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
        sending.next = match sending.flow.keys.pattern.pace {
            Pace::Clock(_) | Pace::Once(_) => sending.due_after(sending.flow.timing.start),
            Pace::Backlogged => Some(sending.flow.timing.start),
        };
        Some(sending)
    }

    /// Returns the time of the next message, if it is before the end.
    fn due_after(&self, last: Time) -> Option<Time> {
        let turn = Turn { client: self.client, number: self.turns, last };
        let next = match self.flow.keys.pattern.pace {
            Pace::Clock(next) => Some(next(&self.flow.timing, turn)),
            Pace::Once(at) if self.turns == 0 => Some(at(&self.flow.timing, turn)),
            Pace::Once(_) | Pace::Backlogged => None,
        };
        next.filter(|&next| next < self.flow.end)
    }

    /// Sets the time of the next message, when one is offered.
    pub(super) fn advance(&mut self) {
        let Some(last) = self.next else { return };
        self.turns += 1;
        self.next = self.due_after(last);
    }

    /// Returns whether a client that always has something to send may send now.
    pub(super) fn is_wanted(&self, now: Time) -> bool {
        let is_time = self.flow.timing.start <= now && now < self.flow.end;
        is_time && self.has_room() && (self.observed || !self.flow.keys.observe)
    }

    fn has_room(&self) -> bool {
        self.open.len() < usize::from(self.flow.keys.outstanding)
    }

    /// Accepts a message and returns its number; `None` if the message is dropped.
    pub(super) fn offer(&mut self, now: Time) -> Option<u32> {
        let keys = &self.flow.keys;
        let room = match keys.when_busy {
            WhenBusy::Queue => usize::from(keys.queue_messages),
            WhenBusy::Drop => 0,
        };
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

    /// Removes and returns the next message that may be sent.
    pub(super) fn next_to_go(&mut self) -> Option<u32> {
        let may_go = self.has_room() && (self.observed || !self.flow.keys.observe);
        if may_go { self.waiting.pop_front() } else { None }
    }

    /// Sends a message. Returns its exchange; `None` for notifications and non-confirmable requests, whose ends have no number.
    ///
    /// # Errors
    /// Returns an error if the endpoint has no room for it.
    pub(super) fn send(
        &mut self,
        now: Time,
        endpoint: &mut Endpoint<Mechanism, NodeId>,
        number: u32,
    ) -> Result<Option<ExchangeId>, SendError> {
        let FlowPlan { keys, code, request, .. } = &*self.flow;
        if keys.observe {
            let notification = self.flow.notification(number);
            if let Some(responder) = self.uncontrolled {
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

    /// Ends the oldest open exchange.
    pub(super) fn is_over(&mut self, now: Time, completed: bool) {
        self.notified_as.clear();
        let began = self.open.pop_front().unwrap_or(now);
        if completed {
            self.completed += 1;
            self.busy += now - began;
        }
    }

    /// Returns whether a notification is open.
    pub(super) fn is_telling(&self) -> bool {
        self.flow.keys.observe && !self.open.is_empty()
    }

    /// Notes that the sink observes from now on. Returns the options of the response.
    pub(super) fn registered(&mut self, responder: Responder<NodeId>) -> Vec<u8> {
        self.observed = true;
        self.uncontrolled = (!self.flow.keys.controlled).then(|| responder.unconfirmed());
        coapace_proto::Tail::default().option(coap_numbers::option::OBSERVE, &[]).into_bytes()
    }

    /// Notes that the sink no longer observes.
    pub(super) fn observer_left(&mut self, now: Time) {
        self.observed = false;
        self.waiting.clear();
        if !self.open.is_empty() {
            self.is_over(now, false);
        }
    }
}
