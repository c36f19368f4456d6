//! A host with flows: a client that offers messages to sinks, or a sink that receives them.
//!
//! A mote keeps a ledger of all messages that it offered or received. At the end of the run, the ledgers are compared.

mod ledger;
mod plan;
mod sending;
mod watching;

use std::sync::Arc;

use coapace_control::{Duration, Seam};
use coapace_proto::{Endpoint, Event, ExchangeId, Message, Responder};
use coapace_sim::{Mark, Node, NodeId, Outgoing, Time, Transport};

pub(crate) use ledger::{DeliveredMessage, MoteLedger, Offer};
pub(crate) use plan::{FlowPlan, MotePlan};

use super::copies::CopiesByPeer;
use super::{CHANGED, CONTENT, GET, report_exchanges};
use crate::measured::{RunResult, Series};
use sending::Sending;
use watching::Watching;

#[derive(Debug)]
pub(crate) struct Mote {
    plan: Arc<MotePlan>,
    /// The mote's number among all clients, from 1. It is the key of the mote's random numbers. A sink has 0.
    number: u32,
    endpoint: Endpoint<Seam, NodeId>,
    /// The state of each flow that the mote takes part in as a client.
    sendings: Vec<Sending>,
    /// The open exchanges of requests, each with the index of its flow in `sendings`.
    open: Vec<(ExchangeId, usize)>,
    /// The sink's observations of clients; `None` for a client, and for a sink that observes none.
    watching: Option<Watching>,
    ledger: MoteLedger,
    copies: CopiesByPeer,
    /// The mark of the packet that arrived last: its exchange and transmission. The simulator attaches it to the reply.
    mark: Mark,
    /// The number of replies that the mote sent.
    replies: u64,
    /// The number of replies that were notifications without congestion control.
    uncontrolled: u32,
    series: Option<Box<Series>>,
}

impl Mote {
    /// Makes the client of this `number`. Its RTO over time is recorded if `series` is a name.
    pub(crate) fn client(plan: Arc<MotePlan>, number: u32, series: Option<String>) -> Self {
        let sendings = plan.flows.iter().filter_map(|flow| Sending::new(flow.clone(), number)).collect();
        let series = series.map(|name| Box::new(Series::new(name)));
        Self { sendings, series, ..Self::sink(plan, u64::from(number), number) }
    }

    /// Makes a mote without flows of its own, such as a sink, whose `number` is 0. `seed` is the seed of its endpoint.
    pub(crate) fn sink(plan: Arc<MotePlan>, seed: u64, number: u32) -> Self {
        Self {
            endpoint: Endpoint::new(plan.setup.clone(), seed),
            ledger: MoteLedger::new(plan.measured_from),
            plan,
            number,
            sendings: Vec::new(),
            open: Vec::new(),
            watching: None,
            copies: CopiesByPeer::default(),
            mark: Mark::default(),
            replies: 0,
            uncontrolled: 0,
            series: None,
        }
    }

    /// Makes this sink, the node `own`, observe each of `clients` that has a flow of notifications to it.
    pub(crate) fn observing(mut self, clients: &[(NodeId, u32)], own: NodeId) -> Self {
        self.watching = Watching::new(&self.plan, clients, own);
        self
    }

    /// Returns the RTO of the mote's mechanism towards the sink of its first flow; `None` if it has no flow, or has not
    /// sent a message.
    pub(crate) fn rto(&self) -> Option<Duration> {
        let sending = self.sendings.first()?;
        self.endpoint.gauges(sending.sink).map(|gauges| gauges.rto)
    }

    /// Returns the messages that the mote offered and received.
    pub(crate) fn ledger(&self) -> &MoteLedger {
        &self.ledger
    }

    /// Adds the counts of this host to the results of its run, except the counts of its flows.
    pub(crate) fn report(&self, result: &mut RunResult) {
        result.responses_sent += self.replies;
        result.timeouts.merge(&self.ledger.timeouts.sums);
        // The registrations of a sink are not messages of the flows.
        if self.number == 0 {
            return;
        }
        let counters = self.endpoint.counters();
        result.spurious += self.copies.spurious();
        let completed = self.sendings.iter().map(|sending| sending.completed).sum::<u32>();
        let busy_us = self.sendings.iter().map(|sending| sending.busy.as_micros()).sum();
        result.given_up += counters.given_up;
        report_exchanges(result, self.plan.population, completed, busy_us, &counters);
        result.rto.extend(self.series.as_deref().cloned());
    }

    /// Offers a new message of the flow at index `place` in `sendings`. The message is sent, waits, or is dropped.
    fn offer(&mut self, now: Time, place: usize) {
        let Some(sending) = self.sendings.get_mut(place) else { return };
        match sending.offer(now) {
            Some(number) => {
                self.ledger.accepted(Offer { flow: sending.flow.number, number, at: now });
                self.send_waiting(now, place);
            }
            None => self.ledger.dropped(now, sending.flow.number),
        }
    }

