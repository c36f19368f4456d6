//! A client over UDP that sends one request after the other, each after the response to the request before.

use std::sync::Arc;

use coapace_control::{Duration, Gauges, Seam};
use coapace_proto::{Endpoint, Event, Request, Setup, Step, Token};
use coapace_scenario::{Clients, Workload, WorkloadKind};
use coapace_sim::{Mark, Node, NodeId, Outgoing, Span, Stream, Time, Transport};

use super::copies::RepeatedMessages;
use super::{GET, batch_size, report_exchanges, span_s, start};
use crate::measured::{ArmedTimeouts, Delays, RunResult, Series};

/// The behaviour that all clients of a population share.
#[derive(Debug)]
pub(crate) struct ClientBehaviour {
    /// The index of the population.
    pub(crate) population: usize,
    /// The mechanism and the transmission parameters.
    pub(crate) setup: Arc<Setup<Seam>>,
    /// True if each request has its own token of two bytes. Only the token identifies a separate response (RFC 7252
    /// §5.3.2). If all responses are piggybacked, the Message ID is enough, and tokens are empty.
    pub(crate) has_tokens: bool,
    /// The options and the payload of a request.
    pub(crate) request: Vec<u8>,
    /// The keys `[clients]` of the scenario.
    pub(crate) clients: Clients,
    /// The keys `[workload]` of the scenario.
    pub(crate) workload: Workload,
    /// Random numbers for the moments of first requests, keyed by client.
    pub(crate) starts: Stream,
    /// Random numbers for timeouts, keyed by client, exchange and transmission.
    pub(crate) dither: Stream,
    /// Random numbers for the lengths of batches, keyed by client and batch.
    pub(crate) batches: Stream,
    /// The end of the warm-up. Timeouts that are armed before it do not count.
    pub(crate) measured_from: Time,
}

impl ClientBehaviour {
    fn start(&self, client: u32) -> Time {
        start(&self.clients, self.starts, client)
    }

    /// Returns the time of a client's next request, if its last exchange ends at the time `now`.
    fn next(&self, client: u32, now: Time) -> Time {
        let Workload { think_time, interval, .. } = self.workload;
        let rested = now + think_time;
        if interval == Span::ZERO {
            return rested;
        }
        let start = self.start(client);
        // Requests keep to the grid of the interval. An exchange that takes longer skips the points that it missed.
        start + interval * (rested - start).as_nanos().div_ceil(interval.as_nanos())
    }
}

/// A point in time that never comes, in place of `None`. An `Option` would take more space in each of a hundred
/// thousand clients.
const NEVER: Time = Time::MAX;

#[derive(Debug)]
pub(crate) struct ClientNode {
    plan: Arc<ClientBehaviour>,
    endpoint: Endpoint<Seam, NodeId>,
    /// The time when the next request is due. During an exchange, the time when it began. After all exchanges, the time when
    /// the last one ended.
    moment: Time,
    /// True while an exchange is open.
    is_busy: bool,
    /// The client's number among all clients, from 1. It is the key of the client's random numbers.
    number: u32,
    /// The server that gets the requests.
    server: NodeId,
    /// The sum of the durations of completed exchanges.
    busy: Span,
    /// The number of exchanges that have ended.
    done: u32,
    /// The mark of the packet that arrived last. A reply to it, such as the acknowledgement of a separate response,
    /// departs with the same mark.
    answered: Mark,
    /// The number of batches that have begun.
    batches: u32,
    /// The value of `done` at which the current batch ends.
    batch_end: u32,
    /// Counts of the messages that the client sent; `None` before the first message.
    departed: Option<Box<Departed>>,
    series: Option<Box<Series>>,
}

/// Counts of the messages that a client sent.
#[derive(Debug, Default)]
struct Departed {
    copies: RepeatedMessages,
    timeouts: ArmedTimeouts,
    /// The durations of exchanges, if other clients transfer bodies.
    times: Delays,
}

impl ClientNode {
    /// Makes the client of this `number`, which sends its requests to `server`. Its RTO over time is recorded if
    /// `series` is a name.
    pub(crate) fn new(
        plan: Arc<ClientBehaviour>,
        number: u32,
        server: NodeId,
        series: Option<String>,
    ) -> Self {
        Self {
            endpoint: Endpoint::new(plan.setup.clone(), u64::from(number)),
            moment: plan.start(number),
            plan,
            is_busy: false,
            number,
            server,
            busy: Span::ZERO,
            done: 0,
            batches: 0,
            batch_end: 0,
            answered: Mark::default(),
            departed: None,
            series: series.map(|name| Box::new(Series::new(name))),
        }
    }

    /// Adds the counts of this client to the results of its run.
    pub(crate) fn report(&self, result: &mut RunResult) {
        let counters = self.endpoint.counters();
        // A separate response that never came is as good as none.
        let given_up = counters.given_up + counters.timed_out;
        if self.plan.workload.exchanges.is_some() {
            // A client that gave up an exchange never has its last response.
            let finished = self.is_done() && given_up == 0;
            result.fct_s.push(span_s(Some(self.plan.start(self.number)), finished.then_some(self.moment)));
        }
        result.given_up += given_up;
        if let Some(Departed { copies, timeouts, times }) = self.departed.as_deref() {
            result.spurious += copies.spurious();
            result.timeouts.merge(&timeouts.sums);
            if times.count > 0 {
                result.exchange_times.merge(times);
            }
        }
        let (completed, busy_us) = (counters.completed as u32, self.busy.as_micros());
        report_exchanges(result, self.plan.population, completed, busy_us, &counters);
        result.rto.extend(self.series.as_deref().cloned());
    }

