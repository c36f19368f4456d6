//! A small event loop around the bottleneck of Raitahila 2019: 60 kbit/s and 200 ms up, 30 kbit/s and 400 ms down, 10
//! to 20 ms of jitter each way between router and server, bytes queued first in, first out.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use coap_numbers::{code, option};
use coapace_proto::{Code, Token};
use coapace_sim::tcp::{TcpClient, TcpParameters, TcpPlan, TcpReport, TcpResponse, TcpServer};
use coapace_sim::{Mark, Node, NodeId, Time};

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const INFINITE: usize = 1_410_000;

/// A small generator (SplitMix64): the network's luck.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    fn chance(&mut self, probability: f64) -> bool {
        (self.next() as f64) < probability * u64::MAX as f64
    }
}

/// Packets lost on a link, after they have used it.
#[derive(Clone, Copy)]
pub(crate) enum Errors {
    None,
    Uniform(f64),
    /// Loss in the bad state, share of time in it, mean stay in packets.
    Bursts {
        loss: f64,
        share: f64,
        stay: f64,
    },
}

pub(crate) struct Link {
    bits_per_second: u64,
    delay: u64,
    limit: usize,
    /// When the packets that wait or are under way will have left, and their sizes.
    queue: VecDeque<(Time, usize)>,
    waiting: usize,
    free_at: Time,
    errors: Errors,
    bad: bool,
    pub(crate) drops: u64,
}

impl Link {
    pub(crate) fn new(bits_per_second: u64, delay: u64, limit: usize, errors: Errors) -> Self {
        let queue = VecDeque::new();
        Self {
            bits_per_second,
            delay,
            limit,
            queue,
            waiting: 0,
            free_at: Time::ZERO,
            errors,
            bad: false,
            drops: 0,
        }
    }

    /// When a packet that comes now arrives at the other end, if it does.
    fn pass(&mut self, now: Time, bytes: usize, random: &mut Random) -> Option<Time> {
        while self.queue.front().is_some_and(|&(left, _)| left <= now) {
            self.waiting -= self.queue.pop_front().unwrap().1;
        }
        if self.waiting + bytes > self.limit {
            self.drops += 1;
            return None;
        }
        self.free_at = self.free_at.max(now) + bytes as u64 * 8 * 1_000_000_000 / self.bits_per_second;
        self.queue.push_back((self.free_at, bytes));
        self.waiting += bytes;
        let lost = match self.errors {
            Errors::None => false,
            Errors::Uniform(loss) => random.chance(loss),
            Errors::Bursts { loss, share, stay } => {
                let leave = if self.bad { 1.0 / stay } else { share / (1.0 - share) / stay };
                self.bad ^= random.chance(leave);
                self.bad && random.chance(loss)
            }
        };
        (!lost).then_some(self.free_at + self.delay)
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    AtServer(u32, Vec<u8>),
    AtDownLink(u32, Vec<u8>),
    AtClient(u32, Vec<u8>),
    Timer(usize),
}

pub(crate) struct Network {
    pub(crate) server: TcpServer,
    pub(crate) clients: Vec<TcpClient>,
    pub(crate) up: Link,
    pub(crate) down: Link,
    jitter: [Time; 2],
    random: Random,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    serial: u64,
    /// Per node, clients first, the timer event that counts.
    armed: Vec<Option<Time>>,
    pub(crate) handled: u64,
    pub(crate) hash: u64,
    /// Sizes of packets sent: up, down.
    pub(crate) sizes: [BTreeSet<usize>; 2],
    /// A TCP flag, and how many packets had it: up, down.
    pub(crate) watch: u8,
    pub(crate) watched: [u64; 2],
}

impl Network {
    pub(crate) fn new(
        server: TcpServer,
        clients: Vec<TcpClient>,
        up: Link,
        down: Link,
        random: Random,
    ) -> Self {
        Self {
            armed: vec![None; clients.len() + 1],
            server,
            clients,
            up,
            down,
            jitter: [Time::ZERO; 2],
            random,
            events: BinaryHeap::new(),
            serial: 0,
            handled: 0,
            hash: 0xcbf2_9ce4_8422_2325,
            sizes: [BTreeSet::new(), BTreeSet::new()],
            watch: 0,
            watched: [0; 2],
        }
    }

    fn push(&mut self, time: Time, event: Event) {
        self.serial += 1;
        self.events.push(Reverse((time, self.serial, event)));
    }

    /// 10 to 20 ms, first in, first out.
    fn jitter(&mut self, way: usize, now: Time) -> Time {
        self.jitter[way] = self.jitter[way].max(now + 10 * MS + self.random.below(10 * MS));
        self.jitter[way]
    }

