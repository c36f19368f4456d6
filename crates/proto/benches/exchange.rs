//! Benchmarks one exchange between two endpoints: a confirmable GET and its piggybacked response, including encoding and
//! decoding.

use std::hint::black_box;
use std::sync::Arc;

use coapace_control::{Draw, Instant, Mechanism};
use coapace_proto::{Code, Config, Endpoint, Event, Request, Setup, Token};
use criterion::{Criterion, criterion_group, criterion_main};

const PAYLOAD: [u8; 61] = [0xff; 61];

fn exchange(c: &mut Criterion) {
    for (name, max_deduplicated) in [("without deduplication", 0), ("with deduplication", 256)] {
        let mechanism: Mechanism = "default".parse().expect("a mechanism");
        let setup = Arc::new(Setup {
            controller: mechanism,
            bulk: None,
            config: Config { max_deduplicated, ..Config::default() },
        });
        let mut client = Endpoint::<Mechanism, u32>::new(setup.clone(), 1);
        let mut server = Endpoint::<Mechanism, u32>::new(setup, 2);
        let (mut request, mut response) = (Vec::new(), Vec::new());
        let mut ms = 0;
        c.bench_function(&format!("exchange {name}"), |b| {
            b.iter(|| {
                // Not faster than Message IDs may be used again (RFC 7252 §4.4).
                ms += 10;
                let now = Instant::from_millis(ms);
                request.clear();
                response.clear();
                let get = Request {
                    confirmable: true,
                    code: Code(1),
                    token: Token::EMPTY,
                    tail: b"\xb5abcde",
                    repeatable: false,
                };
                client.request(now, 2, get).expect("room");
                client.poll_transmit(now, |_| Draw::ZERO, &mut request).expect("a request");
                let Some(Event::Request { responder, .. }) = server.handle_datagram(now, 1, &request) else {
                    panic!("no request")
                };
                server.respond(now, responder, Code(0x45), &PAYLOAD).expect("room");
                server.poll_transmit(now, |_| Draw::ZERO, &mut response).expect("a response");
                black_box(client.handle_datagram(now, 2, &response)).expect("an event");
            });
        });
    }
}

criterion_group!(benches, exchange);
criterion_main!(benches);
