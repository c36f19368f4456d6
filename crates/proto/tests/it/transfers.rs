//! Bodies in blocks between two endpoints, several blocks under way, over a network that loses, doubles and reorders
//! datagrams.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use coapace_control::{Draw, Duration, Instant, Mechanism};
use coapace_proto::block::{Assembled, Block, Bounds, Piece, Progress, Reassembly, Slice, Transfer};
use coapace_proto::{Code, Config, Endpoint, Event, ExchangeId, Options, Request, Responder, Tail, Token};

use crate::common::{CONTENT, Client, GET, Random};

const PUT: Code = Code(coap_numbers::code::PUT);
const CHANGED: Code = Code(coap_numbers::code::CHANGED);
const CLIENT: u32 = 0;
const SERVER: u32 = 1;

/// A datagram on its way: when it arrives, its serial number, where it arrives, and its bytes.
type Flight = (Instant, u64, u32, Vec<u8>);

struct Network {
    random: Random,
    /// Datagrams that are lost, in percent.
    lost: u64,
    flying: BinaryHeap<Reverse<Flight>>,
    serial: u64,
}

impl Network {
    /// Sends a datagram, which may overtake others. One in ten arrives twice.
    fn send(&mut self, now: Instant, to: u32, bytes: &[u8]) {
        for _ in 0..=u64::from(self.random.below(10) == 0) {
            if self.random.below(100) >= self.lost {
                let at = now + Duration::from_millis(50 + self.random.below(100));
                self.serial += 1;
                self.flying.push(Reverse((at, self.serial, to, bytes.to_vec())));
            }
        }
    }
}

fn body(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 64 * 7 + at % 251) as u8).collect()
}

/// A server that has a body and takes one.
struct Server {
    endpoint: Endpoint<Mechanism, u32>,
    whole: Vec<u8>,
    reassembly: Reassembly<u32>,
    taken: Vec<Vec<u8>>,
    /// The responses that it owes, and when.
    answers: Vec<(Instant, Responder<u32>)>,
}

