//! The pooled runs of a cell: in total, by flow and by mechanism.

use coapace_scenario::Hash64;

use super::Metric;
use crate::number::{count, significant, significant_or_dash};
use coapace_run::measured::ratio;
use coapace_run::measured::{Estimate, Population, PopulationTransfers, RunResult};

/// A summary of the pooled runs of a cell: the metrics in total, and for each flow, transfer and mechanism.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellSummary {
    /// The estimate of every metric, in the sequence of [`Metric::ALL`]; empty without runs.
    estimates: Vec<Option<Estimate>>,
    /// The summary of the clients with each mechanism; empty over TCP.
    pub populations: Vec<PopulationSummary>,
    /// The summary of each flow.
    pub flows: Vec<FlowSummary>,
    /// The summary of each transfer.
    pub transfers: Vec<FlowSummary>,
    /// The number of runs.
    pub runs: u64,
    /// The lowest seed.
    pub seed_first: u64,
    /// The highest seed.
    pub seed_last: u64,
    /// The hash over the runs' seeds and trace hashes, sorted by seed.
    pub trace_hash: Hash64,
}

/// The pooled results of one flow, or of the transfers of one name, over all runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowSummary {
    /// The name.
    pub name: String,
    /// The number of clients that take part.
    pub clients: u32,
    /// The estimate of every metric that single flows or transfers have, in the sequence of all metrics.
    estimates: Vec<Option<Estimate>>,
}

impl FlowSummary {
    /// Returns the value of a metric and its 95 % confidence interval; `None` if it is unknown, or if single flows or transfers
    /// do not have it.
    pub fn estimate(&self, metric: Metric) -> Option<Estimate> {
        self.estimates.get(metric as usize).copied().flatten()
    }

