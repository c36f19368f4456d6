//! What was run.

use std::collections::BTreeMap;

use coapace_scenario::Hash64;

/// One point of an experiment: a scenario, the values its knobs had, and one mechanism. All its seeds are pooled.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// The scenario's name.
    pub scenario: String,
    /// The hash of the scenario with every knob set.
    pub scenario_hash: Hash64,
    /// The kind of the workload, such as `continuous` or `flows`.
    pub workload: String,
    /// How many clients there are.
    pub clients: u32,
    /// The mechanism, exactly as it was asked for.
    pub mechanism: String,
    /// Every knob of the scenario with its value.
    pub knobs: BTreeMap<String, String>,
    /// The names of the flows, in the order of the scenario.
    pub flows: Vec<String>,
    /// The mechanisms of a mix; empty where all clients have one.
    pub mix: Vec<String>,
    /// Whether there are radios.
    pub is_mesh: bool,
}

impl Cell {
    /// Whether `other` differs in its mechanism at most.
    pub fn same_conditions(&self, other: &Self) -> bool {
        let Self { scenario, workload, clients, knobs, .. } = self;
        (scenario, workload, clients, knobs)
            == (&other.scenario, &other.workload, &other.clients, &other.knobs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_that_differ_in_the_mechanism_alone_share_their_conditions() {
        let one = Cell { mechanism: "default".into(), clients: 10, ..Cell::default() };
        let two = Cell { mechanism: "cocoa".into(), ..one.clone() };
        assert!(one.same_conditions(&two));
        let mut three = two.clone();
        three.knobs.insert("delay_ms".into(), "200".into());
        assert!(!two.same_conditions(&three));
    }
}
