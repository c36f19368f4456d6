//! A client that transfers bodies over UDP in blocks, and the bodies of its server.

mod block_set;
mod bodies;

use std::collections::VecDeque;
use std::sync::Arc;

use coap_numbers::{code, option};
use coapace_control::{Duration, Seam};
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

/// The maximum number of acknowledged requests for which a client still waits for a response.
const MOST_TAKEN: usize = 32;

/// The least pause after a transfer that failed.
const LEAST_PAUSE: Span = Span::from_secs(1);

/// The behaviour that all clients of a transfer share.
#[derive(Debug)]
pub(crate) struct TransferPlan {
    /// The index of the population.
    pub(crate) population: usize,
    /// The keys of the transfer in the scenario file.
    pub(crate) keys: TransferKeys,
    /// The body, and the number of the transfer.
    pub(crate) body: Arc<TransferBody>,
    /// The mechanism and the transmission parameters.
    pub(crate) setup: Arc<Setup<Seam>>,
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
    endpoint: Endpoint<Seam, NodeId>,
    /// The client's number among all clients, from 1. It is the key of the client's random numbers.
    number: u32,
    server: NodeId,
    /// The time of the next transfer; `None` during one, and after the last.
    next: Option<Time>,
    /// The running transfer.
    open: Option<OpenTransfer>,
    /// The number of requests so far, modulo 2¹⁶. It is the token of the next request.
    requests: u16,
    /// The blocks of the current body that this client has received.
    seen: BlockSet,
    /// The mark of the packet that arrived last. A reply to it departs with the same mark.
    answered: Mark,
    tally: TransferTally,
    /// The recorded series of the client; `None` if they are not recorded.
    series: Option<Box<Recorded>>,
}

/// The recorded series of a client.
#[derive(Debug)]
struct Recorded {
    /// The bytes of bodies that have arrived so far, over time.
    arrived: Series,
    window: Series,
    /// The number of each block that the client sent or requested, in two series: first transmissions, and
    /// retransmissions.
    departed: [Series; 2],
}

/// A running transfer.
#[derive(Debug)]
struct OpenTransfer {
    transfer: Transfer,
    began: Time,
    /// The requests without an acknowledgement or a response.
    asked: Vec<(ExchangeId, Piece)>,
    /// The requests that were acknowledged without a response, the oldest first. One response may answer all of them
    /// (RFC 9177 §4.3).
    taken: VecDeque<(ExchangeId, Piece)>,
    /// Bytes of the current body that have arrived.
    arrived: u64,
}

impl OpenTransfer {
    /// Removes an exchange that was answered or failed from `asked` or `taken`. Returns its block; `None` if it is in
    /// neither list.
    fn answered(&mut self, exchange: ExchangeId) -> Option<Piece> {
        if let Some(place) = self.asked.iter().position(|(asked, _)| *asked == exchange) {
            return Some(self.asked.remove(place).1);
        }
        let place = self.taken.iter().position(|(taken, _)| *taken == exchange)?;
        Some(self.taken.remove(place)?.1)
    }

    /// Moves an exchange from `asked` to `taken`, because its request was acknowledged without a response. If `taken`
    /// is too long, removes the oldest exchange and returns it.
    fn acknowledged(&mut self, exchange: ExchangeId) -> Option<ExchangeId> {
        let place = self.asked.iter().position(|(asked, _)| *asked == exchange)?;
        if self.transfer.acknowledged(self.asked[place].1) {
            self.taken.push_back(self.asked.remove(place));
        }
        let is_full = self.taken.len() > MOST_TAKEN;
        if is_full { self.taken.pop_front().map(|(oldest, _)| oldest) } else { None }
    }
}

/// The counts of a client's transfers.
#[derive(Debug, Default)]
struct TransferTally {
    /// The time at which the first transfer began; `None` before it.
    began: Option<Time>,
    /// The time at which the last transfer ended.
    ended: Time,
    /// The number of transfers that the client has begun.
    begun: u32,
    /// The end and the duration of each completed transfer.
    completed: Vec<(Time, Span)>,
    failed: u64,
    arrived: u64,
    /// The bytes of bodies that arrived in transfers that failed.
    wasted: u64,
    again: u64,
    twice: u64,
}

