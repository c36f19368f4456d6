//! What an exchange costs a client with the mechanism.

use crate::contender::{Contender, ContenderKind};
use crate::results::{CellResult, quantile};

/// The three costs that a search weighs. Less is better of each.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Costs {
    /// Mean flow completion time of the clients that have the mechanism, in seconds.
    pub mean_fct_s: f64,
    /// Its 90 % quantile over clients and seeds.
    pub p90_fct_s: f64,
    /// Transmissions of a completed exchange.
    pub transmissions: f64,
}

impl Costs {
    /// The names of the costs, in the order of [`array`](Self::array).
    pub const NAMES: [&'static str; 3] = ["mean FCT", "p90 FCT", "transmissions"];

    /// Measures the clients of the first mechanism of `contender`. A client that never finished counts with the time of its run.
    pub fn of(contender: &Contender, cell: &CellResult) -> Self {
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
        Self {
            mean_fct_s: times.iter().sum::<f64>() / times.len().max(1) as f64,
            p90_fct_s: quantile(&times, 0.9).unwrap_or(f64::INFINITY),
            transmissions: sent as f64 / completed.max(1) as f64,
        }
    }

    /// Returns the costs in the order of [`NAMES`](Self::NAMES).
    pub const fn array(&self) -> [f64; 3] {
        [self.mean_fct_s, self.p90_fct_s, self.transmissions]
    }
}

/// Returns the throughput of a client with the mechanism, divided by that of any client: 1 is fair.
pub fn relative_share(cell: &CellResult) -> Option<f64> {
    let sum = |of: fn(&crate::results::Population) -> f64| {
        let mut parts = [0.0; 2];
        for run in &cell.runs {
            for (part, population) in parts.iter_mut().zip(&run.populations) {
                *part += of(population);
            }
        }
        parts
    };
    let [own, other] = sum(|population| population.throughput);
    let [clients, others] = sum(|population| f64::from(population.clients));
    (others > 0.0).then(|| own / (own + other) / (clients / (clients + others)))
}
