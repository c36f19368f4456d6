//! A client that transfers bodies over UDP in blocks, and the bodies of its server.

mod block_set;
mod bodies;

use std::collections::VecDeque;
use std::sync::Arc;

use coap_numbers::{code, option};
use coapace_control::{Duration, Mechanism};
use coapace_proto::block::{Block, Piece, Progress, Transfer};
use coapace_proto::{
    Code, Endpoint, Event, ExchangeId, Failure, Message, Options, Request, Setup, Step, Token,
};
use coapace_scenario::{Direction, Protocol, Transfer as TransferKeys};
use coapace_sim::{Mark, Node, NodeId, Outgoing, Span, Stream, Time, Transport};

pub(crate) use bodies::{ServerBodies, TransferAnswer, TransferBody};

use super::GET;
use crate::measured::{Moved, RunResult, Series};
use block_set::BlockSet;

/// The method PUT.
pub(crate) const PUT: Code = Code(code::PUT);

/// The most acknowledged requests whose response is waited for.
const MOST_TAKEN: usize = 32;

/// The least pause after a transfer that failed.
const LEAST_PAUSE: Span = Span::from_secs(1);

/// The behaviour that all clients of a transfer share.
#[derive(Debug)]
pub(crate) struct TransferPlan {
    /// The number of the population.
    pub(crate) population: usize,
    /// The keys of the transfer in the scenario.
    pub(crate) keys: TransferKeys,
    /// The body, and the number of the transfer.
    pub(crate) body: Arc<TransferBody>,
    /// The mechanism and the transmission parameters.
    pub(crate) setup: Arc<Setup<Mechanism>>,
    /// Random numbers for the moments of first transfers, keyed by client.
    pub(crate) starts: Stream,
    /// Random numbers for timeouts, keyed by client, exchange and transmission.
    pub(crate) dither: Stream,
}

/// Returns the time at which a client begins its first transfer.
pub(crate) fn first_transfer(keys: &TransferKeys, starts: Stream, client: u32) -> Time {
    Time::ZERO + keys.start + starts.within(keys.spread, u64::from(client), 0, 0)
}

#[derive(Debug)]
pub(crate) struct TransferClient {
    plan: Arc<TransferPlan>,
    endpoint: Endpoint<Mechanism, NodeId>,
    /// The number among the clients, from 1: the key of its random numbers.
    number: u32,
    server: NodeId,
    /// The time of the next transfer; `None` while one is under way, and after the last.
    next: Option<Time>,
    /// The transfer under way.
    open: Option<OpenTransfer>,
    /// The number of requests, which makes their tokens.
    requests: u16,
    /// The blocks of the present body that have arrived here.
    seen: BlockSet,
    /// The mark of the message that is replied to next.
    answered: Mark,
    tally: TransferTally,
    /// The series of the client; `None` if it is not recorded.
    series: Option<Box<Recorded>>,
}

/// The series of a client.
#[derive(Debug)]
struct Recorded {
    /// The bytes that have arrived.
    arrived: Series,
    window: Series,
    /// The numbers of the blocks that depart, for the first time and again.
    departed: [Series; 2],
}

/// A transfer under way.
#[derive(Debug)]
struct OpenTransfer {
    transfer: Transfer,
    began: Time,
    /// The requests that are not answered.
    asked: Vec<(ExchangeId, Piece)>,
    /// The requests that are acknowledged, the oldest first. The response to all of them may come to any (RFC 9177 §4.3).
    taken: VecDeque<(ExchangeId, Piece)>,
    /// Bytes of the body that have arrived.
    arrived: u64,
}

impl OpenTransfer {
    /// Takes an exchange off the lists of exchanges without a response. Returns its request.
    fn answered(&mut self, exchange: ExchangeId) -> Option<Piece> {
        if let Some(place) = self.asked.iter().position(|(asked, _)| *asked == exchange) {
            return Some(self.asked.remove(place).1);
        }
        let place = self.taken.iter().position(|(taken, _)| *taken == exchange)?;
        Some(self.taken.remove(place)?.1)
    }

