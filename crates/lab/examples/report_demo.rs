//! Writes a report about synthetic results, to look at the page without running anything:
//! `cargo run -p coapace-lab --example report_demo -- report.html [GROUPS]`. None of its numbers was measured.

use std::process::ExitCode;
use std::{env, fs, io};

use coapace_lab::report::{Group, Report};
use coapace_lab::results::{Cell, CellResult, Hash64, Metric, Published, RunResult, Series, terminal_table};

const CLIENTS: u32 = 100;
const SEEDS: u64 = 10;

/// What a mechanism is made out to do, at the small buffer and at the large one.
struct Invented {
    name: &'static str,
    fct_s: [f64; 2],
    /// Of the FCT, as a fraction of it.
    deviation: f64,
    retransmissions_per_client: [f64; 2],
    /// The share of them that is unnecessary.
    unnecessary: f64,
    rto_s: f64,
    /// How full it keeps the queue.
    queue: f64,
}

#[rustfmt::skip] // a table
const MECHANISMS: [Invented; 7] = [
    Invented { name: "default", fct_s: [101.0, 246.0], deviation: 0.16, retransmissions_per_client: [22.0, 58.0], unnecessary: 0.82, rto_s: 2.5, queue: 0.95 },
    Invented { name: "cocoa", fct_s: [104.0, 126.0], deviation: 0.09, retransmissions_per_client: [19.0, 9.0], unnecessary: 0.35, rto_s: 4.0, queue: 0.6 },
    Invented { name: "cocoa:weak=1/4,ageing=off", fct_s: [103.0, 131.0], deviation: 0.10, retransmissions_per_client: [18.0, 11.0], unnecessary: 0.38, rto_s: 4.4, queue: 0.62 },
    Invented { name: "rtt-coap", fct_s: [112.0, 128.0], deviation: 0.06, retransmissions_per_client: [15.0, 4.0], unnecessary: 0.12, rto_s: 3.4, queue: 0.4 },
    Invented { name: "fasor", fct_s: [100.5, 127.0], deviation: 0.07, retransmissions_per_client: [14.0, 6.0], unnecessary: 0.10, rto_s: 3.0, queue: 0.45 },
    Invented { name: "fasor-token", fct_s: [108.0, 127.5], deviation: 0.05, retransmissions_per_client: [13.0, 3.0], unnecessary: 0.02, rto_s: 2.8, queue: 0.35 },
    Invented { name: "tcp", fct_s: [87.0, 146.0], deviation: 0.05, retransmissions_per_client: [6.0, 8.0], unnecessary: 0.20, rto_s: 3.6, queue: 0.7 },
];

/// A small generator of uniform numbers in 0..1 (splitmix64).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Roughly normal, with mean 0 and deviation 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() - 6.0
    }
}

