//! A server that answers every request with the same payload, except requests for bodies.

use std::collections::VecDeque;
use std::sync::Arc;

use coapace_control::Seam;
use coapace_proto::{Code, Endpoint, Event, Kind, Responder, Setup, Step};
use coapace_scenario::{Answering, Server as ServerKeys};
use coapace_sim::{Mark, Node, NodeId, Outgoing, Span, Stream, Time, Transport};

use super::CONTENT;
use super::copies::CopiesByPeer;
use super::transfer::{ServerBodies, TransferAnswer, TransferBody};
use crate::measured::RunResult;

/// The transmission number in the mark of a separate response's first transmission. Requests have lower transmission
/// numbers.
const SEPARATE: u8 = 128;

/// The behaviour that all servers of a run share.
#[derive(Debug)]
pub(crate) struct ServerBehaviour {
    /// The mechanism of separate responses, and the transmission parameters.
    pub(crate) setup: Arc<Setup<Seam>>,
    /// The options and the payload of a response.
    pub(crate) response: Vec<u8>,
    /// The keys `[server]` of the scenario.
    pub(crate) keys: ServerKeys,
    /// The bodies that clients fetch from the servers or upload to them.
    pub(crate) bodies: Vec<Arc<TransferBody>>,
    /// The maximum number of clients that may upload a body at the same time.
    pub(crate) bringing: u32,
    /// Random numbers for service times, keyed by client and exchange.
    pub(crate) times: Stream,
    /// Random numbers for the timeouts of separate responses, keyed by client, exchange and transmission.
    pub(crate) dither: Stream,
}

/// Returns the time from a request to its response. Copies of a request take the same time.
pub(crate) fn service_time(keys: &ServerKeys, times: Stream, from: NodeId, mark: Mark) -> Span {
    keys.processing_delay + keys.service_time.draw(times, u64::from(from.0), u64::from(mark.exchange))
}

/// A request that is in progress: its response is not ready.
#[derive(Clone, Copy, Debug)]
struct ServerJob {
    /// The time of the next step: an acknowledgement or the response.
    at: Time,
    /// The time of the response, if an empty acknowledgement is the next step; `None` if the response is the next step.
    response_at: Option<Time>,
    responder: Responder<NodeId>,
    mark: Mark,
}

#[derive(Debug)]
pub(crate) struct ServerNode {
    service: Arc<ServerBehaviour>,
    endpoint: Endpoint<Seam, NodeId>,
    /// The requests in progress, in the order of their next steps.
    working: VecDeque<ServerJob>,
    /// The mark of the request that the current response answers: its exchange and transmission. The simulator attaches
    /// it to the response.
    mark: Mark,
    /// The client and the mark of every confirmable separate response, in the order in which they were sent first.
    begun: Vec<(NodeId, Mark)>,
    copies: CopiesByPeer,
    responses: u64,
    /// The bodies of transfers; `None` for a server without bodies.
    bodies: Option<Box<ServerBodies>>,
}

impl ServerNode {
    pub(crate) fn new(service: Arc<ServerBehaviour>, id: NodeId) -> Self {
        let endpoint = Endpoint::new(service.setup.clone(), u64::from(id.0));
        let (working, mark, begun) = (VecDeque::new(), Mark::default(), Vec::new());
        let bodies = (!service.bodies.is_empty())
            .then(|| Box::new(ServerBodies::new(service.bodies.clone(), service.bringing)));
        let copies = CopiesByPeer::default();
        Self { service, endpoint, working, mark, begun, copies, responses: 0, bodies }
    }

    /// Adds the counts of this server to the results of its run.
    pub(crate) fn report(&self, result: &mut RunResult) {
        let counters = self.endpoint.counters();
        result.responses_sent += self.responses;
        result.retransmissions += counters.retransmissions;
        result.spurious += self.copies.spurious();
        if let Some(bodies) = &self.bodies {
            bodies.report(result);
        }
    }

    /// Starts work on a request: answers it now, or plans its acknowledgement or its response.
    fn take(&mut self, now: Time, from: NodeId, responder: Responder<NodeId>, mark: Mark) {
        let ServerBehaviour { keys, times, .. } = &*self.service;
        let time = service_time(keys, *times, from, mark);
        let response_at = now + time;
        let job = ServerJob { at: response_at, response_at: None, responder, mark };
        let patience = keys.acknowledge_after;
        // A response that is ready before the acknowledgement is due is piggybacked (RFC 7252 §5.2.1).
        if keys.response == Answering::Piggybacked || time < patience {
            if time == Span::ZERO {
                return self.respond(now, responder, mark);
            }
            return self.enqueue(job);
        }
        let job = ServerJob { at: now + patience, response_at: Some(response_at), ..job };
        if patience == Span::ZERO { self.step(now, job) } else { self.enqueue(job) }
    }

