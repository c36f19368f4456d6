//! A run, and the time series that it records in addition to its totals.

use coapace_scenario::Scenario;

use crate::contender::Contender;
use crate::mix::Mix;

/// A run: a scenario, a contender, the seed of the random numbers, and whether time series are recorded.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) contender: &'a Contender,
    pub(super) seed: u64,
    pub(super) observe: Observe,
}

/// Whether a run records time series in addition to its totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observe {
    /// No series.
    Totals,
    /// RTO and queue lengths over time, and films of meshes.
    Series,
}

/// The number of clients whose RTO over time is recorded.
const OBSERVED_CLIENTS: u32 = 3;

/// Returns the name of a client's series; `None` if it is not recorded. `part` is the index of its mechanism in `mix`.
pub(super) fn series(mix: &Mix, part: usize, client: u32, observe: Observe) -> Option<String> {
    (observe == Observe::Series && client <= OBSERVED_CLIENTS).then(|| match mix.parts() {
        [_] => format!("client {client}"),
        // In a mix, a number alone would not say whose curve it is.
        parts => format!("client {client}, {}", parts[part].label),
    })
}