fn main() -> ExitCode {
    let Some(path) = env::args().nth(1) else {
        eprintln!("usage: report_demo FILE [GROUPS]");
        return ExitCode::FAILURE;
    };
    let groups = env::args().nth(2).and_then(|groups| groups.parse().ok()).unwrap_or(2);
    match write(&path, groups) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{path}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(path: &str, groups: usize) -> io::Result<()> {
    let results: Vec<_> = (0..groups)
        .flat_map(|group| (0..MECHANISMS.len()).map(move |mechanism| result(group, mechanism)))
        .collect();
    print!("{}", terminal_table(&results, None));
    let report = Report {
        title: "A bottleneck with a small and a large buffer".into(),
        subtitle: "Synthetic results that show what a report looks like. Nothing here was measured.".into(),
        command: format!("cargo run --example report_demo -- {path}"),
        commit: "none".into(),
        groups: Group::by_conditions(results),
        coexistence: None,
    };
    report.write_html(io::BufWriter::new(fs::File::create(path)?))
}

fn result(group: usize, mechanism: usize) -> CellResult {
    let Invented { name, fct_s, .. } = MECHANISMS[mechanism];
    let large = group % 2;
    let slower = 1.0 + (group / 2) as f64 * 0.35;
    let mut draws = Draws((group * 100 + mechanism) as u64);
    let cell = Cell {
        scenario: "synthetic".into(),
        scenario_hash: Hash64::combine([group as u64]),
        workload: if group < 4 { "continuous" } else { "random" }.into(),
        clients: CLIENTS + 100 * (group / 2) as u32,
        buffer_bytes: Some([2500, 1_410_000][large]),
        link_errors: "none".into(),
        mechanism: name.into(),
        ..Cell::default()
    };
    let median_fct_s = fct_s[large] * slower * (1.0 + 0.025 * draws.normal());
    let published = (name != "cocoa:weak=1/4,ageing=off" && name != "rtt-coap")
        .then(|| Published::figure(Metric::MedianFct, median_fct_s, "invented"));
    let runs = (1..=SEEDS).map(|seed| run(seed, mechanism, large, slower, &mut draws)).collect();
    CellResult { cell, runs, published }
}

fn run(seed: u64, mechanism: usize, large: usize, slower: f64, draws: &mut Draws) -> RunResult {
    let Invented { name, fct_s, deviation, retransmissions_per_client, unnecessary, .. } =
        MECHANISMS[mechanism];
    let mut typical_s = fct_s[large] * slower;
    typical_s *= 1.0 + 0.01 * draws.normal();
    let fct_s: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let skew = deviation * draws.normal();
            let gave_up = name == "default" && large == 1 && draws.next() < 0.02;
            (!gave_up).then_some(typical_s * (1.0 + skew + skew * skew))
        })
        .collect();
    let duration_s = fct_s.iter().flatten().copied().fold(0.0, f64::max);
    let sent_again = retransmissions_per_client[large] * f64::from(CLIENTS) * (1.0 + 0.05 * draws.normal());
    let retransmissions = whole(sent_again);
    let first = seed == 1;
    RunResult {
        seed,
        trace_hash: Hash64::combine([seed, mechanism as u64]),
        duration_s,
        exchanges: fct_s.iter().map(|fct| if fct.is_some() { 50 } else { 31 }).collect(),
        given_up: fct_s.iter().filter(|fct| fct.is_none()).count() as u64,
        fct_s,
        retransmissions,
        unnecessary: whole(sent_again * unnecessary),
        drops: if large == 0 { retransmissions / 2 } else { 0 },
        goodput_bps: f64::from(CLIENTS) * 50.0 * 60.0 * 8.0 / duration_s,
        requests_sent: 5000 + retransmissions,
        responses_sent: 5000 + retransmissions,
        rto: if first { vec![rto(mechanism, large, duration_s, draws)] } else { Vec::new() },
        queues: if first { vec![queue(mechanism, large, duration_s, draws)] } else { Vec::new() },
        ..RunResult::default()
    }
}

#[allow(clippy::cast_sign_loss)] // never negative here
fn whole(x: f64) -> u64 {
    x.max(0.0) as u64
}

fn rto(mechanism: usize, large: usize, duration_s: f64, draws: &mut Draws) -> Series {
    let level = MECHANISMS[mechanism].rto_s * if large == 1 { 1.9 } else { 1.0 };
    let mut series = Series::new("mean of the clients");
    let mut now_s = 0.0;
    let mut rto_s = 2.5;
    while now_s < duration_s {
        series.push(now_s, rto_s);
        now_s += duration_s / 160.0;
        rto_s += (level - rto_s) * 0.12 + if mechanism == 0 { 0.02 } else { 0.25 } * draws.normal();
        rto_s = rto_s.max(0.4);
    }
    series
}

fn queue(mechanism: usize, large: usize, duration_s: f64, draws: &mut Draws) -> Series {
    let capacity = if large == 0 { 2500.0 } else { 48_000.0 };
    let aim = MECHANISMS[mechanism].queue * capacity;
    let mut series = Series::new("down");
    let mut now_s = 0.0;
    let mut bytes = 0.0;
    while now_s < duration_s {
        series.push(now_s, bytes);
        now_s += duration_s / 500.0;
        let done = now_s > duration_s * 0.85;
        bytes += ((if done { 0.0 } else { aim }) - bytes) * 0.08 + capacity * 0.06 * draws.normal();
        bytes = bytes.clamp(0.0, capacity);
    }
    series
}
