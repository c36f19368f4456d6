//! The costs of a mechanism in a scenario. Smaller is better.

use coapace_scenario::WorkloadKind;

use crate::experiment::Trial;
use coapace_run::contender::{Contender, ContenderKind};
use coapace_run::measured::{Delays, RunResult, quantile};

/// A kind of cost, with its names in texts and tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The name of the cost for people.
    pub name: &'static str,
    /// The name of the column with ratios of the cost in tables.
    pub column: &'static str,
    /// The name of the column for the cost, before it is divided by the baseline.
    pub metric: &'static str,
}

/// The costs if clients finish after a number of exchanges: the mean and the 90 % quantile of their flow completion
/// times over clients and seeds, in seconds, and the transmissions of a completed exchange. Clients that have `default`
/// beside the mechanism do not count. A client that never finished counts with the duration of its run.
pub const OF_EXCHANGES: [Cost; 3] = [
    Cost { name: "mean FCT", column: "mean_fct", metric: "mean_fct_s" },
    Cost { name: "p90 FCT", column: "p90_fct", metric: "p90_fct_s" },
    Cost { name: "transmissions", column: "transmissions", metric: "transmissions" },
];

/// The costs of flows: the duration of the run divided by the number of delivered messages, in seconds; the mean delay
/// of these messages, in seconds; and the number of transmissions for each of these messages. Ratios of the first cost
/// are ratios of delivery ratios or of carried loads.
pub const OF_MESSAGES: [Cost; 3] = [
    Cost { name: "delivery", column: "delivery", metric: "delivery_s" },
    Cost { name: "delay", column: "delay", metric: "delay_s" },
    Cost { name: "transmissions", column: "transmissions", metric: "transmissions" },
];

/// Returns the three costs of `runs` for the kind of workload of `trial`: [`OF_MESSAGES`] for flows, otherwise
/// [`OF_EXCHANGES`].
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
        // A search needs a finite cost, or all mechanisms that give up would be equally bad.
        own.map(|(fct, _)| fct.unwrap_or(run.duration_s))
    });
    let mut times: Vec<f64> = times.collect();
    times.sort_by(f64::total_cmp);
    let own = || runs.iter().filter_map(|run| run.populations.first());
    let sent: u64 = own().map(|own| own.requests_sent).sum();
    let completed: u64 = own().map(|own| own.exchanges).sum();
    [
        // Without runs the mean would divide by 0. Without a completed exchange all requests count for one.
        times.iter().sum::<f64>() / times.len().max(1) as f64,
        quantile(&times, 0.9).unwrap_or(f64::INFINITY),
        sent as f64 / completed.max(1) as f64,
    ]
}

/// Measures [`OF_MESSAGES`]. If no message was delivered, the costs are as if one message had arrived at the end of the
/// run.
fn of_messages(runs: &[RunResult]) -> [f64; 3] {
    let reached: u64 = runs.iter().flat_map(|run| &run.flows).map(|flow| flow.reached).sum();
    let sent: u64 = runs.iter().map(|run| run.requests_sent).sum();
    let duration_s: f64 = runs.iter().map(|run| run.duration_s).sum();
    // Without it a mechanism that delivers nothing would have no finite cost.
    let reached = reached.max(1) as f64;
    [duration_s / reached, Delays::of(runs).mean_s().unwrap_or(duration_s), sent as f64 / reached]
}

#[cfg(test)]
mod tests {
    use super::*;
    use coapace_run::measured::FlowResult;

    #[test]
    fn the_cost_of_a_mechanism_sums_the_messages_of_all_runs() {
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
