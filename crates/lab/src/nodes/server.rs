//! A server that answers every request with the same payload.

use std::collections::VecDeque;
use std::sync::Arc;

use coapace_control::{Draw, Mechanism};
use coapace_proto::{Endpoint, Event, Responder, Setup};
use coapace_sim::{Mark, Node, NodeId, Outgoing, Span, Time, Transport};

use super::CONTENT;

#[derive(Debug)]
pub(crate) struct Server {
    endpoint: Endpoint<Mechanism, NodeId>,
    /// The options and the payload of a response.
    response: Vec<u8>,
    /// From a request to its response.
    processing: Span,
    /// The unanswered requests, in the order of their responses.
    working: VecDeque<(Time, Responder<NodeId>, Mark)>,
    /// The exchange and the transmission that the response under way answers, which the simulator attaches to packets.
    mark: Mark,
    responses: u64,
}

impl Server {
    /// Makes a server that answers each request with `response`, after `processing_ns`.
    pub(crate) fn new(setup: Arc<Setup<Mechanism>>, id: NodeId, response: Vec<u8>, processing: Span) -> Self {
        let endpoint = Endpoint::new(setup, u64::from(id.0));
        Self { endpoint, response, processing, working: VecDeque::new(), mark: Mark::default(), responses: 0 }
    }

    /// Returns the number of responses sent.
    pub(crate) fn responses(&self) -> u64 {
        self.responses
    }

    fn respond(&mut self, now: Time, responder: Responder<NodeId>, mark: Mark) {
        self.mark = mark;
        // The endpoint counts a reply that it has no room for, and the client asks again.
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
        // One call makes one response, so that the next packet has the mark of the request.
        if self.working.front().is_some_and(|&(at, ..)| at <= now)
            && let Some((_, responder, mark)) = self.working.pop_front()
        {
            self.respond(now, responder, mark);
        }
    }

    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<Outgoing> {
        // A server begins no exchange, so no random numbers are drawn.
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