    /// Notes an acknowledgement without a response. If too many exchanges wait, stops waiting for the oldest and returns it.
    fn acknowledged(&mut self, exchange: ExchangeId) -> Option<ExchangeId> {
        let place = self.asked.iter().position(|(asked, _)| *asked == exchange)?;
        if self.transfer.acknowledged(self.asked[place].1) {
            self.taken.push_back(self.asked.remove(place));
        }
        let is_full = self.taken.len() > MOST_TAKEN;
        if is_full { self.taken.pop_front().map(|(oldest, _)| oldest) } else { None }
    }
}

/// The counts of a client.
#[derive(Debug, Default)]
struct TransferTally {
    /// The time of the first beginning.
    began: Option<Time>,
    /// The time of the last end.
    ended: Time,
    /// Transfers begun.
    begun: u32,
    /// The end and the length of each transfer that was completed.
    completed: Vec<(Time, Span)>,
    failed: u64,
    arrived: u64,
    /// The bytes of transfers that failed.
    wasted: u64,
    again: u64,
    twice: u64,
}

impl TransferClient {
    /// Makes the client of this `number`, which transfers bodies from or to `server`. Its bytes and its window are recorded if
    /// `series` has a name.
    pub(crate) fn new(plan: Arc<TransferPlan>, number: u32, server: NodeId, series: Option<String>) -> Self {
        Self {
            endpoint: Endpoint::new(plan.setup.clone(), u64::from(number)),
            next: Some(first_transfer(&plan.keys, plan.starts, number)),
            plan,
            number,
            server,
            open: None,
            requests: 0,
            seen: BlockSet::default(),
            answered: Mark::default(),
            tally: TransferTally::default(),
            series: series.map(|name| {
                let new = || Series::new(name.clone());
                Box::new(Recorded { arrived: new(), window: new(), departed: [new(), new()] })
            }),
        }
    }

    /// Adds the counts of this client to the results of its run.
    pub(crate) fn report(&self, result: &mut RunResult) {
        let Some(own) = result.transfers.get_mut(self.plan.body.number) else { return };
        let TransferTally { began, ended, completed, failed, arrived, wasted, again, twice, .. } =
            &self.tally;
        let population = self.plan.population;
        own.clients += 1;
        own.completed_s
            .extend(completed.iter().map(|(end, length)| (end.as_secs_f64(), length.as_secs_f64())));
        own.failed += failed;
        own.arrived_bytes += arrived;
        own.blocks_again += again;
        own.blocks_twice += twice;
        let (bytes, is_open) = (arrived - wasted, self.open.is_some());
        own.add_moved(Moved { population, bytes, began: *began, ended: *ended, is_open });
        if let Some(population) = result.populations.get_mut(population)
            && let Some(own) = &mut population.transfers
        {
            let counters = self.endpoint.counters();
            population.clients += 1;
            own.completed += completed.len() as u64;
            own.failed += failed;
            own.time_us += completed.iter().map(|(_, length)| length.as_micros()).sum::<u64>();
            own.blocks_sent += counters.started + counters.retransmissions;
            own.blocks_again += again;
        }
        if let Some(Recorded { arrived, window, departed: [first, again] }) = self.series.as_deref() {
            result.arrived.push(arrived.clone());
            result.windows.push(window.clone());
            result.departed.push(first.clone());
            result.departed_again.push(again.clone());
        }
    }

    /// Returns the RTO of its mechanism towards the server.
    pub(crate) fn rto(&self) -> Option<Duration> {
        self.endpoint.gauges(self.server).map(|gauges| gauges.rto)
    }

    /// Returns whether all transfers are over.
    pub(crate) fn is_done(&self) -> bool {
        self.next.is_none() && self.open.is_none()
    }

