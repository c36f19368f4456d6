//! A model of one bottleneck for bulk mechanisms: requests up, blocks down, a drop-tail queue, and losses each way.
//!
//! Flows work as an endpoint does. An exchange starts when the window and the pacing allow it. It is retransmitted at once
//! when it is overtaken, or its timeout has passed. A block is asked for again when its exchange was given up.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use coapace_control::{
    Controller, Cue, Draw, Duration, Exchange, Instant, Mechanism, Outcome, Sample, State,
};

const MAX_RETRANSMIT: u8 = 4;

/// A link, and the messages that cross it. Times are in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// Bits per second, each way.
    pub rate: u64,
    /// The round-trip time without messages and queue.
    pub rtt: u64,
    /// Bytes of a block with its headers.
    pub block: u64,
    /// Bytes of a request with its headers.
    pub request: u64,
    /// Blocks that the queue takes.
    pub buffer: u64,
    /// The greatest additional delay of a message, each way. It changes no order.
    pub jitter: u64,
    /// The probability that a message is lost, each way.
    pub loss: f64,
}

/// The result of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowResult {
    /// Blocks that arrived.
    pub blocks: usize,
    /// The time from the beginning of the flow to the last of them.
    pub seconds: f64,
    /// Transmissions of requests.
    pub sent: usize,
}

/// A link in use.
pub(crate) struct Run {
    link: Link,
    random: Random,
    flows: Vec<Flow>,
    events: BinaryHeap<Reverse<(u64, usize, Event)>>,
    /// Counts events, so that events of one moment happen in the order in which they were planned.
    planned: usize,
    up: Way,
    down: Way,
    /// The time in which everything is lost.
    pub(crate) silence: std::ops::Range<u64>,
    /// The sum of all delays in the queue, and their number.
    queued: (u64, u64),
}

/// A direction of the link: when its last message has left the sender, and when it arrives.
#[derive(Clone, Copy, Default)]
struct Way {
    free: u64,
    arrival: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Request { flow: usize, exchange: usize },
    Response { flow: usize, exchange: usize },
    Wake { flow: usize },
}

struct Open {
    number: usize,
    block: usize,
    exchange: Exchange,
    first: u64,
    last: u64,
    due: u64,
    retransmits: u8,
}

struct Flow {
    mechanism: Mechanism,
    state: State,
    begun: u64,
    blocks: usize,
    open: Vec<Open>,
    /// The first block that was not asked for, and those to be asked for again.
    next: usize,
    again: Vec<usize>,
    arrived: Vec<bool>,
    /// The latest last departure of an exchange that was answered without ambiguity.
    overtaker: u64,
    /// The arrival of the last block.
    heard: u64,
    exchanges: usize,
    armed: u64,
    result: FlowResult,
}

/// A source of random numbers (xorshift), the same in every run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        for _ in 0..10 {
            random.bits();
        }
        random
    }

    fn bits(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u32
    }

    pub(crate) fn unit(&mut self) -> f64 {
        f64::from(self.bits()) / 4_294_967_296.0
    }
}

impl Run {
    pub(crate) fn new(link: Link, seed: u64) -> Self {
        Self {
            link,
            random: Random::new(seed),
            flows: Vec::new(),
            events: BinaryHeap::new(),
            planned: 0,
            up: Way::default(),
            down: Way::default(),
            silence: 0..0,
            queued: (0, 0),
        }
    }

    /// Adds a flow of so many blocks that begins at this time.
    pub(crate) fn add(&mut self, mechanism: Mechanism, blocks: usize, begun: u64) {
        let flow = self.flows.len();
        self.flows.push(Flow {
            mechanism,
            state: mechanism.state(),
            begun,
            blocks,
            open: Vec::new(),
            next: 0,
            again: Vec::new(),
            arrived: vec![false; blocks],
            overtaker: 0,
            heard: 0,
            exchanges: 0,
            armed: begun,
            result: FlowResult::default(),
        });
        self.plan(begun, Event::Wake { flow });
    }