    fn drain(&mut self, now: Time, index: usize) {
        let mut buffer = Vec::new();
        loop {
            buffer.clear();
            let out = match self.clients.get_mut(index) {
                Some(client) => client.poll_transmit(now, &mut buffer),
                None => self.server.poll_transmit(now, &mut buffer),
            };
            let Some(out) = out else { break };
            for &byte in &buffer {
                self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
            let way = usize::from(index == self.clients.len());
            self.sizes[way].insert(buffer.len());
            self.watched[way] += u64::from(buffer[33] & self.watch != 0);
            if index < self.clients.len() {
                if let Some(at) = self.up.pass(now, buffer.len(), &mut self.random) {
                    let at = self.jitter(0, at);
                    self.push(at, Event::AtServer(index as u32, buffer.clone()));
                }
            } else {
                let at = self.jitter(1, now);
                self.push(at, Event::AtDownLink(out.to.0, buffer.clone()));
            }
        }
        let wanted = match self.clients.get(index) {
            Some(client) => client.poll_timeout(),
            None => self.server.poll_timeout(),
        };
        if wanted != self.armed[index] {
            self.armed[index] = wanted;
            if let Some(at) = wanted {
                self.push(at.max(now), Event::Timer(index));
            }
        }
    }

    pub(crate) fn run(&mut self) {
        for index in 0..=self.clients.len() {
            self.drain(Time::ZERO, index);
        }
        let server = self.clients.len();
        while let Some(Reverse((now, _, event))) = self.events.pop() {
            self.handled += 1;
            let touched = match event {
                Event::AtServer(from, bytes) => {
                    self.server.handle_datagram(now, NodeId(from), Mark::default(), &bytes);
                    server
                }
                Event::AtDownLink(to, bytes) => {
                    if let Some(at) = self.down.pass(now, bytes.len(), &mut self.random) {
                        self.push(at, Event::AtClient(to, bytes));
                    }
                    continue;
                }
                Event::AtClient(to, bytes) => {
                    self.clients[to as usize].handle_datagram(
                        now,
                        NodeId(server as u32),
                        Mark::default(),
                        &bytes,
                    );
                    to as usize
                }
                Event::Timer(index) => {
                    if self.armed[index] != Some(now) {
                        continue;
                    }
                    self.armed[index] = None;
                    match self.clients.get_mut(index) {
                        Some(client) => client.handle_timeout(now),
                        None => self.server.handle_timeout(now),
                    }
                    index
                }
            };
            self.drain(now, touched);
            assert!(now < Time::from_secs(50_000), "the run does not end");
        }
    }

    /// First request to last response, seconds.
    pub(crate) fn completion_times(&self) -> impl Iterator<Item = f64> {
        self.clients.iter().map(|client| {
            let report = client.report();
            let (Some(first), Some(last)) = (report.first_request, report.finished) else {
                panic!("a client did not finish: {report:?}")
            };
            last.as_secs_f64() - first.as_secs_f64()
        })
    }

    pub(crate) fn sum(&self, of: fn(&TcpReport) -> u64) -> u64 {
        self.clients.iter().map(|client| of(client.report())).sum()
    }
}

/// One cell of the published tables.
#[derive(Clone, Copy)]
pub(crate) struct Cell {
    pub(crate) continuous: bool,
    pub(crate) clients: u32,
    pub(crate) buffer: usize,
    pub(crate) errors: Errors,
}

impl Cell {
    pub(crate) const QUIET: Self =
        Self { continuous: true, clients: 1, buffer: INFINITE, errors: Errors::None };

    pub(crate) fn network(&self, parameters: TcpParameters, seed: u64) -> Network {
        let mut random = Random(seed);
        let clients = (0..self.clients)
            .map(|index| {
                let mut batches = vec![50];
                if !self.continuous {
                    batches.clear();
                    let mut left = 50;
                    while left > 0 {
                        batches.push(left.min(1 + random.below(10) as u32));
                        left -= batches[batches.len() - 1];
                    }
                }
                // Continuous clients have connected long before the clock starts.
                let connect_at = if self.continuous {
                    Time::from_nanos(u64::from(index) * 100 * MS)
                } else {
                    Time::from_secs(100)
                };
                let plan = plan(NodeId(self.clients), batches, connect_at);
                TcpClient::new(NodeId(index), plan, parameters, random.next())
            })
            .collect();
        let server = TcpServer::new(NodeId(self.clients), response(), 10_000, parameters, random.next());
        let link = |bits_per_second, delay| Link::new(bits_per_second, delay, self.buffer, self.errors);
        Network::new(server, clients, link(60_000, 200 * MS), link(30_000, 400 * MS), random)
    }

    pub(crate) fn run(&self, parameters: TcpParameters, seed: u64) -> Network {
        let mut network = self.network(parameters, seed);
        network.run();
        network
    }

    /// Over all clients of all runs.
    pub(crate) fn median(&self, parameters: TcpParameters, runs: u64) -> f64 {
        let mut times = Vec::new();
        for seed in 0..runs {
            times.extend(self.run(parameters, seed).completion_times());
        }
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }
}

/// 48 bytes a request.
pub(crate) fn plan(server: NodeId, batches: Vec<u32>, connect_at: Time) -> TcpPlan {
    TcpPlan {
        server,
        batches,
        connect_at,
        request_at: Time::from_secs(100),
        method: Code(code::GET),
        token: Token::EMPTY,
        tail: [&[(option::URI_PATH as u8) << 4 | 5][..], b"tests"].concat(),
    }
}

/// 104 bytes a response.
pub(crate) fn response() -> TcpResponse {
    TcpResponse { code: Code(code::CONTENT), tail: [&[0xff][..], &[b'x'; 60]].concat() }
}

pub(crate) const LOW: Errors = Errors::Uniform(0.02);
pub(crate) const MEDIUM: Errors = Errors::Bursts { loss: 0.5, share: 0.2, stay: 4.0 };
pub(crate) const HIGH: Errors = Errors::Bursts { loss: 0.8, share: 0.225, stay: 4.0 };