    /// Sends waiting messages of the flow at index `place`, as many as may be open. A message that the endpoint has no
    /// space for is lost.
    fn send_waiting(&mut self, now: Time, place: usize) {
        let Some(sending) = self.sendings.get_mut(place) else { return };
        while let Some(number) = sending.next_to_go() {
            match sending.send(now, &mut self.endpoint, number) {
                Ok(Some(id)) => self.open.push((id, place)),
                Ok(None) => {}
                Err(_) => self.ledger.ended(now, sending.flow.number, false),
            }
        }
    }

    /// Sends the next messages of the flow at index `place`, after one of its messages has ended.
    fn go_on(&mut self, now: Time, place: usize) {
        self.send_waiting(now, place);
        let Some(sending) = self.sendings.get(place) else { return };
        if let (Some(series), Some(gauges)) = (&mut self.series, self.endpoint.gauges(sending.sink)) {
            series.push(now.as_secs_f64(), gauges.rto.as_micros() as f64 / 1e6);
        }
        // A backlogged client has no clock: the end of one message makes it offer the next.
        if sending.flow.keys.pattern.is_backlogged() && sending.is_wanted(now) {
            self.offer(now, place);
        }
    }

    /// Ends the exchange `id` of a request. Sends the next messages of its flow.
    fn is_over(&mut self, now: Time, id: ExchangeId, completed: bool) {
        let Some(at) = self.open.iter().position(|(open, _)| *open == id) else { return };
        // Exchanges are looked up by their numbers, so their order has no meaning.
        let (_, place) = self.open.swap_remove(at);
        if let Some(sending) = self.sendings.get_mut(place) {
            sending.is_over(now, completed);
            self.ledger.ended(now, sending.flow.number, completed);
        }
        self.go_on(now, place);
    }

    fn take_event(&mut self, now: Time, event: &Event<'_, NodeId>) {
        match *event {
            Event::Response { exchange, .. } | Event::Acknowledged { exchange } => {
                self.is_over(now, exchange, true);
                // The response may be the answer to a registration.
                let _ = self.watching.as_mut().and_then(|watching| watching.heard(now, exchange));
            }
            Event::Failed { exchange, .. } | Event::Rejected { exchange, .. } => {
                self.is_over(now, exchange, false);
                if let Some(watching) = &mut self.watching {
                    watching.failed(now, exchange);
                }
            }
            Event::ObserverGone { observer, .. } => {
                let gone = |sending: &Sending| u64::from(sending.flow.number) == observer.resource;
                if let Some(place) = self.sendings.iter().position(gone) {
                    self.sendings[place].observer_left(now);
                    self.ledger.ended(now, self.sendings[place].flow.number, false);
                }
            }
            // `handle_datagram` takes requests and notifications itself, and nobody sends a ping.
            Event::Request { .. } | Event::Pong { .. } | Event::Notification { .. } => {}
        }
    }

    /// Handles a request, which is either a registration from a sink or a message of a flow.
    fn take_request(&mut self, now: Time, from: NodeId, responder: Responder<NodeId>, message: &Message<'_>) {
        let Some((flow, number)) = plan::read_token(&message.token) else { return };
        if message.observe() == Some(0) {
            let wanted = |sending: &Sending| sending.flow.number == flow && sending.flow.keys.observe;
            let Some(place) = self.sendings.iter().position(wanted) else { return };
            if self.endpoint.register(now.instant(), &responder, u64::from(flow)).is_ok() {
                // The registration replaces the earlier one, and ends its open notification (RFC 7641 §4.1).
                if self.sendings[place].is_telling() {
                    self.sendings[place].is_over(now, false);
                    self.ledger.ended(now, flow, false);
                }
                let tail = self.sendings[place].registered(responder);
                // The endpoint counts a reply that it has no room for, and the sink registers again.
                let _ = self.endpoint.respond(now.instant(), responder, CONTENT, &tail);
                self.go_on(now, place);
            }
            return;
        }
        self.ledger.arrivals.push(DeliveredMessage { flow, client: from, number, at: now });
        let Some(plan) = self.plan.flows.get(usize::from(flow)) else { return };
        if plan.keys.confirmable {
            let code = if responder.method == GET { CONTENT } else { CHANGED };
            // The endpoint counts a reply that it has no room for, and the client asks again.
            let _ = self.endpoint.respond(now.instant(), responder, code, &plan.response);
        }
    }

    /// Handles the events of the endpoint. Returns whether there were any. A departure may cause one: a mechanism
    /// without a final wait gives an exchange up when its last retransmission departs.
    fn poll_events(&mut self, now: Time) -> bool {
        let mut any = false;
        while let Some(event) = self.endpoint.poll_event() {
            self.take_event(now, &event);
            any = true;
        }
        any
    }
}