    /// Runs until every flow has its blocks, or until this time. Returns the results of the flows by then.
    pub(crate) fn go(&mut self, until: u64) -> Vec<FlowResult> {
        while let Some(&Reverse((now, _, event))) = self.events.peek() {
            let is_over = |flow: &Flow| flow.result.blocks == flow.blocks;
            if now > until || self.flows.iter().all(is_over) {
                break;
            }
            self.events.pop();
            match event {
                Event::Request { flow, exchange } => self.serve(now, flow, exchange),
                Event::Response { flow, exchange } => {
                    self.take(now, flow, exchange);
                    self.send(now, flow);
                }
                Event::Wake { flow } if self.flows[flow].armed == now => {
                    self.flows[flow].armed = u64::MAX;
                    self.send(now, flow);
                }
                Event::Wake { .. } => {}
            }
        }
        self.flows.iter().map(|flow| flow.result).collect()
    }

    /// Returns how many blocks the first of two flows has for each of the second, which begins `late`, after the time `until`.
    pub(crate) fn share(link: Link, seed: u64, flows: [Mechanism; 2], late: u64, until: u64) -> f64 {
        let mut run = Self::new(link, seed);
        for (flow, begun) in flows.into_iter().zip([0, late]) {
            run.add(flow, 100_000, begun + seed * link.rtt / 7);
        }
        let blocks: Vec<_> = run.go(until).iter().map(|flow| flow.blocks.max(1) as f64).collect();
        blocks[0] / blocks[1]
    }

    /// Returns the mean delay in the queue, in seconds.
    pub(crate) fn mean_queue(&self) -> f64 {
        self.queued.0 as f64 / self.queued.1.max(1) as f64 / 1e6
    }

    fn plan(&mut self, at: u64, event: Event) {
        self.planned += 1;
        self.events.push(Reverse((at, self.planned, event)));
    }

    fn transmission(&self, bytes: u64) -> u64 {
        bytes * 8_000_000 / self.link.rate
    }

    fn is_lost(&mut self, now: u64) -> bool {
        self.random.unit() < self.link.loss || self.silence.contains(&now)
    }

    fn delay(&mut self) -> u64 {
        self.link.rtt / 2 + ((u64::from(self.random.bits()) * self.link.jitter) >> 32)
    }

    /// A request arrives at the server: the block joins the queue.
    fn serve(&mut self, now: u64, flow: usize, exchange: usize) {
        let transmission = self.transmission(self.link.block);
        let begins = self.down.free.max(now);
        if begins - now > self.link.buffer * transmission {
            return;
        }
        self.queued.0 += begins - now;
        self.queued.1 += 1;
        self.down.free = begins + transmission;
        if !self.is_lost(now) {
            let arrival = self.down.free + self.delay();
            self.down.arrival = self.down.arrival.max(arrival);
            self.plan(self.down.arrival, Event::Response { flow, exchange });
        }
    }

    /// A request departs.
    fn depart(&mut self, now: u64, flow: usize, exchange: usize) {
        self.flows[flow].result.sent += 1;
        self.up.free = self.up.free.max(now) + self.transmission(self.link.request);
        if !self.is_lost(now) {
            let arrival = self.up.free + self.delay();
            self.up.arrival = self.up.arrival.max(arrival);
            self.plan(self.up.arrival, Event::Request { flow, exchange });
        }
    }

