//! Cells: a condition, a mechanism, and their runs.

use std::collections::BTreeMap;
use std::fmt;

use coapace_scenario::Hash64;
use serde::{Deserialize, Serialize};

use super::{CellSummary, Metric};
use coapace_run::measured::RunResult;

/// A condition and a mechanism, whose runs with all seeds are pooled. The condition is a scenario with the values of
/// its knobs. In place of the mechanism there may be a mix or TCP.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// The name of the scenario.
    pub scenario: String,
    /// The hash of the scenario, including the values of its knobs.
    pub scenario_hash: Hash64,
    /// The kind of the workload, such as `continuous` or `flows`.
    pub workload: String,
    /// The number of clients.
    pub clients: u32,
    /// The text that the mechanism was parsed from.
    pub mechanism: String,
    /// Whether the packets were simulated or real.
    pub mode: Mode,
    /// The name of the mechanism in tables and charts that also show the mode; set by [`in_mode`](Self::in_mode).
    pub label: Option<String>,
    /// The values of all knobs of the scenario.
    pub knobs: BTreeMap<String, String>,
    /// The names of the flows, in the sequence of the scenario.
    pub flows: Vec<String>,
    /// The names of the transfers, in the sequence of the scenario.
    #[serde(default)]
    pub transfers: Vec<String>,
    /// The mechanisms of a mix; empty if all clients have the same.
    pub mix: Vec<String>,
    /// Whether the network is a mesh of radios.
    pub is_mesh: bool,
}

impl Cell {
    /// Returns the name of the mechanism in tables and charts, such as `cocoa` or `cocoa live`.
    pub fn label(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.mechanism)
    }

    /// Sets how the packets of the cell were carried. Results that are not simulated also get a label with the mode.
    #[must_use]
    pub fn in_mode(self, mode: Mode) -> Self {
        let label = (mode != Mode::Simulated).then(|| format!("{} {mode}", self.mechanism));
        Self { mode, label, ..self }
    }

    /// Returns whether `other` has the same scenario, workload, clients and knobs. Its mechanism and mode may differ.
    pub fn same_conditions(&self, other: &Self) -> bool {
        let Self { scenario, workload, clients, knobs, .. } = self;
        (scenario, workload, clients, knobs)
            == (&other.scenario, &other.workload, &other.clients, &other.knobs)
    }
}

/// How the packets of a cell were carried.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Mode {
    /// By the simulator.
    #[default]
    Simulated,
    /// By real sockets and the scenario's network in real time.
    Live,
    /// By real sockets, with a server of another stack of this name.
    LiveWith(String),
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simulated => f.write_str("simulated"),
            Self::Live => f.write_str("live"),
            Self::LiveWith(peer) => write!(f, "live with {peer}"),
        }
    }
}

/// A cell and its runs. It can be serialised and sent to another process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// The scenario with its knobs, and the mechanism.
    pub cell: Cell,
    /// The runs, one for each seed, in any sequence.
    pub runs: Vec<RunResult>,
}

/// Returns the flow completion times over all clients and seeds in seconds, ascending; infinite for clients that gave up.
pub(super) fn fct_s(runs: &[RunResult]) -> Vec<f64> {
    let mut times: Vec<f64> =
        // Clients that gave up stay among the values, so that giving up makes no quantile better.
        runs.iter().flat_map(|run| run.fct_s.iter().map(|fct| fct.unwrap_or(f64::INFINITY))).collect();
    times.sort_by(f64::total_cmp);
    times
}

impl CellResult {
    /// Returns the flow completion times over all clients and seeds in seconds, ascending; infinite for clients that gave up.
    pub fn fct_s(&self) -> Vec<f64> {
        fct_s(&self.runs)
    }

    /// Returns the summary of the pooled runs.
    pub fn summary(&self) -> CellSummary {
        CellSummary::of(&self.runs)
    }

    /// Returns whether clients finish after a number of exchanges, and so have a flow completion time unless they give up.
    pub fn has_fct(&self) -> bool {
        self.runs.iter().any(|run| !run.fct_s.is_empty())
    }

    /// Returns whether any run has a completed exchange, a delivered message of a flow or a received byte of a transfer.
    pub fn has_answers(&self) -> bool {
        let reached = |run: &RunResult| run.flows.iter().any(|flow| flow.reached > 0);
        let moved = |run: &RunResult| run.transfers.iter().any(|own| own.arrived_bytes > 0);
        self.runs.iter().any(|run| run.completed() > 0 || reached(run) || moved(run))
    }

    /// Returns whether the clients have different mechanisms.
    pub fn is_mix(&self) -> bool {
        self.cell.mix.len() > 1 || self.runs.iter().any(|run| run.populations.len() > 1)
    }

    /// Returns a pair for each seed that both cells have: the value that `of` returns for the run of this cell, and the
    /// value for the run of `other`. A pair is `None` if either run has no value.
    pub(crate) fn pairs(
        &self,
        other: &Self,
        of: impl Fn(&RunResult) -> Option<f64>,
    ) -> impl Iterator<Item = Option<(f64, f64)>> {
        self.runs.iter().filter_map(move |run| {
            // By seed and not by place: runs end in any order, and some may be missing.
            let beside = other.runs.iter().find(|beside| beside.seed == run.seed)?;
            Some(of(run).zip(of(beside)))
        })
    }

