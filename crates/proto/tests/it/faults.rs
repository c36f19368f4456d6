//! Two endpoints over a network that loses, duplicates, delays and corrupts datagrams.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use coapace_control::{Controller, Draw, Instant, Marking, Mechanism, REGISTRY};
use coapace_proto::{Code, Config, Endpoint, Event, Request, Responder, Setup, Token};
use proptest::prelude::*;

use crate::common::Random;

const GET: Code = Code(coap_numbers::code::GET);
const POST: Code = Code(coap_numbers::code::POST);

const CLIENT: u8 = 0;
const SERVER: u8 = 1;

/// The faults of the network, in percent of the datagrams.
#[derive(Clone, Copy, Debug)]
struct Faults {
    lost: u64,
    duplicated: u64,
    corrupted: u64,
    /// The share of requests that the server answers separately.
    slow: u64,
}

/// A datagram on its way: when it arrives, its serial number, where it arrives, and its bytes.
type Flight = (Instant, u64, u8, Vec<u8>);

struct Network {
    random: Random,
    faults: Faults,
    flying: BinaryHeap<Reverse<Flight>>,
    serial: u64,
}

impl Network {
    fn send(&mut self, now: Instant, to: u8, bytes: &[u8]) {
        let copies = 1 + u64::from(self.random.below(100) < self.faults.duplicated);
        for _ in 0..copies {
            if self.random.below(100) < self.faults.lost {
                continue;
            }
            let mut bytes = bytes.to_vec();
            if self.random.below(100) < self.faults.corrupted {
                let at = self.random.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << self.random.below(8);
            }
            let delay = coapace_control::Duration::from_micros(1_000 + self.random.below(3_000_000));
            self.serial += 1;
            self.flying.push(Reverse((now + delay, self.serial, to, bytes)));
        }
    }
}

/// Runs `requests` to their end. Returns how often each was delivered, how it ended, and whether anything is
/// left.
fn run(
    mechanism: Mechanism,
    code: Code,
    requests: u32,
    faults: Faults,
    seed: u64,
) -> (BTreeMap<u32, u32>, BTreeMap<u32, u32>, usize) {
    let setup = Arc::new(Setup { controller: mechanism, config: Config::default(), bulk: None });
    let mut ends = [Endpoint::<Mechanism, u8>::new(setup.clone(), 1), Endpoint::new(setup, 2)];
    let mut network = Network { random: Random(seed), faults, flying: BinaryHeap::new(), serial: 0 };
    let (mut delivered, mut ended) = (BTreeMap::new(), BTreeMap::new());
    let mut open = BTreeMap::new();
    let mut answers: Vec<(Instant, Responder<u8>)> = Vec::new();
    let mut now = Instant::ZERO;
    let mut next = 0;
    for step in 0u64.. {
        assert!(step < 1_000_000, "the run must end");
        while next < requests && open.len() < 20 {
            let token = Token::new(&next.to_be_bytes()).unwrap();
            let confirmable = next % 4 != 3;
            let request = Request { confirmable, code, token, tail: &[], repeatable: false };
            open.insert(ends[0].request(now, SERVER, request).unwrap(), next);
            next += 1;
        }
        for (end, to) in [(0, SERVER), (1, CLIENT)] {
            let mut bytes = Vec::new();
            while ends[end].poll_transmit(now, |_| Draw::from_bits(seed as u32), &mut bytes).is_some() {
                network.send(now, to, &bytes);
                bytes.clear();
            }
            while let Some(event) = ends[end].poll_event() {
                let Event::Failed { exchange, .. } = event else { unreachable!() };
                // The exchanges that the server begins are its separate responses.
                if end == 0
                    && let Some(request) = open.remove(&exchange)
                {
                    *ended.entry(request).or_insert(0) += 1;
                }
            }
        }
        let times = ends.iter().filter_map(Endpoint::poll_timeout);
        let arrival = network.flying.peek().map(|Reverse((at, ..))| *at);
        let answer = answers.iter().map(|&(at, ..)| at).min();
        let Some(at) = times.chain(arrival).chain(answer).min() else { break };
        now = now.max(at);
        for end in &mut ends {
            end.handle_timeout(now);
        }
        if let Some(ready) = answers.iter().position(|&(at, ..)| at <= now) {
            let (_, responder) = answers.swap_remove(ready);
            let _ = ends[1].respond(now, responder, Code(0x45), b"\xffanswer");
        }
        if arrival.is_none_or(|at| at > now) {
            continue;
        }
        let Some(Reverse((_, _, to, bytes))) = network.flying.pop() else { continue };
        match (to, ends[usize::from(to)].handle_datagram(now, 1 - to, &bytes)) {
            (SERVER, Some(Event::Request { responder, message })) => {
                if let Ok(token) = <[u8; 4]>::try_from(&message.token[..message.token.len().min(4)]) {
                    *delivered.entry(u32::from_be_bytes(token)).or_insert(0) += 1;
                }
                let wait = if network.random.below(100) < network.faults.slow { 5 } else { 0 };
                answers.push((now + coapace_control::Duration::from_secs(wait), responder));
            }
            // Bits that were turned may make a critical option that nobody knows.
            (
                CLIENT,
                Some(
                    Event::Response { exchange, .. }
                    | Event::Rejected { exchange, .. }
                    | Event::Failed { exchange, .. },
                ),
            ) => {
                if let Some(request) = open.remove(&exchange) {
                    *ended.entry(request).or_insert(0) += 1;
                }
            }
            _ => {}
        }
    }
    (delivered, ended, ends[0].exchanges() + ends[1].exchanges())
}

