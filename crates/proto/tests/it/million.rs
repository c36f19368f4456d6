//! Many clients and a server for a long time. The network loses, duplicates, reorders and corrupts datagrams,
//! and both sides restart. It takes a few seconds.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use coapace_control::{Draw, Duration, Instant, Mechanism};
use coapace_proto::{Code, Config, Endpoint, Event, ExchangeId, Request, Responder, Setup, Token};

use crate::common::Random;

const POST: Code = Code(coap_numbers::code::POST);
const CHANGED: Code = Code(coap_numbers::code::CHANGED);
const CLIENTS: u16 = 50;
const SERVER: u16 = CLIENTS;
/// The number of requests that a client has open at once.
const OPEN: usize = 5;

/// The faults of the network, in percent of the datagrams, and restarts, in percent of the answers that a
/// client gets.
#[derive(Clone, Copy)]
struct Faults {
    lost: u64,
    duplicated: u64,
    corrupted: u64,
    restarts: bool,
}

/// A datagram on its way.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Flight {
    at: Instant,
    serial: u64,
    from: u16,
    to: u16,
    corrupted: bool,
    bytes: Vec<u8>,
}

/// The state of a request.
#[derive(Clone, Copy, Default)]
struct Fate {
    /// The life of the server in which the request was delivered last, counted from 1.
    delivered: u32,
    ended: bool,
}

#[derive(Default, Debug)]
struct Totals {
    delivered: u64,
    answered: u64,
    failed: u64,
    /// The number of requests of clients that restarted. No event comes for them.
    orphaned: u64,
}

struct World {
    setup: Arc<Setup<Mechanism>>,
    ends: Vec<Endpoint<Mechanism, u16>>,
    open: Vec<BTreeMap<ExchangeId, u32>>,
    flying: BinaryHeap<Reverse<Flight>>,
    /// The moments at which an endpoint may have something to do.
    wakes: BinaryHeap<Reverse<(Instant, u16)>>,
    /// The moment that counts for each endpoint. The others are stale.
    wake_at: Vec<Option<Instant>>,
    answers: BinaryHeap<Reverse<(Instant, u64)>>,
    working: BTreeMap<u64, (Responder<u16>, Vec<u8>)>,
    fates: Vec<Fate>,
    random: Random,
    faults: Faults,
    serial: u64,
    next: u32,
    lives: u32,
    totals: Totals,
    now: Instant,
}

impl World {
    fn new(requests: u32, faults: Faults) -> Self {
        let config = Config {
            nstart: Some(4),
            max_deduplicated: 1 << 16,
            max_exchanges: 1 << 12,
            max_replies: 1 << 12,
            ..Config::default()
        };
        let setup = Arc::new(Setup { controller: "default".parse().unwrap(), config, bulk: None });
        Self {
            ends: (0..=SERVER).map(|seed| Endpoint::new(setup.clone(), seed.into())).collect(),
            setup,
            open: (0..CLIENTS).map(|_| BTreeMap::new()).collect(),
            flying: BinaryHeap::new(),
            wakes: BinaryHeap::new(),
            wake_at: vec![None; usize::from(SERVER) + 1],
            answers: BinaryHeap::new(),
            working: BTreeMap::new(),
            fates: vec![Fate::default(); requests as usize],
            random: Random(11),
            faults,
            serial: 0,
            next: 0,
            lives: 1,
            totals: Totals::default(),
            now: Instant::ZERO,
        }
    }

    fn run(mut self) -> Totals {
        for client in 0..CLIENTS {
            self.ask(client);
            self.settle(client);
        }
        loop {
            let wake = self.wakes.peek().map(|Reverse((at, _))| *at);
            let arrival = self.flying.peek().map(|Reverse(flight)| flight.at);
            let answer = self.answers.peek().map(|Reverse((at, _))| *at);
            let Some(at) = [wake, arrival, answer].into_iter().flatten().min() else { break };
            self.now = self.now.max(at);
            if wake == Some(at) {
                let Some(Reverse((at, end))) = self.wakes.pop() else { break };
                if self.wake_at[usize::from(end)].take_if(|due| *due == at).is_none() {
                    continue;
                }
                self.ends[usize::from(end)].handle_timeout(self.now);
                self.settle(end);
            } else if arrival == Some(at) {
                let Some(Reverse(flight)) = self.flying.pop() else { break };
                let to = flight.to;
                self.arrive(&flight);
                self.settle(to);
            } else {
                let Some(Reverse((_, serial))) = self.answers.pop() else { break };
                if let Some((responder, tail)) = self.working.remove(&serial) {
                    let _ = self.ends[usize::from(SERVER)].respond(self.now, responder, CHANGED, &tail);
                    self.settle(SERVER);
                }
            }
        }
        assert_eq!(self.ends.iter().map(Endpoint::exchanges).sum::<usize>(), 0, "every exchange has ended");
        assert!(
            self.ends.iter().all(|end| end.counters().forgotten_early == 0),
            "the memory is large enough"
        );
        for (request, fate) in self.fates.iter().enumerate() {
            assert!(fate.ended, "request {request} has no event");
        }
        self.totals
    }

    /// Makes a client send requests until it has enough open.
    fn ask(&mut self, client: u16) {
        let place = usize::from(client);
        while self.open[place].len() < OPEN && (self.next as usize) < self.fates.len() {
            let tail = [&[0xff][..], &self.next.to_be_bytes()].concat();
            let token = Token::new(&self.next.to_le_bytes()).unwrap();
            let request = Request { confirmable: true, code: POST, token, tail: &tail, repeatable: false };
            let exchange = self.ends[place].request(self.now, SERVER, request).unwrap();
            self.open[place].insert(exchange, self.next);
            self.next += 1;
        }
    }

