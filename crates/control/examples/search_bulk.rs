//! Searches for parameters of `tide` on random networks, and compares the best ones with the current ones on other networks.
//!
//! ```sh
//! cargo run --release --package coapace-control --example search_bulk            # the search
//! cargo run --release --package coapace-control --example search_bulk -- tide:target=3,fall=1/5    # compare only
//! ```
//!
//! A network has a rate of 10 kbit/s to 10 Mbit/s, a round-trip time of 5 to 800 ms, a buffer of a tenth to three times their
//! product, and no losses or up to 15 % each way. None is a published cell or a built-in scenario. The score of a mechanism is
//! a mean over networks of: the logarithm of the time of a single flow relative to the link alone, a third of its mean queueing
//! delay relative to the round-trip time with two blocks, and how far from equal shares are (absolute logarithms) between two
//! flows of the mechanism, and beside `newreno` on a link without losses. A smaller score is better.

#![allow(clippy::cast_sign_loss)] // no value below is negative

#[path = "../tests/link/mod.rs"]
mod link;

use std::sync::atomic::{AtomicUsize, Ordering};

use coapace_control::{Mechanism, Mechanisms};
use link::{Link, Random, Run};

/// The number of networks of the search, and also of the comparison.
const NETWORKS: u64 = 96;

/// The values that the search tries, for each parameter.
const VALUES: [(&str, &[&str]); 10] = [
    ("target", &["1", "2", "3", "4"]),
    ("fall", &["1/10", "1/8", "1/6", "1/5", "1/4"]),
    ("ebb_after", &["2", "3", "4", "5", "6", "8"]),
    ("ebb", &["1/2", "5/8", "3/4", "7/8"]),
    ("ebbed", &["1/5", "1/4", "1/3", "2/5", "1/2"]),
    ("compete_for", &["8", "16", "24", "32", "48", "64", "100"]),
    ("loss_leaves", &["3/4", "13/16", "7/8", "15/16"]),
    ("wary_for", &["8", "16", "24", "32", "48"]),
    ("competing_loss_leaves", &["7/16", "1/2", "9/16", "5/8", "11/16"]),
    ("overtaken", &["1/16", "1/8", "3/16", "1/4"]),
];

/// A network, and the number of blocks of a body that crosses it.
struct Network {
    link: Link,
    blocks: usize,
}

impl Network {
    fn draw(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut between = |low: f64, high: f64| low * (high / low).powf(random.unit());
        let (rate, rtt) = (between(1e4, 1e7), between(5e3, 8e5));
        let block = if between(1.0, 5.0) < 1.4 { 124 } else { 1_074 };
        let product = rate * rtt / 8e6 / block as f64;
        let buffer = (product * between(0.1, 3.0)).max(between(4.0, 16.0));
        let loss = if between(1.0, 5.0) < 2.0 { 0.0 } else { between(0.001, 0.15) };
        let jitter = rtt * between(0.001, 0.1);
        let blocks = (20.0 * product).clamp(200.0, 1_500.0) as usize;
        let [rate, rtt, buffer, jitter] = [rate, rtt, buffer, jitter].map(|value| value as u64);
        Self { link: Link { rate, rtt, block, request: 60, buffer, jitter, loss }, blocks }
    }

    /// Returns the time in seconds that the link alone needs for the body, losses included.
    fn alone(&self) -> f64 {
        let Link { rate, rtt, block, loss, .. } = self.link;
        let transmission = block as f64 * 8.0 / rate as f64;
        self.blocks as f64 * transmission / (1.0 - loss) + rtt as f64 / 1e6
    }

    /// Returns the parts of the score on one network.
    fn score(&self, mechanism: Mechanism) -> [f64; 4] {
        const SEEDS: [u64; 3] = [1, 2, 3];
        let newreno = parsed("newreno");
        let mean = |each: [f64; 3]| each.iter().sum::<f64>() / 3.0;
        let lone = SEEDS.map(|seed| {
            let mut run = Run::new(self.link, seed);
            run.add(mechanism, self.blocks, 0);
            let seconds = run.go(u64::MAX)[0].seconds;
            (seconds, run.mean_queue())
        });
        let share = |link: Link, first, second, seed: u64| {
            let span = (self.alone() * 1e6) as u64;
            Run::share(link, seed, [first, second], span / 10, 4 * span).ln().abs()
        };
        let transmission = self.link.block as f64 * 8.0 / self.link.rate as f64;
        let short = self.link.rtt as f64 / 1e6 + 2.0 * transmission;
        let clean = Link { loss: 0.0, ..self.link };
        [
            mean(lone.map(|(seconds, _)| (seconds / self.alone()).ln())),
            mean(lone.map(|(_, queue)| queue / short)) / 3.0,
            mean(SEEDS.map(|seed| share(self.link, mechanism, mechanism, seed))),
            mean(
                SEEDS.map(|seed| {
                    share(clean, mechanism, newreno, seed) + share(clean, newreno, mechanism, seed)
                }),
            ) / 2.0,
        ]
    }
}

fn parsed(text: &str) -> Mechanism {
    Mechanisms::BUILT_IN.parse_bulk(text).unwrap_or_else(|error| {
        eprintln!("{error}");
        std::process::exit(2)
    })
}

/// Returns the mean of each part of the score over these networks.
fn scores(networks: &[Network], mechanism: Mechanism) -> [f64; 4] {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut sum = [0.0; 4];
        while let Some(network) = networks.get(next.fetch_add(1, Ordering::Relaxed)) {
            let score = network.score(mechanism);
            sum.iter_mut().zip(score).for_each(|(sum, part)| *sum += part);
        }
        sum
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let sums = std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        all.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
    });
    let mut mean = [0.0; 4];
    for sum in sums {
        mean.iter_mut().zip(sum).for_each(|(mean, part)| *mean += part / networks.len() as f64);
    }
    mean
}

fn total(score: [f64; 4]) -> f64 {
    score.iter().sum()
}

fn print(name: &str, score: [f64; 4]) {
    let [time, queue, own, newreno] = score;
    println!("{:.4}  {time:.3} {queue:.3} {own:.3} {newreno:.3}  {name}", total(score));
}

fn main() {
    let drawn = |first: u64| (first..first + NETWORKS).map(Network::draw).collect::<Vec<_>>();
    let (searched, others) = (drawn(1), drawn(1_001));
    println!("score   time queue own newreno");
    let present = parsed("tide");
    let mut best = present;
    if let Some(text) = std::env::args().nth(1) {
        best = parsed(&text);
    } else {
        let mut least = total(scores(&searched, best));
        print("tide", scores(&searched, best));
        for _ in 0..2 {
            for (name, values) in VALUES {
                for value in values {
                    let mut tried = best;
                    tried.set(name, value).expect("a parameter of tide");
                    if tried == best {
                        continue;
                    }
                    let score = scores(&searched, tried);
                    if total(score) < least {
                        (least, best) = (total(score), tried);
                        print(&best.to_string(), score);
                    }
                }
            }
        }
    }
    println!("on other networks:");
    print("tide", scores(&others, present));
    print(&best.to_string(), scores(&others, best));
}
