//! All seeds of one cell.

use serde::{Deserialize, Serialize};

use super::{Cell, Compared, Hash64, PopulationSummary, Published, Quantiles, RunResult, Traffic};

/// A cell and its runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellResult {
    /// What was run.
    pub cell: Cell,
    /// Its runs, one a seed, in any order.
    pub runs: Vec<RunResult>,
    /// What it is compared with.
    pub published: Option<Published>,
}

/// The runs of a cell, pooled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Flow completion times over all clients and seeds, in seconds. A client that gave up counts as one that never
    /// finishes: to leave it out would flatter the mechanism that gives up. So a quantile may be unknown.
    #[serde(flatten)]
    pub fct: Quantiles,
    /// The mean over the clients that finished, in seconds.
    pub mean_fct_s: Option<f64>,
    /// Clients that finished, over all seeds.
    pub clients_finished: u64,
    /// Clients that gave up, over all seeds.
    pub clients_gave_up: u64,
    /// Retransmissions of a client, on average.
    pub retransmissions_per_client: f64,
    /// Unnecessary retransmissions of a client, on average.
    pub unnecessary_per_client: f64,
    /// Packets that found a queue full, per run.
    pub drops: f64,
    /// Packets that a link lost, per run.
    pub losses: f64,
    /// Payload of completed exchanges in bits per second, averaged over the runs.
    pub goodput_bps: f64,
    /// Completed exchanges per second, averaged over the runs.
    pub throughput: f64,
    /// Jain's fairness index, averaged over the runs.
    pub jain: Option<f64>,
    /// Exchanges completed, per run.
    pub exchanges: f64,
    /// Exchanges given up, per run.
    pub given_up: f64,
    /// The clients by their mechanism; empty over TCP.
    pub populations: Vec<PopulationSummary>,
    /// What the flows came to; `None` where there are none.
    #[serde(default)]
    pub traffic: Option<Traffic>,
    /// How many runs were pooled.
    pub runs: u64,
    /// The lowest seed.
    pub seed_first: u64,
    /// The highest seed.
    pub seed_last: u64,
    /// The hash of the runs' seeds and trace hashes, by ascending seed.
    pub trace_hash: Hash64,
}

impl Summary {
    /// Of these runs of so many clients.
    pub fn of(clients: u32, runs: &[RunResult]) -> Self {
        let fct_s = fct_s(runs);
        let finished = fct_s.partition_point(|fct| fct.is_finite());
        let mut by_seed: Vec<_> = runs.iter().map(|run| (run.seed, run.trace_hash.0)).collect();
        by_seed.sort_unstable();
        let per_run = |of: fn(&RunResult) -> f64| mean(runs.iter().map(of)).unwrap_or(0.0);
        let per_client = |of: fn(&RunResult) -> f64| per_run(of) / f64::from(clients.max(1));
        Self {
            fct: Quantiles::of(&fct_s),
            mean_fct_s: mean(fct_s[..finished].iter().copied()),
            clients_finished: finished as u64,
            clients_gave_up: (fct_s.len() - finished) as u64,
            retransmissions_per_client: per_client(|run| run.retransmissions as f64),
            unnecessary_per_client: per_client(|run| run.unnecessary as f64),
            drops: per_run(|run| run.drops as f64),
            losses: per_run(|run| run.losses as f64),
            goodput_bps: per_run(|run| run.goodput_bps),
            throughput: per_run(|run| run.throughput),
            jain: mean(runs.iter().filter_map(RunResult::fairness)),
            exchanges: per_run(|run| run.completed() as f64),
            given_up: per_run(|run| run.given_up as f64),
            populations: PopulationSummary::of(runs),
            traffic: Traffic::of(runs),
            runs: runs.len() as u64,
            seed_first: by_seed.first().map_or(0, |run| run.0),
            seed_last: by_seed.last().map_or(0, |run| run.0),
            trace_hash: Hash64::combine(by_seed.into_iter().flat_map(|(seed, hash)| [seed, hash])),
        }
    }

    /// How long a completed exchange took on average, from the first request to the response, in seconds; not known over
    /// TCP.
    pub fn exchange_time_s(&self) -> Option<f64> {
        let timed = self.populations.iter().filter_map(|own| Some((own.exchanges, own.exchange_time_s?)));
        let (exchanges, time_s) =
            timed.fold((0.0, 0.0), |(all, sum), (own, time_s)| (all + own, sum + own * time_s));
        (exchanges > 0.0).then(|| time_s / exchanges)
    }
}

impl CellResult {
    /// Flow completion times over all clients and seeds in seconds, ascending; infinite for clients that gave up.
    pub fn fct_s(&self) -> Vec<f64> {
        fct_s(&self.runs)
    }

    /// The runs, pooled.
    pub fn summary(&self) -> Summary {
        Summary::of(self.cell.clients, &self.runs)
    }

    /// Whether clients have an end to reach, and so a flow completion time or none because they gave up.
    pub fn has_fct(&self) -> bool {
        self.runs.iter().any(|run| !run.fct_s.is_empty())
    }

    /// Whether the clients have different mechanisms.
    pub fn is_mix(&self) -> bool {
        self.runs.iter().any(|run| run.populations.len() > 1)
    }