    fn begin(&mut self, now: Time) {
        let TransferPlan { keys, body, setup, .. } = &*self.plan;
        let options = Options::default().with(option::URI_PATH, keys.name.as_bytes());
        let sent = match keys.direction {
            Direction::Down => Vec::new(),
            Direction::Up => body.bytes.clone(),
        };
        let mut transfer = Transfer::new(options, sent, keys.size_exponent(), body.bytes.len());
        if setup.bulk.is_some() && keys.direction == Direction::Down {
            transfer = transfer.with_random_access();
        }
        if keys.protocol == Protocol::QBlock {
            transfer = transfer.with_q_block(PUT, &self.tally.begun.to_be_bytes());
        }
        let (asked, taken) = (Vec::new(), VecDeque::new());
        self.open = Some(OpenTransfer { transfer, began: now, asked, taken, arrived: 0 });
        self.next = None;
        self.seen.clear();
        self.tally.began.get_or_insert(now);
        self.tally.begun += 1;
        self.ask(now);
    }

    /// Asks for blocks, or sends them, as many as the mechanism allows and one at least.
    fn ask(&mut self, now: Time) {
        let Some(open) = &mut self.open else { return };
        let code = if self.plan.keys.direction == Direction::Down { GET } else { PUT };
        while open.asked.is_empty() || self.endpoint.wants_bulk(self.server) {
            let Ok(next) = open.transfer.next_request() else { return self.end(now, false) };
            let Some((piece, tail)) = next else { break };
            let token = Token::new(&self.requests.to_be_bytes()).unwrap_or_default();
            self.requests = self.requests.wrapping_add(1);
            let request =
                Request { confirmable: true, code, token, tail: tail.as_bytes(), repeatable: false };
            match self.endpoint.request_part(now.instant(), self.server, request) {
                Ok(exchange) => open.asked.push((exchange, piece)),
                Err(_) => return self.end(now, false),
            }
        }
        if open.asked.is_empty() && open.taken.is_empty() {
            self.end(now, false);
        }
    }

    /// Ends the transfer under way.
    fn end(&mut self, now: Time, is_complete: bool) {
        let Some(OpenTransfer { began, asked, taken, arrived, .. }) = self.open.take() else { return };
        for (asked, _) in asked.into_iter().chain(taken) {
            self.endpoint.cancel(now.instant(), asked);
        }
        let TransferTally { completed, failed, wasted, ended, begun, .. } = &mut self.tally;
        *ended = now;
        let TransferKeys { count, mut pause, .. } = self.plan.keys;
        if is_complete {
            completed.push((now, now - began));
        } else {
            *failed += 1;
            *wasted += arrived;
            pause = pause.max(LEAST_PAUSE);
        }
        self.next = count.is_none_or(|count| *begun < count).then_some(now + pause);
        if self.next.is_some_and(|next| next <= now) {
            self.begin(now);
        }
    }

    fn take_response(&mut self, now: Time, exchange: ExchangeId, message: &Message<'_>) {
        if let Ok(Some(block)) = message.block2() {
            self.tally.twice += u64::from(!self.seen.note(block.num()));
        }
        let Some(open) = &mut self.open else { return };
        let Some(piece) = open.answered(exchange) else { return };
        let progress = open.transfer.handle_piece(piece, message);
        let is_whole = self.note_progress(now);
        match progress {
            Ok(Progress::Continue) => self.ask(now),
            Ok(Progress::Complete) => self.end(now, is_whole && message.code.is_success()),
            Err(_) => self.end(now, false),
        }
    }

    /// Notes how far the transfer has come. Returns whether a body that came to the client is the one that was sent.
    fn note_progress(&mut self, now: Time) -> bool {
        let Some(open) = &mut self.open else { return false };
        let moved = open.transfer.transferred();
        let TransferBody { bytes, .. } = &*self.plan.body;
        let (arrived, is_whole) = match self.plan.keys.direction {
            Direction::Down => (moved.received, open.transfer.body() == &**bytes),
            Direction::Up => (moved.sent, true),
        };
        self.tally.arrived += (arrived as u64).saturating_sub(open.arrived);
        open.arrived = open.arrived.max(arrived as u64);
        if let Some(Recorded { arrived, window: windows, .. }) = self.series.as_deref_mut() {
            arrived.push(now.as_secs_f64(), self.tally.arrived as f64);
            let window = self.endpoint.bulk_limits(self.server).and_then(|limits| limits.nstart);
            windows.push(now.as_secs_f64(), f64::from(window.unwrap_or(1)));
        }
        is_whole
    }

