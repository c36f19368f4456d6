//! The goals of the bulk mechanism `tide`, on a model of one bottleneck. The bounds come from the goals, or wider where a
//! model with a few seeds varies more. The tests print nothing unless they fail.

mod link;

use coapace_control::{Mechanism, Mechanisms};
use link::{Link, Run};

/// A link, and the body that has to cross it.
struct Row {
    name: &'static str,
    link: Link,
    /// The size of the body in blocks.
    blocks: usize,
    /// The time that the link needs for the body without losses, in seconds.
    alone: f64,
    /// Shares of losses each way, each with the time in seconds if a missing block is requested again one round trip later.
    paced: [(f64, f64); 2],
}

const ROWS: [Row; 5] = [
    Row::new("NB-IoT", 30_000, 600, 1_074, 256, 78.0, [(0.1, 88.0), (0.2, 99.0)]),
    Row::new("LTE-M", 300_000, 100, 1_074, 512, 15.0, [(0.1, 17.0), (0.2, 19.0)]),
    // 2 MiB, not 10.
    Row::new("Wi-Fi", 5_000_000, 10, 1_074, 2_048, 3.6, [(0.05, 3.8), (0.1, 4.0)]),
    Row::new("GEO", 1_000_000, 600, 1_074, 1_024, 9.0, [(0.1, 12.0), (0.2, 14.0)]),
    Row::new("mesh", 20_000, 500, 124, 1_024, 51.0, [(0.1, 58.0), (0.2, 65.0)]),
];

impl Row {
    const fn new(
        name: &'static str,
        rate: u64,
        rtt_ms: u64,
        block: u64,
        blocks: usize,
        alone: f64,
        paced: [(f64, f64); 2],
    ) -> Self {
        let link = Link { rate, rtt: rtt_ms * 1_000, block, request: 60, buffer: 30, jitter: 0, loss: 0.0 };
        Self { name, link, blocks, alone, paced }
    }

    /// Returns 1,500 transmission times of a block, or 60 round-trip times if that is more.
    fn span(&self) -> u64 {
        (1_500 * self.link.block * 8_000_000 / self.link.rate).max(60 * self.link.rtt)
    }
}

fn bulk(name: &str) -> Mechanism {
    Mechanisms::BUILT_IN.parse_bulk(name).unwrap()
}

/// Returns the median.
fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns the median of the seconds that a lone flow takes.
fn seconds(link: Link, blocks: usize) -> f64 {
    let run = |seed| {
        let mut run = Run::new(link, seed);
        run.add(bulk("tide"), blocks, 0);
        run.go(u64::MAX)[0].seconds
    };
    middle((1..=5).map(run).collect())
}

#[test]
fn a_single_tide_transfer_nearly_fills_a_link_at_any_loss_rate() {
    for row in &ROWS {
        for buffer in [8, 30, 200] {
            let taken = seconds(Link { buffer, ..row.link }, row.blocks);
            // There the buffer is a ninth of the path, and slow start ends early.
            let more = if row.name == "GEO" && buffer == 8 { 1.1 } else { 1.0 };
            assert!(taken < 1.3 * more * row.alone, "{}, {buffer} blocks of buffer: {taken} s", row.name);
            // The goal of the greater loss is that no transfer fails.
            for ((loss, paced), times) in row.paced.into_iter().zip([1.5, 1.75]) {
                let taken = seconds(Link { buffer, loss, ..row.link }, row.blocks);
                let name = row.name;
                assert!(
                    taken < times * more * paced,
                    "{name}, {buffer} blocks of buffer, loss {loss}: {taken} s"
                );
            }
        }
    }
}

#[test]
fn tide_transfers_10_mib_in_40_s_over_wi_fi_with_10_percent_loss_each_way() {
    assert!(seconds(Link { loss: 0.1, ..ROWS[2].link }, 10_240) < 25.0);
}

#[test]
fn a_single_tide_transfer_keeps_the_queue_short() {
    let mut run = Run::new(Link { buffer: 200, ..ROWS[0].link }, 1);
    run.add(bulk("tide"), 1_000, 0);
    run.go(u64::MAX);
    assert!(run.mean_queue() < 1.0, "{} s", run.mean_queue());
}

#[test]
fn jitter_of_half_the_round_trip_time_hardly_slows_tide() {
    for row in &ROWS[..2] {
        let taken = seconds(Link { jitter: row.link.rtt / 4, ..row.link }, row.blocks);
        assert!(taken < 1.3 * row.alone, "{}: {taken} s", row.name);
    }
}

/// Returns how many blocks the first flow has for each of the second: the median of five seeds. The second begins late.
fn share(first: &str, second: &str, row: &Row, link: Link) -> f64 {
    let flows = [first, second].map(bulk);
    let share = |seed| Run::share(link, seed, flows, row.span() / 20, 4 * row.span());
    middle((1..=5).map(share).collect())
}

#[test]
fn two_tide_transfers_share_a_link_evenly() {
    for row in &ROWS[..4] {
        for (buffer, loss) in [(8, 0.0), (30, 0.0), (30, 0.05), (200, 0.0)] {
            let share = share("tide", "tide", row, Link { buffer, loss, jitter: 500, ..row.link });
            let name = row.name;
            assert!((0.8..1.25).contains(&share), "{name}, {buffer} blocks of buffer, loss {loss}: {share}");
        }
    }
}

#[test]
fn tide_and_newreno_both_get_a_share_of_a_link() {
    for row in &ROWS[..4] {
        // A buffer that is short against the bandwidth-delay product is another matter: see the notes of `tide`.
        let buffers: &[u64] = if row.name == "GEO" { &[30] } else { &[8, 30] };
        for &buffer in buffers {
            let link = Link { buffer, jitter: 500, ..row.link };
            let (early, late) = (share("tide", "newreno", row, link), share("newreno", "tide", row, link));
            for share in [early, 1.0 / late] {
                assert!((0.35..1.7).contains(&share), "{}, {buffer} blocks of buffer: {share}", row.name);
            }
        }
    }
}

#[test]
fn tide_sends_little_to_a_silent_peer_and_resumes_the_transfer_when_it_returns() {
    for name in ["tide", "newreno"] {
        let mut run = Run::new(ROWS[1].link, 1);
        run.add(bulk(name), 512, 0);
        run.silence = 5_000_000..65_000_000;
        let before = run.go(5_000_000)[0].sent;
        let during = run.go(65_000_000)[0].sent - before;
        let after = run.go(u64::MAX)[0];
        assert!(during < 130, "{name} sends {during}");
        assert!(after.blocks == 512 && after.seconds < 120.0, "{name}: {} s", after.seconds);
    }
}