#[test]
fn under_loss_duplication_and_reordering_each_request_is_delivered_at_most_once_and_ends_exactly_once() {
    let faults = Faults { lost: 30, duplicated: 20, corrupted: 0, slow: 30 };
    for entry in REGISTRY {
        for code in [GET, POST] {
            let (delivered, ended, left) = run(entry.mechanism, code, 300, faults, 7);
            let marking = entry.mechanism.limits(&entry.mechanism.state()).marking;
            // If each transmission has a Message ID of its own, a server takes each for a new request. A POST
            // is never marked so.
            let most = if marking == Marking::FreshMessageId && code == GET { 5 } else { 1 };
            assert!(delivered.values().all(|&times| times <= most), "{}: {delivered:?}", entry.name);
            assert_eq!((ended.len(), left), (300, 0), "{}", entry.name);
            assert!(ended.values().all(|&times| times == 1), "{}", entry.name);
            assert!(delivered.len() > 200, "{}: most get through, {} did", entry.name, delivered.len());
        }
    }
}

#[test]
fn without_faults_every_request_is_delivered() {
    let faults = Faults { lost: 0, duplicated: 0, corrupted: 0, slow: 0 };
    for entry in REGISTRY {
        let (delivered, ended, left) = run(entry.mechanism, GET, 100, faults, 3);
        assert_eq!((delivered.len(), ended.len(), left), (100, 100, 0), "{}", entry.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn every_exchange_ends_and_frees_its_slot_under_any_network_faults(
        lost in 0u64..60, duplicated in 0u64..60, corrupted in 0u64..30, slow in 0u64..100, seed: u64,
        mechanism in 0..REGISTRY.len(),
    ) {
        let faults = Faults { lost, duplicated, corrupted, slow };
        let (_, ended, left) = run(REGISTRY[mechanism].mechanism, GET, 60, faults, seed);
        prop_assert_eq!((ended.len(), left), (60, 0));
    }

    #[test]
    fn no_received_bytes_cause_a_panic_of_the_endpoint(
        datagrams in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 1..60),
        header in any::<bool>(),
    ) {
        let setup = Arc::new(Setup { controller: REGISTRY[0].mechanism, config: Config::default(), bulk: None });
        let mut endpoint = Endpoint::<Mechanism, u8>::new(setup, 3);
        let mut buffer = Vec::new();
        for (at, mut datagram) in datagrams.into_iter().enumerate() {
            let now = Instant::from_millis(at as u64 * 700);
            if let (true, Some(first)) = (header, datagram.first_mut()) {
                *first = 0x40 | *first & 0x33;
            }
            let request = Request { confirmable: true, code: GET, token: Token::EMPTY, tail: &[], repeatable: false };
            let _ = endpoint.request(now, 0, request);
            if let Some(Event::Request { responder, .. }) = endpoint.handle_datagram(now, 0, &datagram) {
                let _ = endpoint.respond(now, responder, Code(0x45), &[]);
            }
            endpoint.handle_timeout(now);
            while endpoint.poll_transmit(now, |_| Draw::ZERO, &mut buffer).is_some() {}
            prop_assert!(endpoint.exchanges() <= 64 && endpoint.peers() <= 64);
        }
    }
}
