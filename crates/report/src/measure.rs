//! The metrics that the page shows, for each kind of workload.

use super::view::{PooledCell, View};
use coapace_lab::number::{half_interval, significant};
use coapace_lab::results::Metric;
use coapace_run::measured::Estimate;

/// A metric that the page shows.
#[derive(Clone, Copy)]
pub(super) struct PageMetric {
    pub(super) metric: Metric,
    /// The beginning of the names of its charts: `fct-median`.
    pub(super) stem: &'static str,
    /// Whether it is a main metric of its workloads. The page draws its conclusions from main metrics.
    pub(super) leads: bool,
}

/// A kind of workload, which determines the metrics that the page shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WorkloadClass {
    /// Clients finish after a number of exchanges.
    Closed,
    /// Clients go on until the run ends, without flows.
    Endless,
    /// Clients have flows.
    Flows,
    /// Some or all clients transfer bodies.
    Transfers,
}

use WorkloadClass::{Closed, Endless, Flows, Transfers};

/// Every metric in the sequence of the page, with the beginning of its charts' names, whether it is a main metric, and
/// the workloads to which it applies.
const ALL: [(Metric, &str, bool, &[WorkloadClass]); 26] = [
    (Metric::TransferTime, "transfer-time", true, &[Transfers]),
    (Metric::LinkShare, "link-share", true, &[Transfers]),
    (Metric::BlocksAgain, "blocks-again", false, &[Transfers]),
    (Metric::BlocksTwice, "blocks-twice", true, &[Transfers]),
    (Metric::MedianFct, "fct-median", true, &[Closed]),
    (Metric::MeanFct, "fct-mean", false, &[Closed]),
    (Metric::FctP90, "fct-p90", false, &[Closed]),
    (Metric::FctMax, "fct-last", false, &[Closed]),
    (Metric::Throughput, "throughput", true, &[Endless, Transfers]),
    (Metric::Delay, "delay-mean", true, &[Flows]),
    (Metric::DelayP50, "delay-median", false, &[Flows]),
    (Metric::DelayP90, "delay-p90", false, &[Flows]),
    (Metric::DelayP99, "delay-p99", true, &[Flows]),
    (Metric::Pdr, "pdr", true, &[Flows]),
    (Metric::PdrSent, "pdr-sent", false, &[Flows]),
    (Metric::CarriedLoad, "carried-load", true, &[Flows]),
    (Metric::SettlingTime, "settling-time", true, &[Flows]),
    (Metric::InitialRto, "initial-rto", false, &[Flows]),
    (Metric::EnergyPerByte, "energy-per-byte", true, &[Flows]),
    (Metric::AirTime, "airtime", false, &[Closed, Endless, Flows]),
    (Metric::ExchangeTime, "exchange-time", false, &[Closed, Endless, Transfers]),
    (Metric::ExchangeTimeP90, "exchange-time-p90", false, &[Transfers]),
    (Metric::Goodput, "goodput", false, &[Closed, Endless]),
    (Metric::Retransmissions, "retransmissions", false, &[Closed, Endless, Flows]),
    (Metric::Spurious, "spurious", true, &[Closed, Endless, Flows]),
    (Metric::Jain, "jain", false, &[Closed, Endless, Flows]),
];

/// Returns the beginning of the names of a metric's charts, from the name of the metric's column; `None` for another
/// name.
pub(super) fn stem_of(column: &str) -> Option<&'static str> {
    ALL.iter().find(|(metric, ..)| metric.name() == column).map(|(_, stem, ..)| *stem)
}

/// Returns the metrics that apply to the page's workloads and for which any cell has a value.
pub(super) fn measures(view: &View) -> Vec<PageMetric> {
    let workload = |cell: &PooledCell| match cell.result.runs.first() {
        // The first run is enough: all runs of a cell have one workload.
        Some(run) if !run.flows.is_empty() => Flows,
        Some(run) if !run.transfers.is_empty() => Transfers,
        _ if cell.result.has_fct() => Closed,
        _ => Endless,
    };
    let cells: Vec<_> = view.cells().map(|(_, cell)| (workload(cell), cell)).collect();
    let is_known = |metric: Metric, workloads: &[WorkloadClass]| {
        cells
            .iter()
            .any(|(workload, cell)| workloads.contains(workload) && cell.summary.value(metric).is_some())
    };
    (ALL.into_iter())
        .filter(|(metric, _, _, workloads)| is_known(*metric, workloads))
        .map(|(metric, stem, leads, _)| PageMetric { metric, stem, leads })
        .collect()
}

impl PageMetric {
    /// Returns a text with a mean, its unit, and half of its confidence interval if there is one.
    pub(super) fn words(&self, Estimate { mean, half_width, .. }: Estimate) -> String {
        let gap = if self.metric.unit().is_empty() { "" } else { "\u{a0}" };
        let half = half_width
            .map_or_else(String::new, |half| format!("\u{a0}±\u{a0}{}", half_interval(half, mean, DIGITS)));
        format!("{}{half}{gap}{}", significant(mean, DIGITS), self.metric.unit())
    }

    /// Returns the mean and its interval; `None` if a seed has no value, because a mean over the other seeds would look too
    /// good.
    pub(super) fn estimate(&self, cell: &PooledCell) -> Option<Estimate> {
        self.metric.estimate_in_all(&cell.result.runs)
    }
}

/// The number of significant digits of a mean.
pub(super) const DIGITS: i32 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CellGroup, Report};
    use coapace_lab::results::{Cell, CellResult};
    use coapace_run::measured::{FlowResult, RunResult, TransferResult};

    fn stems(run: RunResult) -> Vec<&'static str> {
        let result = CellResult { cell: Cell { clients: 2, ..Cell::default() }, runs: vec![run] };
        let report = Report { groups: CellGroup::by_conditions(vec![result]), ..Report::default() };
        measures(&View::of(&report)).into_iter().map(|measure| measure.stem).collect()
    }

    #[test]
    fn each_kind_of_workload_has_its_own_charts() {
        let closed = stems(RunResult { fct_s: vec![Some(3.0)], exchanges: vec![1], ..RunResult::default() });
        assert!(closed.contains(&"fct-median") && !closed.contains(&"throughput"), "{closed:?}");
        let endless = stems(RunResult { exchanges: vec![5, 5], duration_s: 1.0, ..RunResult::default() });
        assert!(endless.contains(&"throughput") && !endless.contains(&"fct-median"), "{endless:?}");
        let mut flow = FlowResult { offered: 3, reached: 2, ..FlowResult::default() };
        flow.delays.add(70_000);
        let flows = stems(RunResult { flows: vec![flow], duration_s: 1.0, ..RunResult::default() });
        for stem in ["delay-mean", "delay-median", "delay-p99", "pdr", "pdr-sent", "carried-load"] {
            assert!(flows.contains(&stem), "{flows:?}");
        }
        assert!(!flows.contains(&"throughput") && !flows.contains(&"settling-time"), "{flows:?}");
        let mut own = TransferResult::default();
        own.completed_s.push((2.0, 2.0));
        (own.arrived_bytes, own.active_s, own.capacity_bps) = (1, 2.0, Some(8));
        let transfers = stems(RunResult { transfers: vec![own], ..RunResult::default() });
        for stem in ["transfer-time", "link-share", "blocks-again", "blocks-twice"] {
            assert!(transfers.contains(&stem) && !flows.contains(&stem), "{transfers:?}");
        }
        assert!(!transfers.contains(&"throughput") && !transfers.contains(&"goodput"), "{transfers:?}");
    }
}