    /// Notes that the server has taken a block, and that more are to come.
    fn take_acknowledgement(&mut self, now: Time, exchange: ExchangeId) {
        let Some(open) = &mut self.open else { return };
        if let Some(oldest) = open.acknowledged(exchange) {
            self.endpoint.cancel(now.instant(), oldest);
        }
        self.note_progress(now);
        self.ask(now);
    }

    /// Notes that a request ended without a response. It is repeated if others are answered.
    fn take_failure(&mut self, now: Time, exchange: ExchangeId, failure: Option<Failure>) {
        let Some(open) = &mut self.open else { return };
        let asked = open.asked.len();
        let Some(piece) = open.answered(exchange) else { return };
        if asked == open.asked.len() {
            // The server has this block. The response may come to another.
            return self.ask(now);
        }
        if failure == Some(Failure::GivenUp) && open.transfer.lost(piece) {
            self.tally.again += 1;
            self.ask(now);
        } else {
            self.end(now, false);
        }
    }

    fn take_event(&mut self, now: Time, event: &Event<'_, NodeId>) {
        match event {
            Event::Response { exchange, message } => self.take_response(now, *exchange, message),
            Event::Acknowledged { exchange } => self.take_acknowledgement(now, *exchange),
            Event::Failed { exchange, failure } => self.take_failure(now, *exchange, Some(*failure)),
            Event::Rejected { exchange, .. } => self.take_failure(now, *exchange, None),
            _ => {}
        }
    }

    /// Handles the events of the endpoint. Returns whether there were any.
    fn poll_events(&mut self, now: Time) -> bool {
        let mut any = false;
        while let Some(event) = self.endpoint.poll_event() {
            self.take_event(now, &event);
            any = true;
        }
        any
    }
}

/// Returns the number of the block that a request brings or asks for.
fn block_of(request: &[u8]) -> Option<u32> {
    let message = Message::parse(request).ok()?;
    let options = [message.q_block1(), message.block1(), message.block2()];
    let block = options.into_iter().find_map(|block| block.ok().flatten());
    Some(block.map_or(0, Block::num))
}

impl Node for TransferClient {
    fn handle_datagram(&mut self, now: Time, from: NodeId, mark: Mark, bytes: &[u8]) {
        self.answered = mark;
        if let Some(event) = self.endpoint.handle_datagram(now.instant(), from, bytes) {
            return self.take_event(now, &event);
        }
        // The answer to a request that was answered before.
        let has_block = |message: Message<'_>| matches!(message.block2(), Ok(Some(_)));
        self.tally.twice += u64::from(Message::parse(bytes).is_ok_and(has_block));
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.next.is_some_and(|next| next <= now) {
            self.begin(now);
        }
        self.endpoint.handle_timeout(now.instant());
        self.poll_events(now);
    }

    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<Outgoing> {
        let (dither, number) = (self.plan.dither, u64::from(self.number));
        let draw = |Step { exchange, transmission }| {
            dither.draw(number, u64::from(exchange), u64::from(transmission))
        };
        let transmit = loop {
            if let Some(transmit) = self.endpoint.poll_transmit(now.instant(), draw, buffer) {
                break transmit;
            }
            // A mechanism without a final wait gives an exchange up when its last retransmission departs.
            if !self.poll_events(now) {
                return None;
            }
        };
        let mark = transmit
            .step
            .map_or(self.answered, |step| Mark { exchange: step.exchange, transmission: step.transmission });
        self.tally.again += u64::from(transmit.step.is_some_and(|step| step.transmission > 0));
        if let (Some(recorded), Some(step)) = (self.series.as_deref_mut(), transmit.step)
            && let Some(number) = block_of(buffer)
        {
            recorded.departed[usize::from(step.transmission > 0)].push(now.as_secs_f64(), f64::from(number));
        }
        Some(Outgoing { to: transmit.to, mark, transport: Transport::Udp })
    }

    fn poll_timeout(&self) -> Option<Time> {
        let endpoint = self.endpoint.poll_timeout().map(Time::from);
        self.next.into_iter().chain(endpoint).min()
    }
}
