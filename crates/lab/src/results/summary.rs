//! The pooled runs of a cell: in all, by flow and by mechanism.

use coapace_scenario::Hash64;

use super::Metric;
use super::number::{count, significant_or_dash};
use coapace_run::measured::ratio;
use coapace_run::measured::{Estimate, Population, RunResult};

/// The pooled runs of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellSummary {
    /// The estimate of every metric, in the order of [`Metric::ALL`]; empty without runs.
    estimates: Vec<Option<Estimate>>,
    /// The clients by their mechanism; empty over TCP.
    pub populations: Vec<PopulationSummary>,
    /// The flows, each by itself.
    pub flows: Vec<FlowSummary>,
    /// The transfers, each by itself.
    pub transfers: Vec<FlowSummary>,
    /// The number of runs.
    pub runs: u64,
    /// The lowest seed.
    pub seed_first: u64,
    /// The highest seed.
    pub seed_last: u64,
    /// The hash of the runs' seeds and trace hashes, by ascending seed.
    pub trace_hash: Hash64,
}

/// One flow, or the transfers of one name, over all runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowSummary {
    /// The name.
    pub name: String,
    /// The number of clients that take part.
    pub clients: u32,
    /// The estimate of every metric that single flows or transfers have, in the order of all metrics.
    estimates: Vec<Option<Estimate>>,
}

impl FlowSummary {
    /// Returns the value of a metric and its 95 % confidence interval; `None` if it is not known, or if single flows or transfers do
    /// not have it.
    pub fn estimate(&self, metric: Metric) -> Option<Estimate> {
        self.estimates.get(metric as usize).copied().flatten()
    }

    /// Pools the runs of one flow or transfer. `alone` returns a run with nothing else, its name and its clients.
    fn of(
        runs: &[RunResult],
        alone: impl Fn(&RunResult) -> Option<(RunResult, String, u32)>,
        applies: impl Fn(Metric) -> bool,
    ) -> Self {
        let (mut name, mut clients) = Default::default();
        let mut own = Vec::new();
        for (run, its_name, its_clients) in runs.iter().filter_map(alone) {
            if own.is_empty() {
                (name, clients) = (its_name, its_clients);
            }
            own.push(run);
        }
        let estimate = |metric: Metric| metric.estimate(&own).filter(|_| applies(metric));
        Self { name, clients, estimates: Metric::ALL.into_iter().map(estimate).collect() }
    }

    fn of_flow(runs: &[RunResult], place: usize) -> Self {
        let alone = |run: &RunResult| {
            let flow = run.flows.get(place)?.clone();
            let (name, clients) = (flow.name.clone(), flow.clients);
            let own = RunResult { duration_s: run.duration_s, flows: vec![flow], ..RunResult::default() };
            Some((own, name, clients))
        };
        Self::of(runs, alone, Metric::is_of_flows)
    }

    fn of_transfer(runs: &[RunResult], place: usize) -> Self {
        let alone = |run: &RunResult| {
            let transfer = run.transfers.get(place)?.clone();
            let (name, clients) = (transfer.name.clone(), transfer.clients);
            let own =
                RunResult { duration_s: run.duration_s, transfers: vec![transfer], ..RunResult::default() };
            Some((own, name, clients))
        };
        Self::of(runs, alone, Metric::is_of_transfers)
    }
}

impl CellSummary {
    /// Pools runs.
    pub fn of(runs: &[RunResult]) -> Self {
        let mut by_seed: Vec<_> = runs.iter().map(|run| (run.seed, run.trace_hash.0)).collect();
        by_seed.sort_unstable();
        let flows = runs.iter().map(|run| run.flows.len()).max().unwrap_or(0);
        let transfers = runs.iter().map(|run| run.transfers.len()).max().unwrap_or(0);
        Self {
            estimates: Metric::ALL.into_iter().map(|metric| metric.estimate(runs)).collect(),
            populations: PopulationSummary::of(runs),
            flows: (0..flows).map(|place| FlowSummary::of_flow(runs, place)).collect(),
            transfers: (0..transfers).map(|place| FlowSummary::of_transfer(runs, place)).collect(),
            runs: runs.len() as u64,
            seed_first: by_seed.first().map_or(0, |run| run.0),
            seed_last: by_seed.last().map_or(0, |run| run.0),
            trace_hash: Hash64::combine(by_seed.into_iter().flat_map(|(seed, hash)| [seed, hash])),
        }
    }

    /// Returns the value of a metric; `None` if it is not known.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        Some(self.estimate(metric)?.mean)
    }

    /// Returns the value of a metric that is a count or a rate; 0 without runs.
    pub fn count(&self, metric: Metric) -> f64 {
        self.value(metric).unwrap_or(0.0)
    }

    /// Returns the value of a metric and its 95 % confidence interval over the seeds; `None` if it is not known.
    pub fn estimate(&self, metric: Metric) -> Option<Estimate> {
        self.estimates.get(metric as usize).copied().flatten()
    }
}

/// A population over all runs of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PopulationSummary {
    /// The text that named the mechanism.
    pub mechanism: String,
    /// The number of its clients.
    pub clients: u32,
    /// The share of the throughput, and so of the goodput, from 0 to 1; `None` if nothing was completed. If all clients go on
    /// for the same time, it is the share of the completed exchanges.
    pub share: Option<f64>,
    /// The share of the throughput divided by the share of the clients: 1 is fair.
    pub relative_share: Option<f64>,
    /// Completed exchanges per run.
    pub exchanges: f64,
    /// Completed exchanges per second of one client.
    pub throughput_per_client: f64,
    /// The mean number of retransmissions of a client.
    pub retransmissions_per_client: f64,
    /// Retransmissions among the requests sent, from 0 to 1; `None` if none was sent.
    pub retransmission_share: Option<f64>,
    /// The mean time of a completed exchange, from the first request to the response, in seconds.
    pub exchange_time_s: Option<f64>,
    /// Jain's fairness index over the rates of these clients alone, averaged over the runs.
    pub jain: Option<f64>,
}