impl Node for Mote {
    fn handle_datagram(&mut self, now: Time, from: NodeId, mark: Mark, bytes: &[u8]) {
        self.mark = mark;
        self.copies.received(from, bytes);
        // An acknowledgement of a notification returns no event. Only this counter shows that it completed an exchange.
        let completed = self.endpoint.counters().completed;
        match self.endpoint.handle_datagram(now.instant(), from, bytes) {
            Some(Event::Request { responder, message }) => self.take_request(now, from, responder, &message),
            Some(Event::Notification { exchange, message }) => {
                // The sequence number has the number of the message, so copies are recognised when the run ends.
                if let (Some(watching), Some(number)) = (&mut self.watching, message.observe())
                    && let Some(flow) = watching.heard(now, exchange)
                    && let Some(number) = plan::notification_number(number)
                {
                    self.ledger.arrivals.push(DeliveredMessage { flow, client: from, number, at: now });
                }
            }
            Some(event) => self.take_event(now, &event),
            None if self.endpoint.counters().completed > completed => {
                // An acknowledgement completed a notification.
                let message_id = bytes.get(2..4).map(|id| u16::from_be_bytes([id[0], id[1]]));
                let acknowledged = |sending: &Sending| {
                    sending.sink == from && message_id.is_some_and(|id| sending.notified_as.contains(&id))
                };
                if let Some(place) = self.sendings.iter().position(acknowledged) {
                    self.sendings[place].is_over(now, true);
                    self.ledger.ended(now, self.sendings[place].flow.number, true);
                    self.go_on(now, place);
                }
            }
            None => {}
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        for place in 0..self.sendings.len() {
            while self.sendings[place].next.is_some_and(|next| next <= now) {
                self.sendings[place].advance();
                self.offer(now, place);
            }
        }
        if let Some(watching) = &mut self.watching {
            watching.register_due(now, &mut self.endpoint);
        }
        self.endpoint.handle_timeout(now.instant());
        self.poll_events(now);
    }

    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<Outgoing> {
        let (dither, number) = (self.plan.dither, u64::from(self.number));
        // Dither depends on the client and the transmission, not on the order of events, so mechanisms get equal luck.
        let draw = |step: coapace_proto::Step| {
            dither.draw(number, u64::from(step.exchange), u64::from(step.transmission))
        };
        let transmit = loop {
            if let Some(transmit) = self.endpoint.poll_transmit(now.instant(), draw, buffer) {
                break transmit;
            }
            // A mechanism without a final wait gives an exchange up when its last retransmission departs. The next message
            // of the flow may go then.
            if !self.poll_events(now) {
                return None;
            }
        };
        let Some(step) = transmit.step else {
            self.replies += 1;
            // Without a step it is a reply, or a notification without congestion control.
            let mark = self.mark_of_reply(buffer);
            return Some(Outgoing { to: transmit.to, mark, transport: Transport::Udp });
        };
        // The exchanges of a sink are registrations, which do not count.
        if self.number > 0 {
            self.copies.sent(transmit.to, step, buffer);
            if let Some(timeout) = transmit.timeout {
                let gauge = self.endpoint.gauges(transmit.to).map(|gauges| gauges.rto);
                self.ledger.armed(now, step, timeout, gauge);
            }
            self.note_notification(now, buffer);
        }
        let mark = Mark { exchange: step.exchange, transmission: step.transmission };
        Some(Outgoing { to: transmit.to, mark, transport: Transport::Udp })
    }

    fn poll_timeout(&self) -> Option<Time> {
        let own = self.sendings.iter().filter_map(|sending| sending.next).min();
        let watch = self.watching.as_ref().and_then(Watching::next);
        let endpoint = self.endpoint.poll_timeout().map(Time::from);
        [own, watch, endpoint].into_iter().flatten().min()
    }
}

impl Mote {
    /// Returns the mark of a reply: the exchange and the transmission that it answers. A notification without
    /// congestion control does not answer a new request, so it gets an exchange number of its own. Such numbers count
    /// down from the greatest number.
    fn mark_of_reply(&mut self, bytes: &[u8]) -> Mark {
        let is_own = |message: &Message<'_>| message.kind == coapace_proto::Kind::NonConfirmable;
        if self.number == 0 || !Message::parse(bytes).is_ok_and(|message| is_own(&message)) {
            return self.mark;
        }
        self.uncontrolled += 1;
        Mark { exchange: u32::MAX - self.uncontrolled, transmission: 0 }
    }

    /// If the departing message is a notification, remembers its Message ID, to recognise the acknowledgement. A
    /// non-confirmable notification ends at once, and the next message of its flow may go.
    fn note_notification(&mut self, now: Time, bytes: &[u8]) {
        if self.sendings.iter().all(|sending| !sending.flow.keys.observe) {
            return;
        }
        let Ok(message) = Message::parse(bytes) else { return };
        let Some((flow, _)) = plan::read_token(&message.token) else { return };
        let own = |sending: &Sending| sending.flow.number == flow && sending.flow.keys.observe;
        let Some(place) = self.sendings.iter().position(own) else { return };
        self.sendings[place].notified_as.push(message.message_id);
        if message.kind == coapace_proto::Kind::NonConfirmable {
            self.sendings[place].is_over(now, false);
            self.send_waiting(now, place);
        }
    }
}
