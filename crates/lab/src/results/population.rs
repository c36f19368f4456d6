//! The clients of one mechanism among others.

use serde::Serialize;

use super::RunResult;

/// What the clients of one mechanism came to in one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Population {
    /// The mechanism, as it was asked for.
    pub mechanism: String,
    /// How many clients have it.
    pub clients: u32,
    /// Exchanges that they completed.
    pub exchanges: u64,
    /// The same per second: each client's over its own time, until its last response if it has one, summed.
    pub throughput: f64,
    /// Requests that they sent, retransmissions included.
    pub requests_sent: u64,
    /// Requests that they sent again.
    pub retransmissions: u64,
    /// How long the completed exchanges took in all, from the first request to the response, in microseconds.
    pub exchange_time_us: u64,
    /// Jain's index over the rates of these clients alone.
    pub jain: Option<f64>,
}

impl Population {
    /// Nobody yet.
    pub(crate) fn new(mechanism: &str) -> Self {
        Self { mechanism: mechanism.to_owned(), ..Self::default() }
    }

    /// Takes away what was counted until an earlier moment of the same run.
    pub(super) fn leave_out(&mut self, earlier: &Self) {
        self.exchanges -= earlier.exchanges;
        self.requests_sent -= earlier.requests_sent;
        self.retransmissions -= earlier.retransmissions;
        self.exchange_time_us -= earlier.exchange_time_us;
    }
}

/// A population over all runs of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PopulationSummary {
    /// The mechanism, as it was asked for.
    pub mechanism: String,
    /// How many clients have it.
    pub clients: u32,
    /// Its share of the throughput, and so of the goodput, from 0 to 1; `None` if nothing was completed. Where all clients go
    /// on for the same time, it is the share of the completed exchanges.
    pub share: Option<f64>,
    /// That share beside the population's share of the clients: 1 is fair.
    pub relative_share: Option<f64>,
    /// Exchanges that it completed, per run.
    pub exchanges: f64,
    /// Completed exchanges per second of one of its clients.
    pub throughput_per_client: f64,
    /// Retransmissions of a client, on average.
    pub retransmissions_per_client: f64,
    /// Retransmissions among the requests sent, from 0 to 1; `None` if none was sent.
    pub retransmission_share: Option<f64>,
    /// How long a completed exchange took on average, from the first request to the response, in seconds.
    pub exchange_time_s: Option<f64>,
    /// Jain's index over the rates of these clients alone, averaged over the runs.
    pub jain: Option<f64>,
}

impl PopulationSummary {
    /// The populations of the runs of one cell, pooled.
    pub(super) fn of(runs: &[RunResult]) -> Vec<Self> {
        let first = runs.first().map_or(&[][..], |run| &run.populations);
        (0..first.len()).map(|place| Self::pooled(runs, place)).collect()
    }

    fn pooled(runs: &[RunResult], place: usize) -> Self {
        let all = || runs.iter().filter_map(|run| Some((run, run.populations.get(place)?)));
        let own = || all().map(|(_, population)| population);
        let sum = |of: fn(&Population) -> u64| own().map(of).sum::<u64>() as f64;
        let ratio = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);

        let (mechanism, clients) =
            own().next().map_or_else(Default::default, |own| (own.mechanism.clone(), own.clients));
        let exchanges = sum(|own| own.exchanges);
        let throughput: f64 = own().map(|own| own.throughput).sum();
        let share =
            ratio(throughput, runs.iter().flat_map(|run| &run.populations).map(|any| any.throughput).sum());
        let of_clients = all().next().and_then(|(run, own)| {
            ratio(f64::from(own.clients), run.exchanges.len() as f64).filter(|share| *share > 0.0)
        });
        // Clients of all runs.
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

    /// One run of three clients: two of `a` with three quarters of the exchanges, one of `b` with the rest.
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
        let empty = RunResult { populations: vec![Population::new("a")], ..RunResult::default() };
        let summaries = PopulationSummary::of(&[empty]);
        assert_eq!((summaries[0].share, summaries[0].relative_share), (None, None));
        assert_eq!(summaries[0].exchange_time_s, None);
        assert_eq!(PopulationSummary::of(&[]), []);
    }
}