impl TransferClient {
    /// Makes the client of this `number`, which transfers bodies from or to `server`. Its bytes, blocks and window over
    /// time are recorded if `series` is a name.
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
        // A client counts twice: for its transfer, and for its population, which may take part in several transfers.
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
        // Bytes of attempts that failed do not count as moved, but they were on the link and count as arrived.
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
            // Every request of this client brings one block, or asks for one.
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

    /// Returns the RTO of the client's mechanism towards the server; `None` if the client has not sent it a request.
    pub(crate) fn rto(&self) -> Option<Duration> {
        self.endpoint.gauges(self.server).map(|gauges| gauges.rto)
    }

    /// Returns whether the client has ended all its transfers. A client without a fixed number of transfers never has.
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
            // A bulk mechanism has several requests under way, so blocks are requested ahead of those that have arrived.
            transfer = transfer.with_random_access();
        }
        if keys.protocol == Protocol::QBlock {
            // The count of transfers makes a Request-Tag that no other body of this client has.
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

    /// Requests or sends as many blocks as the mechanism allows, and at least one.
    fn ask(&mut self, now: Time) {
        let Some(open) = &mut self.open else { return };
        let code = if self.plan.keys.direction == Direction::Down { GET } else { PUT };
        // One block at least: without an answer under way nothing would call this function again.
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

    /// Ends the running transfer, counts it as completed or failed, and plans the next one.
    fn end(&mut self, now: Time, is_complete: bool) {
        let Some(OpenTransfer { began, asked, taken, arrived, .. }) = self.open.take() else { return };
        for (asked, _) in asked.into_iter().chain(taken) {
            // The request must not be sent again, and its answer belongs to no transfer any more.
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
            // Without a pause, a client whose transfers fail at once would begin them for ever at the same moment.
            pause = pause.max(LEAST_PAUSE);
        }
        self.next = count.is_none_or(|count| *begun < count).then_some(now + pause);
        if self.next.is_some_and(|next| next <= now) {
            self.begin(now);
        }
    }

    fn take_response(&mut self, now: Time, exchange: ExchangeId, message: &Message<'_>) {
        // A block that comes after the end of its transfer counts as well.
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

    /// Updates the number of arrived bytes, and records this number and the window. Returns whether a fetched body is
    /// complete and equal to the original. Always returns true for an upload.
    fn note_progress(&mut self, now: Time) -> bool {
        let Some(open) = &mut self.open else { return false };
        let moved = open.transfer.transferred();
        let TransferBody { bytes, .. } = &*self.plan.body;
        let (arrived, is_whole) = match self.plan.keys.direction {
            Direction::Down => (moved.received, open.transfer.body() == &**bytes),
            Direction::Up => (moved.sent, true),
        };
        // An upload that starts again has moved less than before. Its bytes count once.
        self.tally.arrived += (arrived as u64).saturating_sub(open.arrived);
        open.arrived = open.arrived.max(arrived as u64);
        if let Some(Recorded { arrived, window: windows, .. }) = self.series.as_deref_mut() {
            arrived.push(now.as_secs_f64(), self.tally.arrived as f64);
            let window = self.endpoint.bulk_limits(self.server).and_then(|limits| limits.nstart);
            windows.push(now.as_secs_f64(), f64::from(window.unwrap_or(1)));
        }
        is_whole
    }

    /// Handles an acknowledgement without a response: the server has accepted a block of an unfinished upload. Sends
    /// further blocks.
    fn take_acknowledgement(&mut self, now: Time, exchange: ExchangeId) {
        let Some(open) = &mut self.open else { return };
        if let Some(oldest) = open.acknowledged(exchange) {
            self.endpoint.cancel(now.instant(), oldest);
        }
        self.note_progress(now);
        self.ask(now);
    }

    /// Handles a request that ended without a response. If the server has acknowledged the block, continues with the
    /// next blocks. If the request was given up while other requests are answered, repeats the block. Otherwise the
    /// transfer fails.
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

/// Returns the number of the block that an encoded request uploads or requests; `None` if it cannot be parsed.
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
        // Without an event, this is a copy of an answer. It counts if it has a block: an empty acknowledgement carries nothing again.
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
