//! The costs of an exchange to the clients that have the mechanism of a cell.

use crate::contender::{Contender, ContenderKind};
use crate::results::{CellResult, quantile};

/// The names of the costs, in their order.
pub const NAMES: [&str; 3] = ["mean FCT", "p90 FCT", "transmissions"];

/// Measures the clients of the first mechanism of `contender`. Returns the mean and the 90 % quantile of their flow completion
/// times over clients and seeds, in seconds, and the transmissions of a completed exchange. Less is better of each. A client
/// that never finished counts with the time of its run.
pub fn costs(contender: &Contender, cell: &CellResult) -> [f64; 3] {
    let is_own = |client: u32| match &contender.kind {
        ContenderKind::Udp(mix) => mix.part_of(client) == 0,
        ContenderKind::Tcp => true,
    };
    let times = cell.runs.iter().flat_map(|run| {
        let own = run.fct_s.iter().zip(0..).filter(|(_, client)| is_own(*client));
        own.map(|(fct, _)| fct.unwrap_or(run.duration_s))
    });
    let mut times: Vec<f64> = times.collect();
    times.sort_by(f64::total_cmp);
    let own = || cell.runs.iter().filter_map(|run| run.populations.first());
    let sent: u64 = own().map(|own| own.requests_sent).sum();
    let completed: u64 = own().map(|own| own.exchanges).sum();
    [
        times.iter().sum::<f64>() / times.len().max(1) as f64,
        quantile(&times, 0.9).unwrap_or(f64::INFINITY),
        sent as f64 / completed.max(1) as f64,
    ]
}