    /// Returns the RTO of the client's mechanism towards the server; `None` if the client has not begun an exchange
    /// with it.
    pub(crate) fn rto(&self) -> Option<Duration> {
        self.endpoint.gauges(self.server).map(|gauges| gauges.rto)
    }

    /// Returns whether the client has ended all its exchanges. A client without a fixed number of exchanges never has.
    pub(crate) fn is_done(&self) -> bool {
        Some(self.done) == self.plan.workload.exchanges
    }

    /// Begins the next exchange. If the batch has ended, the client first forgets all about the server, and begins a
    /// new batch.
    fn begin(&mut self, now: Time) {
        let ClientBehaviour { request, workload, batches, has_tokens, .. } = &*self.plan;
        if self.done == self.batch_end {
            self.batch_end = match workload.kind {
                WorkloadKind::Random => self.done + batch_size(workload, *batches, self.number, self.batches),
                _ => workload.exchanges.unwrap_or(u32::MAX),
            };
            self.batches += 1;
            // A batch is a client after a restart, which knows nothing of earlier round trips.
            self.endpoint.forget(self.server);
        }
        // A client that restarts counts its tokens from elsewhere: 2¹⁶ divided by the golden ratio keeps the beginnings apart.
        let number =
            (self.done as u16).wrapping_add((self.batches as u16).wrapping_sub(1).wrapping_mul(40_503));
        let token = has_tokens.then(|| Token::new(&number.to_be_bytes())).flatten().unwrap_or(Token::EMPTY);
        let request = Request { confirmable: true, code: GET, token, tail: request, repeatable: false };
        (self.moment, self.is_busy) = (now, true);
        // Every endpoint has room for one exchange.
        let begun = self.endpoint.request(now.instant(), self.server, request);
        debug_assert!(begun.is_ok(), "{begun:?}");
    }

    /// Adds the duration `time` of a completed exchange to the client's sum and, if other clients transfer bodies, to
    /// the distribution.
    fn note_time(&mut self, now: Time, time: Span) {
        self.busy += time;
        // Only exchanges beside transfers report a distribution of their times. For the others the sum is enough.
        if self.plan.workload.kind == WorkloadKind::Transfer
            && now >= self.plan.measured_from
            && let Some(departed) = &mut self.departed
        {
            departed.times.add(time.as_micros());
        }
    }

    fn exchange_is_over(&mut self, now: Time) {
        self.done += 1;
        if let (Some(series), Some(Gauges { rto, .. })) =
            (&mut self.series, self.endpoint.gauges(self.server))
        {
            series.push(now.as_secs_f64(), rto.as_micros() as f64 / 1e6);
        }
        (self.moment, self.is_busy) = (now, false);
        if !self.is_done() {
            self.moment = self.plan.next(self.number, now);
            if self.moment <= now {
                self.begin(now);
            }
        }
    }
}

impl Node for ClientNode {
    fn handle_datagram(&mut self, now: Time, from: NodeId, mark: Mark, bytes: &[u8]) {
        // A reply to this packet departs with its mark.
        self.answered = mark;
        if let Some(departed) = &mut self.departed {
            departed.copies.received(bytes);
        }
        let event = self.endpoint.handle_datagram(now.instant(), from, bytes);
        match event {
            Some(Event::Response { .. }) => {
                self.note_time(now, now - self.moment);
                self.exchange_is_over(now);
            }
            Some(Event::Failed { .. } | Event::Rejected { .. }) => self.exchange_is_over(now),
            _ => {}
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        if !self.is_done() && !self.is_busy && self.moment <= now {
            self.begin(now);
        }
        self.endpoint.handle_timeout(now.instant());
        while self.endpoint.poll_event().is_some() {
            self.exchange_is_over(now);
        }
    }

    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<Outgoing> {
        let (dither, number, start) = (self.plan.dither, u64::from(self.number), buffer.len());
        let draw = |Step { exchange, transmission }| {
            dither.draw(number, u64::from(exchange), u64::from(transmission))
        };
        let transmit = loop {
            if let Some(transmit) = self.endpoint.poll_transmit(now.instant(), draw, buffer) {
                break transmit;
            }
            // A mechanism without a final wait gives an exchange up when its last retransmission departs.
            self.endpoint.poll_event()?;
            self.exchange_is_over(now);
        };
        // Without a step the message is a reply, such as the acknowledgement of a separate response.
        if let Some(step) = transmit.step {
            let rto = if step.transmission == 0 { self.rto() } else { None };
            let departed = self.departed.get_or_insert_default();
            departed.copies.sent(step, buffer.get(start..).unwrap_or_default());
            if let Some(timeout) = transmit.timeout {
                departed.timeouts.arm(step, timeout, rto, now >= self.plan.measured_from);
            }
        }
        let mark = transmit
            .step
            .map_or(self.answered, |step| Mark { exchange: step.exchange, transmission: step.transmission });
        Some(Outgoing { to: transmit.to, mark, transport: Transport::Udp })
    }

    fn poll_timeout(&self) -> Option<Time> {
        let next = if self.is_done() || self.is_busy { NEVER } else { self.moment };
        let at = self.endpoint.poll_timeout().map_or(NEVER, Time::from).min(next);
        (at != NEVER).then_some(at)
    }
}
