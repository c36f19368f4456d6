//! Series that are recorded of a run beside its totals.

use crate::mix::Mix;

/// The record of a run beside its totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observe {
    /// Nothing.
    Totals,
    /// RTO and queue lengths over time.
    Series,
}

/// Clients whose RTO is recorded.
const OBSERVED_CLIENTS: u32 = 3;

/// Returns the name of a client's series, if it is recorded.
pub(super) fn series(mix: &Mix, part: usize, client: u32, observe: Observe) -> Option<String> {
    (observe == Observe::Series && client <= OBSERVED_CLIENTS).then(|| match mix.parts() {
        [_] => format!("client {client}"),
        parts => format!("client {client}, {}", parts[part].label),
    })
}