impl PopulationSummary {
    /// Returns the figures that tables for people show, each with its text: the clients, the share, the share over a fair one, the
    /// retransmissions of a client, the time of an exchange in seconds, and Jain's index.
    pub fn figures(&self) -> [(Option<f64>, String); 6] {
        let dash = || "–".to_owned();
        [
            (Some(self.clients.into()), self.clients.to_string()),
            (self.share, self.share.map_or_else(dash, |share| format!("{:.1}\u{a0}%", share * 100.0))),
            (self.relative_share, self.relative_share.map_or_else(dash, |share| format!("{share:.2}"))),
            (Some(self.retransmissions_per_client), count(self.retransmissions_per_client)),
            (self.exchange_time_s, significant_or_dash(self.exchange_time_s, 3)),
            (self.jain, self.jain.map_or_else(dash, |jain| format!("{jain:.3}"))),
        ]
    }

    /// Returns the pooled populations of the runs of one cell.
    pub(crate) fn of(runs: &[RunResult]) -> Vec<Self> {
        let first = runs.first().map_or(&[][..], |run| &run.populations);
        (0..first.len()).map(|place| Self::pooled(runs, place)).collect()
    }

    fn pooled(runs: &[RunResult], place: usize) -> Self {
        let all = || runs.iter().filter_map(|run| Some((run, run.populations.get(place)?)));
        let own = || all().map(|(_, population)| population);
        let sum = |of: fn(&Population) -> u64| own().map(of).sum::<u64>() as f64;
        let (mechanism, clients) =
            own().next().map_or_else(Default::default, |own| (own.mechanism.clone(), own.clients));
        let exchanges = sum(|own| own.exchanges);
        let throughput: f64 = own().map(|own| own.throughput).sum();
        let share =
            ratio(throughput, runs.iter().flat_map(|run| &run.populations).map(|any| any.throughput).sum());
        let of_clients = all().next().and_then(|(run, own)| {
            ratio(f64::from(own.clients), run.exchanges.len() as f64).filter(|share| *share > 0.0)
        });
        // The clients of all runs are counted.
        let flows = f64::from(clients) * runs.len() as f64;
        let retransmissions = sum(|own| own.retransmissions);
        let jains: Vec<f64> = own().filter_map(|own| own.jain).collect();
        Self {
            mechanism,
            clients,
            share,
            relative_share: share.zip(of_clients).map(|(share, fair)| share / fair),
            exchanges: ratio(exchanges, runs.len() as f64).unwrap_or(0.0),
            throughput_per_client: ratio(throughput, flows).unwrap_or(0.0),
            retransmissions_per_client: ratio(retransmissions, flows).unwrap_or(0.0),
            retransmission_share: ratio(retransmissions, sum(|own| own.requests_sent)),
            exchange_time_s: ratio(sum(|own| own.exchange_time_us) / 1e6, exchanges),
            jain: ratio(jains.iter().sum(), jains.len() as f64),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Makes a run of three clients: two of `a` with three quarters of the exchanges, one of `b` with the rest.
    pub(in crate::results) fn mixed(seed: u64) -> RunResult {
        let population = |mechanism: &str, clients, exchanges, retransmissions| Population {
            mechanism: mechanism.into(),
            clients,
            exchanges,
            throughput: exchanges as f64 / 40.0,
            requests_sent: exchanges + retransmissions,
            retransmissions,
            exchange_time_us: exchanges * 500_000,
            jain: Some(1.0),
        };
        RunResult {
            seed,
            duration_s: 60.0,
            exchanges: vec![30, 30, 20],
            throughput: 2.0,
            populations: vec![population("a", 2, 60, 20), population("b", 1, 20, 0)],
            ..RunResult::default()
        }
    }

    #[test]
    fn a_share_is_of_the_throughput_and_fair_where_it_is_that_of_the_clients() {
        let summaries = PopulationSummary::of(&[mixed(1), mixed(2)]);
        let [a, b] = summaries.as_slice() else { panic!("{summaries:?}") };
        assert_eq!((a.mechanism.as_str(), a.clients), ("a", 2));
        assert_eq!((a.share, b.share), (Some(0.75), Some(0.25)));
        assert!((a.relative_share.unwrap() - 1.125).abs() < 1e-12);
        assert!((b.relative_share.unwrap() - 0.75).abs() < 1e-12);
        assert!((a.exchanges - 60.0).abs() < 1e-12);
        assert!((a.throughput_per_client - 0.75).abs() < 1e-12);
        assert!((a.retransmissions_per_client - 10.0).abs() < 1e-12);
        assert_eq!((a.retransmission_share, b.retransmission_share), (Some(0.25), Some(0.0)));
        assert_eq!((a.exchange_time_s, a.jain), (Some(0.5), Some(1.0)));
    }

    #[test]
    fn populations_of_nothing_have_no_shares() {
        let empty = RunResult {
            populations: vec![Population { mechanism: "a".into(), ..Population::default() }],
            ..RunResult::default()
        };
        let summaries = PopulationSummary::of(&[empty]);
        assert_eq!((summaries[0].share, summaries[0].relative_share), (None, None));
        assert_eq!(summaries[0].exchange_time_s, None);
        assert_eq!(PopulationSummary::of(&[]), []);
    }
}
