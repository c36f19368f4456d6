//! The costs of a mechanism on a scenario. Less is better.

use coapace_scenario::WorkloadKind;

use crate::experiment::Trial;
use coapace_run::contender::{Contender, ContenderKind};
use coapace_run::measured::{Delays, RunResult, quantile};

/// A cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The name for people.
    pub name: &'static str,
    /// The column of ratios in tables.
    pub column: &'static str,
    /// The column of the cost itself.
    pub figure: &'static str,
}

/// The costs where clients finish after a number of exchanges: the mean and the 90 % quantile of their flow completion times over
/// clients and seeds, in seconds, and the transmissions of a completed exchange. Only clients that have the mechanism of the cell
/// count. A client that never finished counts with the time of its run.
pub const OF_EXCHANGES: [Cost; 3] = [
    Cost { name: "mean FCT", column: "mean_fct", figure: "mean_fct_s" },
    Cost { name: "p90 FCT", column: "p90_fct", figure: "p90_fct_s" },
    Cost { name: "transmissions", column: "transmissions", figure: "transmissions" },
];

/// The costs of flows: the seconds of the run for each message that reached its sink, the mean delay of these messages in seconds,
/// and the transmissions for each of them. Ratios of the first cost are ratios of delivery ratios or of carried loads.
pub const OF_MESSAGES: [Cost; 3] = [
    Cost { name: "delivery", column: "delivery", figure: "delivery_s" },
    Cost { name: "delay", column: "delay", figure: "delay_s" },
    Cost { name: "transmissions", column: "transmissions", figure: "transmissions" },
];

/// Measures the costs that count for the workload of `trial`.
pub fn costs(trial: &Trial, runs: &[RunResult]) -> [f64; 3] {
    match trial.scenario.workload.kind {
        WorkloadKind::Flows => of_messages(runs),
        _ => of_exchanges(&trial.contender, runs),
    }
}

/// Measures [`OF_EXCHANGES`].
fn of_exchanges(contender: &Contender, runs: &[RunResult]) -> [f64; 3] {
    let is_own = |client: u32| match &contender.kind {
        ContenderKind::Udp(mix) => mix.part_of(client) == 0,
        ContenderKind::Tcp => true,
    };
    let times = runs.iter().flat_map(|run| {
        let own = run.fct_s.iter().zip(0..).filter(|(_, client)| is_own(*client));
        own.map(|(fct, _)| fct.unwrap_or(run.duration_s))
    });
    let mut times: Vec<f64> = times.collect();
    times.sort_by(f64::total_cmp);
    let own = || runs.iter().filter_map(|run| run.populations.first());
    let sent: u64 = own().map(|own| own.requests_sent).sum();
    let completed: u64 = own().map(|own| own.exchanges).sum();
    [
        times.iter().sum::<f64>() / times.len().max(1) as f64,
        quantile(&times, 0.9).unwrap_or(f64::INFINITY),
        sent as f64 / completed.max(1) as f64,
    ]
}

/// Measures [`OF_MESSAGES`]. If no message arrived, one counts as if it came at the end of the run.
fn of_messages(runs: &[RunResult]) -> [f64; 3] {
    let reached: u64 = runs.iter().flat_map(|run| &run.flows).map(|flow| flow.reached).sum();
    let sent: u64 = runs.iter().map(|run| run.requests_sent).sum();
    let duration_s: f64 = runs.iter().map(|run| run.duration_s).sum();
    let reached = reached.max(1) as f64;
    [duration_s / reached, Delays::of(runs).mean_s().unwrap_or(duration_s), sent as f64 / reached]
}

#[cfg(test)]
mod tests {
    use super::*;
    use coapace_run::measured::FlowResult;

    #[test]
    fn messages_of_all_runs_count_together() {
        let run = |reached, delay_us| {
            let mut delays = Delays::default();
            (0..reached).for_each(|_| delays.add(delay_us));
            let flow = FlowResult { offered: 10, reached, delays, ..FlowResult::default() };
            RunResult { duration_s: 50.0, requests_sent: 20, flows: vec![flow], ..RunResult::default() }
        };
        let costs = |runs: [RunResult; 2]| of_messages(&runs).map(|cost| (cost * 1000.0).round() as i64);
        assert_eq!(costs([run(3, 1_000_000), run(1, 5_000_000)]), [25_000, 2_000, 10_000]);
        assert_eq!(costs([run(0, 0), run(0, 0)]), [100_000, 100_000, 40_000], "nothing arrived");
    }
}
