//! The memory of an endpoint does not depend on the number of clients. There is only one test in this file,
//! because it counts the allocations of the process.
#![allow(unsafe_code)] // An allocator is unsafe to implement.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use coapace_control::{Draw, Instant, Mechanism};
use coapace_proto::block::{Assembled, Bounds, Reassembly};
use coapace_proto::echo::{Echo, Gate};
use coapace_proto::{Code, Config, Endpoint, Event, Kind, Message, Options, Request, Setup, Token};

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator as it came. Counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(held, Relaxed);
        // SAFETY: the caller keeps the promises of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the memory came from `alloc` above, with this layout.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const GET: Code = Code(coap_numbers::code::GET);
const PUT: Code = Code(coap_numbers::code::PUT);
const CONTENT: Code = Code(coap_numbers::code::CONTENT);

/// The only peer that the endpoint sends requests to.
const FRIEND: u32 = u32::MAX;

struct Server {
    endpoint: Endpoint<Mechanism, u32>,
    bodies: Reassembly<u32>,
    gate: Gate<u32>,
    sent: Vec<u8>,
}

impl Server {
    fn handle(&mut self, now: Instant, from: u32, bytes: &[u8]) {
        let Some(Event::Request { responder, message }) = self.endpoint.handle_datagram(now, from, bytes)
        else {
            return;
        };
        if let Assembled::Answer { code, tail } = self.bodies.handle(now, from, &message) {
            let _ = self.endpoint.respond(now, responder, code, tail.as_bytes());
        } else if !self.gate.verifies(now, from, &message) {
            let challenge = self.gate.challenge(now, from);
            let _ = self.endpoint.respond(now, responder, Code(0x81), challenge.as_bytes());
        } else {
            let _ = self.endpoint.register(now, &responder, 1);
            let responder = self.endpoint.acknowledge(now, responder);
            let _ = self.endpoint.respond(now, responder, CONTENT, &[0xff; 1000]);
        }
    }

    /// Sends one datagram of each kind from a new source.
    fn meet(&mut self, from: u32) {
        let now = Instant::from_millis(u64::from(from) * 5);
        let echo = Echo::new(KEY, coapace_control::Duration::from_secs(60)).value(now, from);
        let first = coapace_proto::block::Block::new(0, true, 6).unwrap();
        let requests = [
            (GET, Options::default().echo(&echo), vec![]),
            (GET, Options::default(), vec![]),
            (PUT, Options::default().block1(first), vec![1; 1024]),
        ];
        for (id, (code, options, payload)) in requests.into_iter().enumerate() {
            let tail = options.tail(&payload).unwrap();
            for kind in [Kind::Confirmable, Kind::NonConfirmable] {
                let message = Message {
                    code,
                    token: Token::new(b"t").unwrap(),
                    tail: tail.as_bytes(),
                    ..Message::empty(kind, id as u16 * 2 + kind as u16)
                };
                let mut bytes = Vec::new();
                message.write(&mut bytes);
                self.handle(now, from, &bytes);
                // A datagram that is cut anywhere is malformed about every second time.
                self.handle(now, from, &bytes[..bytes.len() / 2]);
            }
        }
        self.endpoint.handle_timeout(now);
        loop {
            self.sent.clear();
            if self.endpoint.poll_transmit(now, |_| Draw::ZERO, &mut self.sent).is_none() {
                break;
            }
        }
        while self.endpoint.poll_event().is_some() {}
        self.endpoint.notify(1, true, CONTENT, &[0xff; 1000]);
    }
}

const KEY: [u8; 16] = [7; 16];

#[test]
fn a_flood_of_sources_takes_no_memory_and_disturbs_no_outstanding_request() {
    let config = Config {
        // This observation outlasts the flood.
        response_timeout: coapace_control::Duration::from_secs(1_000_000),
        ..Config::default()
    };
    let setup = Arc::new(Setup { controller: "default".parse().unwrap(), config, bulk: None });
    let before = HELD.load(Relaxed);
    let mut server = Server {
        endpoint: Endpoint::new(setup, 3),
        bodies: Reassembly::new(Bounds::default()),
        gate: Gate::new(Echo::new(KEY, coapace_control::Duration::from_secs(60)), 64),
        sent: Vec::with_capacity(2048),
    };
    let token = Token::new(b"own").unwrap();
    let own = Request { confirmable: true, code: GET, token, tail: &[], repeatable: false };
    let exchange = server.endpoint.request(Instant::ZERO, FRIEND, own).unwrap();
    let mut request = Vec::new();
    server.endpoint.poll_transmit(Instant::ZERO, |_| Draw::ZERO, &mut request).unwrap();
    let id = Message::parse(&request).unwrap().message_id;
    let mut bytes = Vec::new();
    Message::empty(Kind::Acknowledgement, id).write(&mut bytes);
    assert!(server.endpoint.handle_datagram(Instant::ZERO, FRIEND, &bytes).is_some());

    let mut peaks = Vec::new();
    for (from, to) in [(0, 50_000), (50_000, 250_000)] {
        PEAK.store(HELD.load(Relaxed), Relaxed);
        for source in from..to {
            server.meet(source);
        }
        peaks.push(PEAK.load(Relaxed) - before);
        let held = config.max_observers as usize;
        assert!(server.endpoint.peers() <= config.max_peers as usize + held);
        assert!(server.endpoint.observer_count() <= config.max_observers as usize);
    }
    // The tables are full after the first sources. The lengths of the messages in them differ a little.
    assert!(peaks[0] < 256 << 10 && peaks[1] < peaks[0] + peaks[0] / 50, "{peaks:?} bytes");
    let counters = server.endpoint.counters();
    assert!(
        counters.started > 500 && counters.malformed > 1000,
        "the flood reached everything: {counters:?}"
    );

    let response = Message { code: CONTENT, token, ..Message::empty(Kind::NonConfirmable, 1) };
    bytes.clear();
    response.write(&mut bytes);
    let event = server.endpoint.handle_datagram(Instant::from_secs(400), FRIEND, &bytes);
    assert!(matches!(event, Some(Event::Response { exchange: of, .. }) if of == exchange), "{event:?}");
}