    /// Returns the run with the lowest seed, whose time series are drawn.
    pub fn first_run(&self) -> Option<&RunResult> {
        self.runs.iter().min_by_key(|run| run.seed)
    }
}

/// Returns the most informative metric of speed for these cells: the transfer time if there are transfers, the median FCT if
/// clients finish, the delay if there are only flows, otherwise the throughput.
pub fn headline<'a>(cells: impl IntoIterator<Item = &'a CellResult>) -> Metric {
    let runs: Vec<&RunResult> = cells.into_iter().flat_map(|cell| &cell.runs).collect();
    // Only if all have them: a metric that some cells lack compares nothing.
    if !runs.is_empty() && runs.iter().all(|run| !run.transfers.is_empty()) {
        Metric::TransferTime
    } else if runs.iter().any(|run| !run.fct_s.is_empty()) {
        Metric::MedianFct
    } else if !runs.is_empty() && runs.iter().all(|run| !run.flows.is_empty()) {
        Metric::Delay
    } else {
        Metric::Throughput
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Makes a cell with two seeds and two clients, one of which gave up once.
    pub(crate) fn sample() -> CellResult {
        let run = |seed, fct_s: [Option<f64>; 2]| RunResult {
            seed,
            trace_hash: Hash64(seed + 0x1000),
            duration_s: 50.0,
            fct_s: fct_s.to_vec(),
            exchanges: vec![50, 50],
            // Differs between the seeds, so that a mean has an interval.
            retransmissions: 6 * seed,
            spurious: 2,
            drops: 3,
            losses: 1,
            goodput_bps: 960.0,
            throughput: 2.0,
            requests_sent: 110,
            responses_sent: 108,
            rto: vec![coapace_run::measured::Series {
                name: "mean".into(),
                points: vec![(0.0, 2.0)],
                step_s: 0.0,
            }],
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
            // The higher seed is first: nothing may depend on the order of runs.
            runs: vec![run(2, [Some(40.0), None]), run(1, [Some(33.0), Some(35.5)])],
        }
    }

    #[test]
    fn quantiles_of_a_cell_are_over_all_clients_and_seeds() {
        let summary = sample().summary();
        assert_eq!(summary.value(Metric::MedianFct), Some(37.75));
        assert_eq!(summary.value(Metric::MeanFct), Some((33.0 + 35.5 + 40.0) / 3.0));
        let clients = [Metric::ClientsFinished, Metric::ClientsGaveUp].map(|metric| summary.value(metric));
        assert_eq!(clients, [Some(3.0), Some(1.0)]);
    }

    #[test]
    fn a_client_that_gave_up_counts_as_never_finishing() {
        assert_eq!(sample().summary().value(Metric::FctP75), None);
    }

    #[test]
    fn counts_of_a_cell_are_for_each_client_and_drops_for_each_run() {
        let summary = sample().summary();
        assert!((summary.count(Metric::Retransmissions) - 4.5).abs() < 1e-12);
        assert!((summary.count(Metric::Spurious) - 1.0).abs() < 1e-12);
        assert!((summary.count(Metric::Drops) - 3.0).abs() < 1e-12);
        assert_eq!(summary.value(Metric::Exchanges), Some(100.0));
    }

    #[test]
    fn the_summary_of_a_cell_does_not_depend_on_the_sequence_of_runs() {
        let mut turned = sample();
        turned.runs.reverse();
        assert_eq!(turned.summary(), sample().summary());
        assert_eq!(turned.first_run().map(|run| run.seed), Some(1));
        turned.runs[0].trace_hash = Hash64(7);
        assert_ne!(turned.summary().trace_hash, sample().summary().trace_hash);
    }

    #[test]
    fn the_summary_of_a_cell_without_runs_is_empty() {
        let summary = CellResult::default().summary();
        assert_eq!(summary.runs, 0);
        assert_eq!(summary.value(Metric::MedianFct), None);
        assert_eq!(summary.value(Metric::Jain), None);
    }

    #[test]
    fn results_of_live_runs_are_labelled_and_keep_the_name_of_the_mechanism() {
        let cell = Cell { mechanism: "cocoa".into(), ..Cell::default() };
        let live = cell.clone().in_mode(Mode::LiveWith("libcoap".into()));
        assert_eq!((live.label(), live.mechanism.as_str()), ("cocoa live with libcoap", "cocoa"));
        assert_eq!(cell.label(), "cocoa");
        assert_eq!(live.in_mode(Mode::Simulated), cell);
    }

    #[test]
    fn cells_that_differ_only_in_the_mechanism_have_equal_conditions() {
        let one = Cell { mechanism: "default".into(), clients: 10, ..Cell::default() };
        let two = Cell { mechanism: "cocoa".into(), ..one.clone() };
        assert!(one.same_conditions(&two));
        let mut three = two.clone();
        three.knobs.insert("delay_ms".into(), "200".into());
        assert!(!two.same_conditions(&three));
    }
}