impl Server {
    fn handle(&mut self, now: Instant, bytes: &[u8]) {
        let Some(Event::Request { responder, message }) = self.endpoint.handle_datagram(now, CLIENT, bytes)
        else {
            return;
        };
        let mut respond = |code, tail: &Tail| self.endpoint.respond(now, responder, code, tail.as_bytes());
        if message.code == GET {
            let asked = message.block2().unwrap().or(Block::new(0, false, 2));
            let slice = Slice::new(&self.whole, asked, 2).unwrap();
            respond(CONTENT, &slice.options(Options::default()).tail(slice.payload).unwrap()).unwrap();
            return;
        }
        match self.reassembly.handle(now, CLIENT, &message) {
            Assembled::Taken => drop(self.endpoint.acknowledge(now, responder)),
            Assembled::Answer { code, tail } => drop(respond(code, &tail).unwrap()),
            Assembled::Whole { body, .. } => {
                self.taken.push(body.into_owned());
                // The response takes a second, and comes separately.
                let responder = self.endpoint.acknowledge(now, responder);
                self.answers.push((now + Duration::from_secs(1), responder));
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        if let Some(ready) = self.answers.iter().position(|&(at, _)| at <= now) {
            let (_, responder) = self.answers.swap_remove(ready);
            self.endpoint.respond(now, responder, CHANGED, &[]).unwrap();
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.endpoint.poll_timeout().into_iter().chain(self.answers.iter().map(|&(at, _)| at)).min()
    }
}

/// A client with a transfer, of which several requests are under way.
struct Carrier {
    endpoint: Endpoint<Mechanism, u32>,
    transfer: Transfer,
    code: Code,
    /// The maximum number of requests under way, and the number of those.
    nstart: u16,
    waiting: u16,
    /// The requests that the server has not answered, and whether it has acknowledged them.
    pieces: BTreeMap<ExchangeId, (Piece, bool)>,
    /// The acknowledged requests. The last ones at least may bring the response.
    acknowledged: VecDeque<ExchangeId>,
    token: u32,
}

impl Carrier {
    fn ask(&mut self, now: Instant) {
        while self.waiting < self.nstart
            && let Some((piece, tail)) = self.transfer.next_request().unwrap()
        {
            self.token += 1;
            let (token, tail) = (Token::new(&self.token.to_be_bytes()).unwrap(), tail.as_bytes());
            let request = Request { confirmable: true, code: self.code, token, tail, repeatable: false };
            let exchange = self.endpoint.request(now, SERVER, request).unwrap();
            self.pieces.insert(exchange, (piece, false));
            self.waiting += 1;
        }
    }

    /// Asks again for the blocks that were given up.
    fn look_after(&mut self, now: Instant) {
        while let Some(event) = self.endpoint.poll_event() {
            if let Event::Failed { exchange, .. } = event
                && let Some((piece, false)) = self.pieces.remove(&exchange)
            {
                self.waiting -= 1;
                // The first request of a transfer is given up as often as any other. It is made again.
                let _ = self.transfer.lost(piece);
            }
        }
        self.ask(now);
    }

    /// Returns whether the transfer is complete.
    fn handle(&mut self, now: Instant, bytes: &[u8]) -> bool {
        match self.endpoint.handle_datagram(now, SERVER, bytes) {
            Some(Event::Acknowledged { exchange }) => {
                if let Some((piece, is_taken @ false)) = self.pieces.get_mut(&exchange)
                    && self.transfer.acknowledged(*piece)
                {
                    *is_taken = true;
                    self.waiting -= 1;
                    self.acknowledged.push_back(exchange);
                }
                if self.acknowledged.len() > 32
                    && let Some(oldest) = self.acknowledged.pop_front()
                {
                    self.endpoint.cancel(now, oldest);
                    self.pieces.remove(&oldest);
                }
            }
            Some(Event::Response { exchange, message }) => {
                let Some((piece, is_taken)) = self.pieces.remove(&exchange) else { return false };
                self.waiting -= u16::from(!is_taken);
                return self.transfer.handle_piece(piece, &message).unwrap() == Progress::Complete;
            }
            _ => {}
        }
        false
    }
}

/// The result of a run: the bodies that the server has taken, the body that the client has, and the time.
struct Outcome {
    taken: Vec<Vec<u8>>,
    got: Vec<u8>,
    elapsed: Duration,
}

/// Moves a body of requests with Q-Block1, or of the response to a GET, with `nstart` blocks under way.
fn run(code: Code, len: usize, nstart: u16, lost: u64, seed: u64) -> Outcome {
    let config = Config { nstart: Some(nstart), max_exchanges: 64, ..Config::default() };
    let whole = body(len);
    let transfer = if code == GET {
        Transfer::new(Options::default(), vec![], 2, len).with_random_access()
    } else {
        Transfer::new(Options::default(), whole.clone(), 2, len).with_q_block(code, b"tag")
    };
    let mut client = Carrier {
        endpoint: Client::with(config).endpoint,
        transfer,
        code,
        nstart,
        waiting: 0,
        pieces: BTreeMap::new(),
        acknowledged: VecDeque::new(),
        token: 0,
    };
    let bounds = Bounds { max_body: len, max_bytes: 2 * len, ..Bounds::default() };
    let mut server = Server {
        endpoint: Client::with(config).endpoint,
        whole,
        reassembly: Reassembly::new(bounds),
        taken: vec![],
        answers: vec![],
    };
    let mut network = Network { random: Random(seed), lost, flying: BinaryHeap::new(), serial: 0 };
    let mut now = Instant::ZERO;
    for _ in 0..1_000_000 {
        client.look_after(now);
        while server.endpoint.poll_event().is_some() {}
        for (end, to) in [(&mut client.endpoint, SERVER), (&mut server.endpoint, CLIENT)] {
            let mut bytes = Vec::new();
            while end.poll_transmit(now, |_| Draw::ZERO, &mut bytes).is_some() {
                network.send(now, to, &bytes);
                bytes.clear();
            }
        }
        let arrival = network.flying.peek().map(|Reverse((at, ..))| *at);
        let times = [client.endpoint.poll_timeout(), server.poll_timeout(), arrival];
        now = now.max(times.into_iter().flatten().min().expect("somebody waits for something"));
        client.endpoint.handle_timeout(now);
        server.handle_timeout(now);
        if arrival.is_none_or(|at| at > now) {
            continue;
        }
        match network.flying.pop() {
            Some(Reverse((_, _, SERVER, bytes))) => server.handle(now, &bytes),
            Some(Reverse((_, _, _, bytes))) if client.handle(now, &bytes) => {
                let elapsed = now.since(Instant::ZERO);
                return Outcome { taken: server.taken, got: client.transfer.take_body(), elapsed };
            }
            _ => {}
        }
    }
    panic!("the run must end")
}

#[test]
fn a_body_arrives_once_and_complete_with_20_percent_loss_each_way() {
    for seed in 0..20 {
        let up = run(PUT, 20_000, 16, 20, seed);
        assert!(up.taken == [body(20_000)], "{seed}: {} bodies", up.taken.len());
        let down = run(GET, 20_000, 16, 20, seed);
        assert!(down.got == body(20_000), "{seed}");
    }
}

#[test]
fn a_body_takes_fewer_round_trips_with_more_outstanding_blocks() {
    for code in [PUT, GET] {
        let elapsed = |nstart| run(code, 20_000, nstart, 0, 1).elapsed.as_micros();
        let (one, many) = (elapsed(1), elapsed(16));
        assert!(many * 8 < one, "{many:?} and {one:?}");
    }
}
