//! What was run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Hash64;

/// One point of an experiment: a scenario, the values its knobs had, and one mechanism. All its seeds are pooled.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// The scenario's name.
    pub scenario: String,
    /// The hash of the scenario with every knob set.
    pub scenario_hash: Hash64,
    /// The traffic, such as `continuous` or `random`.
    pub workload: String,
    /// How many clients there are.
    pub clients: u32,
    /// The size of the bottleneck's queue, where it is counted in bytes.
    pub buffer_bytes: Option<u64>,
    /// The error model of the links, such as `none`, `low` or `high`.
    pub link_errors: String,
    /// The mechanism, exactly as it was asked for.
    pub mechanism: String,
    /// Further knobs by name.
    #[serde(default)]
    pub knobs: BTreeMap<String, String>,
}

impl Cell {
    /// Whether `other` differs in its mechanism at most.
    pub fn same_conditions(&self, other: &Self) -> bool {
        let Self {
            scenario,
            scenario_hash: _,
            workload,
            clients,
            buffer_bytes,
            link_errors,
            mechanism: _,
            knobs,
        } = self;
        *scenario == other.scenario
            && *workload == other.workload
            && *clients == other.clients
            && *buffer_bytes == other.buffer_bytes
            && *link_errors == other.link_errors
            && *knobs == other.knobs
    }

    /// The further knobs in one field, `name=value` separated by semicolons.
    pub fn knobs_field(&self) -> String {
        let pairs: Vec<_> = self.knobs.iter().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join(";")
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
        assert_eq!(three.knobs_field(), "delay_ms=200");
    }
}