    /// Every published figure beside the measured one.
    pub fn compared(&self) -> Vec<Compared> {
        let Some(published) = &self.published else { return Vec::new() };
        let summary = self.summary();
        let compared = |(&metric, &published)| Compared { metric, published, measured: metric.of(&summary) };
        published.figures.iter().map(compared).collect()
    }

    /// How far the measured figure is from the published one, as a fraction of the latter; positive where it is larger.
    /// Of several figures, of the one that is met worst.
    pub fn relative_error(&self) -> Option<f64> {
        let errors = self.compared().into_iter().map(|compared| compared.relative_error());
        let worse = |a: Option<f64>, b: Option<f64>| {
            // What is not known is worse than anything.
            a.zip(b).map(|(a, b)| if b.abs() > a.abs() { b } else { a })
        };
        errors.reduce(worse).flatten()
    }

    /// The run with the lowest seed: the one whose series are drawn.
    pub fn first_run(&self) -> Option<&RunResult> {
        self.runs.iter().min_by_key(|run| run.seed)
    }
}

fn fct_s(runs: &[RunResult]) -> Vec<f64> {
    let mut times: Vec<f64> =
        runs.iter().flat_map(|run| run.fct_s.iter().map(|fct| fct.unwrap_or(f64::INFINITY))).collect();
    times.sort_by(f64::total_cmp);
    times
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0_u32, 0.0), |(count, sum), x| (count + 1, sum + x));
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::Metric;
    use super::*;

    /// Two seeds of two clients, one of which gave up once.
    pub(in crate::results) fn sample() -> CellResult {
        let run = |seed, fct_s: [Option<f64>; 2]| RunResult {
            seed,
            trace_hash: Hash64(seed + 0x1000),
            duration_s: 50.0,
            fct_s: fct_s.to_vec(),
            exchanges: vec![50, 50],
            retransmissions: 6 * seed,
            unnecessary: 2,
            drops: 3,
            losses: 1,
            goodput_bps: 960.0,
            throughput: 2.0,
            requests_sent: 110,
            responses_sent: 108,
            rto: vec![super::super::Series { name: "mean".into(), points: vec![(0.0, 2.0)], step_s: 0.0 }],
            ..RunResult::default()
        };
        CellResult {
            cell: Cell {
                scenario: "bottleneck".into(),
                scenario_hash: Hash64(0xabc),
                workload: "continuous".into(),
                clients: 2,
                buffer_bytes: Some(2500),
                link_errors: "none".into(),
                mechanism: "cocoa:preset=draft-3,weak=1/4".into(),
                knobs: [("delay_ms".to_string(), "200".to_string())].into(),
            },
            runs: vec![run(2, [Some(40.0), None]), run(1, [Some(33.0), Some(35.5)])],
            published: Some(Published::figure(Metric::MedianFct, 40.0, "Table 1")),
        }
    }

    #[test]
    fn quantiles_are_over_all_clients_and_seeds() {
        let summary = sample().summary();
        assert_eq!(summary.fct.median, Some(37.75));
        assert_eq!(summary.mean_fct_s, Some((33.0 + 35.5 + 40.0) / 3.0));
        assert_eq!((summary.clients_finished, summary.clients_gave_up), (3, 1));
    }

    #[test]
    fn a_client_that_gave_up_counts_as_never_finishing() {
        assert_eq!(sample().summary().fct.p75, None);
    }

    #[test]
    fn counts_are_per_client_and_drops_per_run() {
        let summary = sample().summary();
        assert!((summary.retransmissions_per_client - 4.5).abs() < 1e-12);
        assert!((summary.unnecessary_per_client - 1.0).abs() < 1e-12);
        assert!((summary.drops - 3.0).abs() < 1e-12);
        assert!((summary.exchanges - 100.0).abs() < 1e-12);
    }

    #[test]
    fn the_order_of_the_runs_does_not_matter() {
        let mut turned = sample();
        turned.runs.reverse();
        assert_eq!(turned.summary(), sample().summary());
        assert_eq!(turned.first_run().map(|run| run.seed), Some(1));
        turned.runs[0].trace_hash = Hash64(7);
        assert_ne!(turned.summary().trace_hash, sample().summary().trace_hash);
    }

    #[test]
    fn the_relative_error_is_a_fraction_of_what_was_published() {
        assert!((sample().relative_error().unwrap() - (37.75 / 40.0 - 1.0)).abs() < 1e-12);
    }

    #[test]
    fn of_several_figures_the_one_that_is_met_worst_is_told() {
        let mut result = sample();
        let published = result.published.as_mut().unwrap();
        published.extend(Published::figure(Metric::Throughput, 4.0, ""));
        assert_eq!(result.relative_error(), Some(-0.5), "2 exchanges a second were measured");
        assert_eq!(result.compared().len(), 2);
        let published = result.published.as_mut().unwrap();
        published.extend(Published::figure(Metric::ExchangeTime, 1.0, ""));
        assert_eq!(result.relative_error(), None, "a figure that is not known is met worst");
    }

    #[test]
    fn a_cell_without_runs_has_a_summary_of_nothing() {
        let summary = CellResult::default().summary();
        assert_eq!(summary.runs, 0);
        assert_eq!(summary.fct, Quantiles::default());
        assert_eq!(summary.jain, None);
    }
}