    /// Adds a job to `working`, after all jobs that are due at the same time or before.
    fn enqueue(&mut self, job: ServerJob) {
        let place = self.working.partition_point(|other| other.at <= job.at);
        self.working.insert(place, job);
    }

    /// Takes the next step of a job: acknowledges the request, or answers it.
    fn step(&mut self, now: Time, job: ServerJob) {
        let ServerJob { response_at: Some(at), responder, mark, .. } = job else {
            return self.respond(now, job.responder, job.mark);
        };
        self.mark = mark;
        let acknowledged = self.endpoint.acknowledge(now.instant(), responder);
        let responder = match self.service.keys.response {
            Answering::SeparateNon => acknowledged.unconfirmed(),
            Answering::Piggybacked | Answering::Separate => acknowledged,
        };
        let job = ServerJob { at, response_at: None, responder, mark };
        // The acknowledgement departs first, even if the response is ready.
        self.enqueue(job);
    }

    fn respond(&mut self, now: Time, responder: Responder<NodeId>, mark: Mark) {
        self.mark = mark;
        // The endpoint counts a reply that it has no room for, and the client asks again.
        let begun = self.endpoint.respond(now.instant(), responder, CONTENT, &self.service.response);
        if let Ok(Some(_)) = begun {
            // The endpoint numbers its exchanges from 0, so this place is the number by which `response_of` looks.
            self.begun.push((responder.to, mark));
        }
    }
}

/// Returns the client and the mark of the separate response that `step` belongs to.
fn response_of(begun: &[(NodeId, Mark)], step: Step) -> (NodeId, Mark) {
    begun.get(step.exchange as usize).copied().unwrap_or((NodeId(0), Mark::default()))
}

impl Node for ServerNode {
    fn handle_datagram(&mut self, now: Time, from: NodeId, mark: Mark, bytes: &[u8]) {
        self.mark = mark;
        self.copies.received(from, bytes);
        match self.endpoint.handle_datagram(now.instant(), from, bytes) {
            Some(Event::Request { responder, message }) => {
                let answer = self.bodies.as_mut().and_then(|bodies| bodies.answer(now, from, &message));
                match answer {
                    None => self.take(now, from, responder, mark),
                    // The endpoint counts a reply that it has no room for, and the client asks again.
                    Some(TransferAnswer::Response(code, tail)) => {
                        let _ = self.endpoint.respond(now.instant(), responder, code, tail.as_bytes());
                    }
                    Some(TransferAnswer::Acknowledgement) => {
                        let _ = self.endpoint.acknowledge(now.instant(), responder);
                    }
                }
            }
            None => {
                if let Some(bodies) = &mut self.bodies {
                    bodies.note_copy(bytes);
                }
            }
            Some(_) => {}
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.endpoint.handle_timeout(now.instant());
        // A response that is given up changes nothing here. The client waits for it until it gives up.
        while self.endpoint.poll_event().is_some() {}
        // One call makes one response, so that the next packet has the mark of the request.
        if self.working.front().is_some_and(|job| job.at <= now)
            && let Some(job) = self.working.pop_front()
        {
            self.step(now, job);
        }
    }

    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<Outgoing> {
        let start = buffer.len();
        let Self { endpoint, begun, service, .. } = self;
        let draw = |step: Step| {
            let (client, mark) = response_of(begun, step);
            service.dither.draw(u64::from(client.0), u64::from(mark.exchange), u64::from(step.transmission))
        };
        let transmit = loop {
            if let Some(transmit) = endpoint.poll_transmit(now.instant(), draw, buffer) {
                break transmit;
            }
            // A mechanism without a final wait gives a response up when its last retransmission departs.
            endpoint.poll_event()?;
        };
        let bytes = buffer.get(start..).unwrap_or_default();
        self.responses += u64::from(bytes.get(1) != Some(&Code::EMPTY.0));
        let is_non = bytes.first().is_some_and(|first| first >> 4 & 3 == Kind::NonConfirmable as u8);
        // The separate response uses another random stream than its empty acknowledgement.
        let (mark, separate) = match transmit.step {
            Some(step) => {
                self.copies.sent(transmit.to, step, bytes);
                (response_of(&self.begun, step).1, Some(step.transmission))
            }
            None => (self.mark, is_non.then_some(0)),
        };
        let transmission = separate.map_or(mark.transmission, |number| SEPARATE.saturating_add(number));
        let mark = Mark { transmission, ..mark };
        Some(Outgoing { to: transmit.to, mark, transport: Transport::Udp })
    }

    fn poll_timeout(&self) -> Option<Time> {
        let ready = self.working.front().map(|job| job.at);
        self.endpoint.poll_timeout().map(Time::from).into_iter().chain(ready).min()
    }
}