    /// Notes that the exchange of a client is over.
    fn end(&mut self, client: u16, exchange: ExchangeId) -> Option<u32> {
        let request = self.open[usize::from(client)].remove(&exchange)?;
        let fate = &mut self.fates[request as usize];
        assert!(!fate.ended, "request {request} ends twice");
        fate.ended = true;
        self.ask(client);
        Some(request)
    }

    /// Sends all datagrams of an endpoint, takes all its events, and notes when to call it again.
    fn settle(&mut self, end: u16) {
        let place = usize::from(end);
        loop {
            let mut bytes = Vec::new();
            let draw = Draw::from_bits(self.random.below(1 << 31) as u32);
            if let Some(transmit) = self.ends[place].poll_transmit(self.now, |_| draw, &mut bytes) {
                self.send(end, transmit.to, &bytes);
            } else if let Some(event) = self.ends[place].poll_event() {
                let Event::Failed { exchange, .. } = event else { panic!("{event:?}") };
                // The exchanges that the server begins are its separate responses.
                if end != SERVER && self.end(end, exchange).is_some() {
                    self.totals.failed += 1;
                }
            } else {
                break;
            }
        }
        let next = self.ends[place].poll_timeout().map(|at| at.max(self.now));
        if std::mem::replace(&mut self.wake_at[place], next) != next {
            self.wakes.extend(next.map(|at| Reverse((at, end))));
        }
    }

    fn send(&mut self, from: u16, to: u16, bytes: &[u8]) {
        let copies = 1 + u64::from(self.random.percent(self.faults.duplicated));
        for _ in 0..copies {
            if self.random.percent(self.faults.lost) {
                continue;
            }
            let (mut bytes, corrupted) = (bytes.to_vec(), self.random.percent(self.faults.corrupted));
            if corrupted {
                let at = self.random.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << self.random.below(8);
            }
            let at = self.now + Duration::from_micros(1_000 + self.random.below(3_000_000));
            self.serial += 1;
            self.flying.push(Reverse(Flight { at, serial: self.serial, from, to, corrupted, bytes }));
        }
    }

    fn arrive(&mut self, flight: &Flight) {
        let place = usize::from(flight.to);
        match self.ends[place].handle_datagram(self.now, flight.from, &flight.bytes) {
            Some(Event::Request { responder, message }) => {
                // A request that was corrupted counts as another one.
                if let (false, Ok(request)) = (flight.corrupted, <[u8; 4]>::try_from(message.payload())) {
                    let fate = &mut self.fates[u32::from_be_bytes(request) as usize];
                    assert_ne!(fate.delivered, self.lives, "{request:?} is delivered twice");
                    fate.delivered = self.lives;
                    self.totals.delivered += 1;
                }
                let tail = message.tail.to_vec();
                let wait = if self.random.percent(20) { 5 } else { 0 };
                self.serial += 1;
                self.working.insert(self.serial, (responder, tail));
                self.answers.push(Reverse((self.now + Duration::from_secs(wait), self.serial)));
            }
            Some(Event::Response { exchange, message }) => {
                let payload = message.payload();
                let request = self.end(flight.to, exchange).expect("a response belongs to one request");
                self.totals.answered += 1;
                if self.faults.corrupted == 0 {
                    assert_eq!(payload, request.to_be_bytes(), "the response of another request");
                    assert_ne!(self.fates[request as usize].delivered, 0);
                }
                if self.faults.restarts && self.random.below(5_000) == 0 {
                    self.restart(flight.to);
                }
                if self.faults.restarts && self.random.below(50_000) == 0 {
                    self.restart(SERVER);
                }
            }
            Some(Event::Failed { exchange, .. }) => {
                if flight.to != SERVER && self.end(flight.to, exchange).is_some() {
                    self.totals.failed += 1;
                }
            }
            Some(Event::Acknowledged { .. } | Event::Pong { .. }) | None => {}
            Some(event) => panic!("{event:?}"),
        }
    }

    /// Restarts an endpoint and its application. Both lose their memory.
    fn restart(&mut self, end: u16) {
        let seed = self.random.below(u64::MAX);
        self.ends[usize::from(end)] = Endpoint::new(self.setup.clone(), seed);
        if end == SERVER {
            self.lives += 1;
            self.working.clear();
            return;
        }
        for request in std::mem::take(&mut self.open[usize::from(end)]).into_values() {
            self.fates[request as usize].ended = true;
            self.totals.orphaned += 1;
        }
        self.ask(end);
        self.settle(end);
    }
}

/// Sends half of the requests over a network that corrupts datagrams: a response may then answer another
/// request. The other half goes over a network that does not, and no response may answer another request.
fn run(requests: u32) {
    for corrupted in [2, 0] {
        let faults = Faults { lost: 10, duplicated: 10, corrupted, restarts: true };
        let totals = World::new(requests / 2, faults).run();
        let Totals { answered, failed, orphaned, delivered } = totals;
        assert_eq!(answered + failed + orphaned, u64::from(requests / 2));
        assert!(delivered > answered * 9 / 10 && answered > u64::from(requests) * 2 / 5, "{totals:?}");
        assert!(orphaned > 0, "{totals:?}");
    }
}

#[test]
fn of_a_million_requests_each_is_delivered_at_most_once_and_ends_in_a_response_or_an_error() {
    run(1_000_000);
}
