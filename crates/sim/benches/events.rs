//! The event queue against the standard library's binary heap: the cost of an event with 100 to 100,000 pending.
//!
//! This is the hold model: pop the next event, push one that lies ahead. In `timers` all are retransmission timeouts of
//! 2-3 s. In `mixed` four events in five are packets 10-20 ms ahead, and the fifth is a timer, like in a network.
#![allow(missing_docs)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

use coapace_sim::{Events, Luck, Span, Stream, Time};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const HOLDS: u64 = 10_000;

fn ahead(stream: Stream, step: u64, mixed: bool) -> u64 {
    if mixed && !step.is_multiple_of(5) {
        10_000_000 + stream.below(10_000_000, step, 0, 0)
    } else {
        2_000_000_000 + stream.below(1_000_000_000, step, 0, 0)
    }
}

fn hold(criterion: &mut Criterion) {
    let stream = Luck::new(1).stream("bench");
    for mixed in [false, true] {
        let mut group = criterion.benchmark_group(if mixed { "mixed" } else { "timers" });
        group.throughput(Throughput::Elements(HOLDS));
        for pending in [100u64, 1_000, 10_000, 100_000] {
            group.bench_function(BenchmarkId::new("Events", pending), |bencher| {
                let mut events = Events::new();
                for step in 0..pending {
                    events.push(Time::from_nanos(ahead(stream, 5 * step, false)), step as u32);
                }
                let mut step = 0;
                bencher.iter(|| {
                    for _ in 0..HOLDS {
                        if let Some((now, what)) = events.pop(Time::MAX) {
                            step += 1;
                            events.push(now + Span::from_nanos(ahead(stream, step, mixed)), black_box(what));
                        }
                    }
                });
            });
            group.bench_function(BenchmarkId::new("BinaryHeap", pending), |bencher| {
                let mut events: BinaryHeap<_> = (0..pending)
                    .map(|step| Reverse((ahead(stream, 5 * step, false), step, step as u32)))
                    .collect();
                let mut step = 0;
                bencher.iter(|| {
                    for _ in 0..HOLDS {
                        if let Some(Reverse((now, _, what))) = events.pop() {
                            step += 1;
                            events.push(Reverse((now + ahead(stream, step, mixed), step, black_box(what))));
                        }
                    }
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, hold);
criterion_main!(benches);