    /// A block arrives at the client.
    fn take(&mut self, now: u64, flow: usize, number: usize) {
        let cue = self.cue(now, flow, 0);
        let flow = &mut self.flows[flow];
        let Some(place) = flow.open.iter().position(|open| open.number == number) else { return };
        let open = flow.open.swap_remove(place);
        flow.heard = now;
        let since = |then| Duration::from_micros(now - then);
        let sample = Sample::unmarked(since(open.first), since(open.last), open.retransmits);
        flow.mechanism.on_end(&mut flow.state, open.exchange, Outcome::Acked(sample), cue);
        if sample.unambiguous().is_some() {
            flow.overtaker = flow.overtaker.max(open.last);
        }
        if !std::mem::replace(&mut flow.arrived[open.block], true) {
            flow.result.blocks += 1;
            flow.result.seconds = (now - flow.begun) as f64 / 1e6;
        }
    }

    /// Retransmits lost messages, and starts exchanges.
    fn send(&mut self, now: u64, index: usize) {
        if self.flows[index].result.blocks == self.flows[index].blocks || now < self.flows[index].begun {
            return;
        }
        self.repeat(now, index);
        while let Some(number) = self.start(now, index) {
            self.depart(now, index, number);
        }
        let flow = &mut self.flows[index];
        let due = flow.open.iter().map(|open| open.due).min().unwrap_or(u64::MAX);
        if due < flow.armed {
            flow.armed = due;
            self.plan(due, Event::Wake { flow: index });
        }
    }

    fn cue(&mut self, now: u64, flow: usize, more: u16) -> Cue {
        let draw = Draw::from_bits(self.random.bits());
        Cue { now: Instant::from_micros(now), draw, outstanding: self.flows[flow].open.len() as u16 + more }
    }

    fn repeat(&mut self, now: u64, index: usize) {
        let flow = &self.flows[index];
        let overtaken = flow.mechanism.limits(&flow.state).overtaken.map_or(u64::MAX, Duration::as_micros);
        let mut place = 0;
        while place < self.flows[index].open.len() {
            let cue = self.cue(now, index, 0);
            let flow = &mut self.flows[index];
            let open = &mut flow.open[place];
            if now >= open.due && open.retransmits == 0 && open.last < flow.heard {
                // Answers come, so the timer of a first copy begins again with the last of them.
                open.due = open.due.max(flow.heard + flow.mechanism.gauges(&flow.state).rto.as_micros());
            }
            let is_lost = open.last.saturating_add(overtaken) <= flow.overtaker || now >= open.due;
            if is_lost && open.retransmits == MAX_RETRANSMIT {
                let open = flow.open.swap_remove(place);
                flow.mechanism.on_end(&mut flow.state, open.exchange, Outcome::GivenUp, cue);
                flow.again.push(open.block);
                continue;
            }
            place += 1;
            if is_lost {
                open.retransmits += 1;
                let timeout = flow.mechanism.on_retransmit(&mut flow.state, &mut open.exchange, cue);
                (open.last, open.due) = (now, now + timeout.as_micros());
                let number = open.number;
                self.depart(now, index, number);
            }
        }
    }

    /// Starts an exchange, if there is a block to ask for and the mechanism allows it. Returns its number.
    fn start(&mut self, now: u64, index: usize) -> Option<usize> {
        let flow = &mut self.flows[index];
        let limits = flow.mechanism.limits(&flow.state);
        let opening = limits.next_confirmable.as_micros();
        let new = (flow.next < flow.blocks).then_some(flow.next);
        let block = flow.again.last().copied().or(new)?;
        if flow.open.len() >= limits.nstart.unwrap_or(1).into() {
            return None;
        }
        if opening > now {
            if opening < flow.armed {
                flow.armed = opening;
                self.plan(opening, Event::Wake { flow: index });
            }
            return None;
        }
        let cue = self.cue(now, index, 1);
        let flow = &mut self.flows[index];
        if flow.again.pop().is_none() {
            flow.next += 1;
        }
        let (exchange, timeout) = flow.mechanism.on_start(&mut flow.state, cue);
        flow.exchanges += 1;
        let (number, due) = (flow.exchanges, now + timeout.as_micros());
        flow.open.push(Open { number, block, exchange, first: now, last: now, due, retransmits: 0 });
        Some(number)
    }
}
