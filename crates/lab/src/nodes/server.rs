//! A server that answers every request with the same payload.

use std::collections::VecDeque;
use std::sync::Arc;

use coapace_control::{Draw, Mechanism};
use coapace_proto::{Endpoint, Event, Responder, Setup};
use coapace_sim::{Mark, Node, NodeId, Outgoing, Span, Time, Transport};

use super::CONTENT;

/// A server.
#[derive(Debug)]
pub(crate) struct Server {
    endpoint: Endpoint<Mechanism, NodeId>,
    /// Options and payload of a response.
    response: Vec<u8>,
    /// From a request to its response.
    processing: Span,
    /// Requests being worked on, in the order of their responses.
    working: VecDeque<(Time, Responder<NodeId>, Mark)>,
    /// The transmission that the message being sent answers.
    mark: Mark,
    responses: u64,
}

impl Server {
    /// A server that answers with `response`, so long after each request.
    pub(crate) fn new(setup: Arc<Setup<Mechanism>>, id: NodeId, response: Vec<u8>, processing: Span) -> Self {
        let endpoint = Endpoint::new(setup, u64::from(id.0));
        Self { endpoint, response, processing, working: VecDeque::new(), mark: Mark::default(), responses: 0 }
    }

    /// Responses sent.
    pub(crate) fn responses(&self) -> u64 {
        self.responses
    }

    fn respond(&mut self, now: Time, responder: Responder<NodeId>, mark: Mark) {
        self.mark = mark;
        // A reply that finds no room is counted by the endpoint and asked for again by the client.
        let _ = self.endpoint.respond(now.instant(), responder, CONTENT, &self.response);
    }
}

impl Node for Server {
    fn handle_datagram(&mut self, now: Time, from: NodeId, mark: Mark, bytes: &[u8]) {
        self.mark = mark;
        if let Some(Event::Request { responder, .. }) =
            self.endpoint.handle_datagram(now.instant(), from, bytes)
        {
            if self.processing == Span::ZERO {
                self.respond(now, responder, mark);
            } else {
                self.working.push_back((now + self.processing, responder, mark));
            }
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.endpoint.handle_timeout(now.instant());
        // One response a call: what is sent next is marked as its answer.
        if self.working.front().is_some_and(|&(at, ..)| at <= now)
            && let Some((_, responder, mark)) = self.working.pop_front()
        {
            self.respond(now, responder, mark);
        }
    }

    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<Outgoing> {
        // The server begins no exchange, so nothing is drawn.
        let transmit = self.endpoint.poll_transmit(now.instant(), |_| Draw::ZERO, buffer)?;
        self.responses += 1;
        Some(Outgoing { to: transmit.to, mark: self.mark, transport: Transport::Udp })
    }

    fn poll_timeout(&self) -> Option<Time> {
        let ready = self.working.front().map(|&(at, ..)| at);
        match (self.endpoint.poll_timeout().map(Time::from), ready) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}
