//! A run, and the series that it records beside its totals.

use coapace_scenario::Scenario;

use crate::contender::Contender;
use crate::mix::Mix;

/// A run: a contender in a scenario, with the random numbers of a seed, and with the series to record.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) contender: &'a Contender,
    pub(super) seed: u64,
    pub(super) observe: Observe,
}

/// The series to record beside the totals of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observe {
    /// No series.
    Totals,
    /// RTO and queue lengths over time, and films of meshes.
    Series,
}

/// The number of clients whose RTO is recorded.
const OBSERVED_CLIENTS: u32 = 3;

/// Returns the name of a client's series, if it is recorded.
pub(super) fn series(mix: &Mix, part: usize, client: u32, observe: Observe) -> Option<String> {
    (observe == Observe::Series && client <= OBSERVED_CLIENTS).then(|| match mix.parts() {
        [_] => format!("client {client}"),
        parts => format!("client {client}, {}", parts[part].label),
    })
}