    /// Pools the runs of one flow or transfer. `alone` returns a copy of a run with only this flow or transfer, its
    /// name, and its number of clients. `applies` is true for the metrics that it has.
    fn of(
        runs: &[RunResult],
        alone: impl Fn(&RunResult) -> Option<(RunResult, String, u32)>,
        applies: impl Fn(Metric) -> bool,
    ) -> Self {
        let (mut name, mut clients) = Default::default();
        let mut own = Vec::new();
        for (run, its_name, its_clients) in runs.iter().filter_map(alone) {
            // The name and the clients are equal in all runs.
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
            // A run with this flow alone, so that every metric is computed as for whole runs.
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
    /// Pools the runs of a cell.
    pub fn of(runs: &[RunResult]) -> Self {
        let mut by_seed: Vec<_> = runs.iter().map(|run| (run.seed, run.trace_hash.0)).collect();
        // Results in another order have the same hash.
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

/// A population of clients with one mechanism, over all runs of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PopulationSummary {
    /// The text that the mechanism was parsed from.
    pub mechanism: String,
    /// The number of clients in the population.
    pub clients: u32,
    /// The share of these clients in the sum of all clients' rates, from 0 to 1; `None` if nothing was completed. For
    /// exchanges it is their share of the throughput and of the goodput, and also of the completed exchanges if all
    /// clients run for the same time.
    pub share: Option<f64>,
    /// The share divided by the population's share of the clients: 1 is fair.
    pub relative_share: Option<f64>,
    /// The mean number of completed exchanges, or transfers, in a run.
    pub completed: f64,
    /// The rate of one client: completed exchanges a second, or the goodput of its transfers in bit/s.
    pub rate_per_client: f64,
    /// The mean number of retransmissions of a client, or with transfers, of blocks that it requested or sent again.
    pub again_per_client: f64,
    /// Retransmissions, or blocks requested or sent again, divided by all requests sent, from 0 to 1; `None` if no
    /// request was sent.
    pub again_share: Option<f64>,
    /// The mean time of a completed exchange, from the first request to the response, or of a completed transfer, in seconds.
    pub time_s: Option<f64>,
    /// Jain's fairness index over the rates of only these clients, averaged over the runs.
    pub jain: Option<f64>,
    /// Further results, if the population is compared by transfers.
    pub transfers: Option<TransferValues>,
}

/// Further results of a population that makes transfers: results that exchanges do not have.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TransferValues {
    /// The mean number of failed transfers in a run.
    pub failed: f64,
    /// The share of the capacity of the slowest hop that bodies used while transfers of the population were running,
    /// from 0 to 1; `None` if no hop has a rate.
    pub link_share: Option<f64>,
}

/// The counts and the rate of a population's exchanges, or of its transfers.
struct Work {
    completed: u64,
    rate: f64,
    sent: u64,
    again: u64,
    time_us: u64,
}

impl Work {
    fn of(own: &Population) -> Self {
        match own.transfers {
            None => Self {
                completed: own.exchanges,
                rate: own.throughput,
                sent: own.requests_sent,
                again: own.retransmissions,
                time_us: own.exchange_time_us,
            },
            Some(transfers) => Self {
                completed: transfers.completed,
                rate: transfers.goodput_bps,
                sent: transfers.blocks_sent,
                again: transfers.blocks_again,
                time_us: transfers.time_us,
            },
        }
    }
}

impl PopulationSummary {
    /// Returns the columns of tables for people, each as a number, if it is known, and as text: the clients, the share,
    /// the share divided by a fair one, the retransmissions of a client, the time of an exchange in seconds, and Jain's
    /// index. Transfers have blocks sent again and the time of a transfer instead, and also the goodput of a client in
    /// kbit/s, the share of the link and the failed transfers.
    pub fn values(&self) -> Vec<(Option<f64>, String)> {
        let dash = || "–".to_owned();
        let percent = |share: Option<f64>| {
            (share, share.map_or_else(dash, |share| format!("{:.1}\u{a0}%", share * 100.0)))
        };
        let mut all = vec![
            (Some(self.clients.into()), self.clients.to_string()),
            percent(self.share),
            (self.relative_share, self.relative_share.map_or_else(dash, |share| format!("{share:.2}"))),
            (Some(self.again_per_client), count(self.again_per_client)),
            (self.time_s, significant_or_dash(self.time_s, 3)),
            (self.jain, self.jain.map_or_else(dash, |jain| format!("{jain:.3}"))),
        ];
        if let Some(own) = self.transfers {
            let goodput = self.rate_per_client / 1e3;
            all.push((Some(goodput), significant(goodput, 3)));
            all.push(percent(own.link_share));
            all.push((Some(own.failed), count(own.failed)));
        }
        all
    }

    /// Returns the pooled populations of the runs of one cell.
    pub(crate) fn of(runs: &[RunResult]) -> Vec<Self> {
        // All runs of a cell have the same mechanism or mix, so the first shows its populations.
        let first = runs.first().map_or(&[][..], |run| &run.populations);
        (0..first.len()).map(|place| Self::pooled(runs, place)).collect()
    }

    fn pooled(runs: &[RunResult], place: usize) -> Self {
        let all = || runs.iter().filter_map(|run| Some((run, run.populations.get(place)?)));
        let own = || all().map(|(_, population)| population);
        let sum = |of: fn(&Work) -> u64| own().map(|own| of(&Work::of(own))).sum::<u64>() as f64;
        let (mechanism, clients) =
            own().next().map_or_else(Default::default, |own| (own.mechanism.clone(), own.clients));
        // Sums over all runs before ratios: a run with few exchanges must not weigh as much as one with many.
        let completed = sum(|own| own.completed);
        let rate: f64 = own().map(|own| Work::of(own).rate).sum();
        let everybody = || runs.iter().flat_map(|run| &run.populations);
        // Rates and not counts: populations of transfers are compared by goodput.
        let share = ratio(rate, everybody().map(|any| Work::of(any).rate).sum());
        let of_clients = all().next().and_then(|(run, own)| {
            let clients: u32 = run.populations.iter().map(|any| any.clients).sum();
            // Without clients a fair share would be 0, which nothing can be divided by.
            ratio(own.clients.into(), clients.into()).filter(|share| *share > 0.0)
        });
        // The clients of all runs are counted.
        let flows = f64::from(clients) * runs.len() as f64;
        let again = sum(|own| own.again);
        // An index of a run cannot be pooled from sums, so it is averaged.
        let jains: Vec<f64> = own().filter_map(|own| own.jain).collect();
        let transfers: Vec<PopulationTransfers> = own().filter_map(|own| own.transfers).collect();
        Self {
            mechanism,
            clients,
            share,
            relative_share: share.zip(of_clients).map(|(share, fair)| share / fair),
            completed: ratio(completed, runs.len() as f64).unwrap_or(0.0),
            rate_per_client: ratio(rate, flows).unwrap_or(0.0),
            again_per_client: ratio(again, flows).unwrap_or(0.0),
            again_share: ratio(again, sum(|own| own.sent)),
            time_s: ratio(sum(|own| own.time_us) / 1e6, completed),
            jain: ratio(jains.iter().sum(), jains.len() as f64),
            transfers: TransferValues::of(&transfers),
        }
    }
}

impl TransferValues {
    /// Pools the runs of one population; `None` without runs.
    fn of(runs: &[PopulationTransfers]) -> Option<Self> {
        let failed = ratio(runs.iter().map(|own| own.failed).sum::<u64>() as f64, runs.len() as f64)?;
        let shares: Vec<f64> = runs.iter().filter_map(|own| own.link_share).collect();
        Some(Self { failed, link_share: ratio(shares.iter().sum(), shares.len() as f64) })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Makes a run of three clients: two of `a` with three quarters of the exchanges, one of `b` with the rest.
    pub(crate) fn mixed(seed: u64) -> RunResult {
        let population = |mechanism: &str, clients, exchanges, retransmissions| Population {
            mechanism: mechanism.into(),
            clients,
            exchanges,
            throughput: exchanges as f64 / 40.0,
            requests_sent: exchanges + retransmissions,
            retransmissions,
            exchange_time_us: exchanges * 500_000,
            jain: Some(1.0),
            transfers: None,
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
    fn the_share_of_a_population_is_fair_if_it_equals_its_share_of_clients() {
        let summaries = PopulationSummary::of(&[mixed(1), mixed(2)]);
        let [a, b] = summaries.as_slice() else { panic!("{summaries:?}") };
        assert_eq!((a.mechanism.as_str(), a.clients), ("a", 2));
        assert_eq!((a.share, b.share), (Some(0.75), Some(0.25)));
        assert!((a.relative_share.unwrap() - 1.125).abs() < 1e-12);
        assert!((b.relative_share.unwrap() - 0.75).abs() < 1e-12);
        assert!((a.completed - 60.0).abs() < 1e-12);
        assert!((a.rate_per_client - 0.75).abs() < 1e-12);
        assert!((a.again_per_client - 10.0).abs() < 1e-12);
        assert_eq!((a.again_share, b.again_share), (Some(0.25), Some(0.0)));
        assert_eq!((a.time_s, a.jain), (Some(0.5), Some(1.0)));
    }

    /// Makes a run of two clients that transfer: one of `a` has two thirds of the goodput.
    pub(crate) fn moving(seed: u64) -> RunResult {
        let population = |mechanism: &str, goodput_bps, time_us| Population {
            mechanism: mechanism.into(),
            clients: 1,
            transfers: Some(PopulationTransfers {
                completed: 2,
                failed: 1,
                time_us,
                blocks_sent: 100,
                blocks_again: 10,
                goodput_bps,
                link_share: Some(goodput_bps / 300e3),
            }),
            ..Population::default()
        };
        let populations = vec![population("a", 160e3, 20_000_000), population("b", 80e3, 40_000_000)];
        RunResult { seed, duration_s: 60.0, populations, ..RunResult::default() }
    }

    #[test]
    fn runs_of_transfers_have_metrics_of_transfers_instead_of_exchanges() {
        let summaries = PopulationSummary::of(&[moving(1), moving(2)]);
        let [a, b] = summaries.as_slice() else { panic!("{summaries:?}") };
        assert_eq!((a.share, b.share), (Some(2.0 / 3.0), Some(1.0 / 3.0)));
        assert_eq!((a.relative_share, b.relative_share), (Some(4.0 / 3.0), Some(2.0 / 3.0)));
        assert_eq!((a.rate_per_client, a.completed, a.time_s), (160e3, 2.0, Some(10.0)));
        assert_eq!((a.again_per_client, a.again_share), (10.0, Some(0.1)));
        assert_eq!(a.transfers, Some(TransferValues { failed: 1.0, link_share: Some(160.0 / 300.0) }));
        let texts: Vec<String> = b.values().into_iter().map(|(_, text)| text).collect();
        let expected = ["1", "33.3\u{a0}%", "0.67", "10.0", "20.0", "–", "80.0", "26.7\u{a0}%", "1.00"];
        assert_eq!(texts, expected);
    }

    #[test]
    fn populations_without_throughput_have_no_shares() {
        let empty = RunResult {
            populations: vec![Population { mechanism: "a".into(), ..Population::default() }],
            ..RunResult::default()
        };
        let summaries = PopulationSummary::of(&[empty]);
        assert_eq!((summaries[0].share, summaries[0].relative_share), (None, None));
        assert_eq!(summaries[0].time_s, None);
        assert_eq!(PopulationSummary::of(&[]), []);
    }
}
