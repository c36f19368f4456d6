//! Computations shared by several metrics.

use crate::results::cell::fct_s;
use coapace_run::measured::ratio;
use coapace_run::measured::{Delays, FlowResult, RunResult, TransferResult, quantile};

/// Returns whether a run has clients that make exchanges other than transfers.
pub(super) fn asks(run: &RunResult) -> bool {
    run.transfers.is_empty() || !run.exchanges.is_empty()
}

/// Returns the durations of the completed transfers, in seconds.
pub(super) fn transfer_times_s(runs: &[RunResult]) -> Vec<f64> {
    let transfers = runs.iter().flat_map(|run| &run.transfers);
    transfers.flat_map(|own| own.completed_s.iter().map(|(_, length)| *length)).collect()
}

/// Returns the sum of a count over all transfers of a run; `None` if the run has no transfers.
pub(super) fn of_transfers(run: &RunResult, of: fn(&TransferResult) -> u64) -> Option<f64> {
    (!run.transfers.is_empty()).then(|| run.transfers.iter().map(of).sum::<u64>() as f64)
}

/// Returns the number of clients of a run, at least 1.
pub(super) fn clients(run: &RunResult) -> f64 {
    run.exchanges.len().max(1) as f64
}

/// Returns the requests sent; `None` over TCP, where segments are retransmitted and not requests.
pub(super) fn requests_over_udp(run: &RunResult) -> Option<f64> {
    (!run.populations.is_empty()).then_some(run.requests_sent as f64)
}

/// Returns whether clients finish after a number of exchanges.
pub(super) fn known(runs: &[RunResult]) -> bool {
    runs.iter().any(|run| !run.fct_s.is_empty())
}

pub(super) fn finished_s(runs: &[RunResult]) -> impl Iterator<Item = f64> {
    runs.iter().flat_map(|run| run.fct_s.iter().copied().flatten())
}

pub(super) fn fct(runs: &[RunResult], p: f64) -> Option<f64> {
    quantile(&fct_s(runs), p)
}

/// Returns the times of the exchanges of all runs; empty if they were not recorded.
pub(super) fn exchange_times(runs: &[RunResult]) -> Delays {
    let mut all = Delays::default();
    for run in runs {
        all.merge(&run.exchange_times);
    }
    all
}

pub(super) fn exchange_time_s(runs: &[RunResult]) -> Option<f64> {
    // Sums before the ratio, so that every exchange counts once, in whichever run it was.
    let all = || runs.iter().flat_map(|run| &run.populations);
    let (exchanges, us) = (all().map(|own| own.exchanges), all().map(|own| own.exchange_time_us));
    ratio(us.sum::<u64>() as f64 / 1e6, exchanges.sum::<u64>() as f64)
}

pub(super) fn carried_load_bps(run: &RunResult) -> Option<f64> {
    let bits: f64 =
        run.flows.iter().map(|flow| flow.reached as f64 * f64::from(flow.message_bytes) * 8.0).sum();
    (!run.flows.is_empty()).then(|| ratio(bits, run.duration_s)).flatten()
}

/// Returns the sum of a count over all flows of a run; `None` if it has no flows.
pub(super) fn sum(run: &RunResult, of: fn(&FlowResult) -> u64) -> Option<f64> {
    (!run.flows.is_empty()).then(|| run.flows.iter().map(of).sum::<u64>() as f64)
}
