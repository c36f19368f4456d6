//! The series that a run records beside its totals.

use crate::mix::Mix;

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
