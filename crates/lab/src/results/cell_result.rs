//! All seeds of one cell.

use coapace_scenario::Hash64;

use super::{Cell, Compared, Estimate, Metric, PopulationSummary, Published, Quantiles, RunResult};

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
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// The estimate of every metric, in their order; empty without runs.
    estimates: Vec<Option<Estimate>>,
    /// Flow completion times over all clients and seeds, in seconds. A client that gave up counts as one that never
    /// finishes: to leave it out would flatter the mechanism that gives up. So a quantile may be unknown.
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
    /// Payload of completed exchanges in bits per second, averaged over the runs.
    pub goodput_bps: f64,
    /// Completed exchanges per second, averaged over the runs.
    pub throughput: f64,
    /// Jain's fairness index, averaged over the runs.
    pub jain: Option<f64>,
    /// The clients by their mechanism; empty over TCP.
    pub populations: Vec<PopulationSummary>,
    /// The flows, each by itself.
    pub flows: Vec<FlowSummary>,
    /// How many runs were pooled.
    pub runs: u64,
    /// The lowest seed.
    pub seed_first: u64,
    /// The highest seed.
    pub seed_last: u64,
    /// The hash of the runs' seeds and trace hashes, by ascending seed.
    pub trace_hash: Hash64,
}

/// One flow over all runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowSummary {
    /// Its name.
    pub name: String,
    /// Clients that take part.
    pub clients: u32,
    /// The estimate of every metric that is one of flows, in the order of all metrics.
    estimates: Vec<Option<Estimate>>,
}

impl FlowSummary {
    /// Returns a figure of the flow and its 95 % confidence interval; `None` where it is not known, or not one of flows.
    pub fn estimate(&self, metric: Metric) -> Option<Estimate> {
        self.estimates.get(metric as usize).copied().flatten()
    }

    fn of(runs: &[RunResult], place: usize) -> Self {
        let alone = |run: &RunResult| {
            let flow = run.flows.get(place)?.clone();
            Some(RunResult { duration_s: run.duration_s, flows: vec![flow], ..RunResult::default() })
        };
        let own: Vec<RunResult> = runs.iter().filter_map(alone).collect();
        let (name, clients) = own
            .first()
            .and_then(|run| run.flows.first())
            .map_or_else(Default::default, |flow| (flow.name.clone(), flow.clients));
        let estimate = |metric: Metric| metric.estimate(&own).filter(|_| metric.is_of_flows());
        Self { name, clients, estimates: Metric::ALL.into_iter().map(estimate).collect() }
    }
}

impl Summary {
    /// Pools these runs.
    pub fn of(runs: &[RunResult]) -> Self {
        let mut by_seed: Vec<_> = runs.iter().map(|run| (run.seed, run.trace_hash.0)).collect();
        by_seed.sort_unstable();
        let estimates: Vec<_> = Metric::ALL.into_iter().map(|metric| metric.estimate(runs)).collect();
        let value = |metric: Metric| estimates[metric as usize].map(|estimate: Estimate| estimate.mean);
        let number = |metric| value(metric).unwrap_or(0.0);
        #[allow(clippy::cast_sign_loss)] // counts
        let count = |metric| number(metric) as u64;
        let flows = runs.iter().map(|run| run.flows.len()).max().unwrap_or(0);
        Self {
            fct: Quantiles::of(&fct_s(runs)),
            mean_fct_s: value(Metric::MeanFct),
            clients_finished: count(Metric::ClientsFinished),
            clients_gave_up: count(Metric::ClientsGaveUp),
            retransmissions_per_client: number(Metric::Retransmissions),
            unnecessary_per_client: number(Metric::Unnecessary),
            drops: number(Metric::Drops),
            goodput_bps: number(Metric::Goodput),
            throughput: number(Metric::Throughput),
            jain: value(Metric::Jain),
            populations: PopulationSummary::of(runs),
            flows: (0..flows).map(|place| FlowSummary::of(runs, place)).collect(),
            runs: runs.len() as u64,
            seed_first: by_seed.first().map_or(0, |run| run.0),
            seed_last: by_seed.last().map_or(0, |run| run.0),
            trace_hash: Hash64::combine(by_seed.into_iter().flat_map(|(seed, hash)| [seed, hash])),
            estimates,
        }
    }

    /// Returns a figure and its 95 % confidence interval over the seeds; `None` where it is not known.
    pub fn estimate(&self, metric: Metric) -> Option<Estimate> {
        self.estimates.get(metric as usize).copied().flatten()
    }
}

impl CellResult {
    /// Flow completion times over all clients and seeds in seconds, ascending; infinite for clients that gave up.
    pub fn fct_s(&self) -> Vec<f64> {
        fct_s(&self.runs)
    }

    /// The runs, pooled.
    pub fn summary(&self) -> Summary {
        Summary::of(&self.runs)
    }

    /// Whether clients have an end to reach, and so a flow completion time or none because they gave up.
    pub fn has_fct(&self) -> bool {
        self.runs.iter().any(|run| !run.fct_s.is_empty())
    }

    /// Whether the clients have different mechanisms.
    pub fn is_mix(&self) -> bool {
        self.cell.mix.len() > 1 || self.runs.iter().any(|run| run.populations.len() > 1)
    }

    /// Every published figure beside the measured one.
    pub fn compared(&self) -> Vec<Compared> {
        compared(self.published.as_ref(), &self.summary())
    }

    /// How far the measured figure is from the published one, as a fraction of the latter; positive where it is larger.
    /// Of several figures, of the one that is met worst.
    pub fn relative_error(&self) -> Option<f64> {
        relative_error(self.published.as_ref(), &self.summary())
    }

    /// The run with the lowest seed: the one whose series are drawn.
    pub fn first_run(&self) -> Option<&RunResult> {
        self.runs.iter().min_by_key(|run| run.seed)
    }
}

fn compared(published: Option<&Published>, summary: &Summary) -> Vec<Compared> {
    let compared = |(&metric, &published)| Compared { metric, published, measured: metric.of(summary) };
    published.map_or_else(Vec::new, |published| published.figures.iter().map(compared).collect())
}

/// [`CellResult::relative_error`] of these runs.
pub(super) fn relative_error(published: Option<&Published>, summary: &Summary) -> Option<f64> {
    let errors = compared(published, summary).into_iter().map(|compared| compared.relative_error());
    let worse = |a: Option<f64>, b: Option<f64>| {
        // What is not known is worse than anything.
        a.zip(b).map(|(a, b)| if b.abs() > a.abs() { b } else { a })
    };
    errors.reduce(worse).flatten()
}

/// Flow completion times over all clients and seeds in seconds, ascending; infinite for clients that gave up.
pub(super) fn fct_s(runs: &[RunResult]) -> Vec<f64> {
    let mut times: Vec<f64> =
        runs.iter().flat_map(|run| run.fct_s.iter().map(|fct| fct.unwrap_or(f64::INFINITY))).collect();
    times.sort_by(f64::total_cmp);
    times
}

#[cfg(test)]
pub(super) mod tests {
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
                mechanism: "cocoa:preset=draft-3,weak=1/4".into(),
                knobs: [("buffer", "2500"), ("delay_ms", "200"), ("errors", "none")]
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .into(),
                ..Cell::default()
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
        assert_eq!(Metric::Exchanges.of(&summary), Some(100.0));
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
