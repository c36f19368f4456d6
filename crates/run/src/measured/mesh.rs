//! The counts and the energy of a mesh's radios.

use coapace_sim::mesh::NodeCounters;
use serde::{Deserialize, Serialize};

/// Sums over all nodes of a mesh.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeshResult {
    /// The counters, summed over all nodes.
    #[serde(with = "counters")]
    pub counters: NodeCounters,
    /// The energy in millijoules, summed over all nodes: for sending, for receiving, for listening, and while switched off.
    pub energies_mj: [f64; 4],
    /// The time that radios were on, added up over all nodes, in seconds; 0 if radios do not sleep.
    pub on_s: f64,
    /// The time of all radios, on or off, added up over all nodes, in seconds; 0 if radios do not sleep.
    pub all_s: f64,
    /// For each node, the time in seconds that its radio sent or received frames, including frames for other nodes.
    pub busy_s: Vec<f64>,
}

/// Serialises counters with their names, because other versions may have other counters.
mod counters {
    use std::collections::BTreeMap;

    use coapace_sim::mesh::NodeCounters;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(counters: &NodeCounters, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(counters.named())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<NodeCounters, D::Error> {
        let named = BTreeMap::<String, u64>::deserialize(from)?;
        let mut counters = NodeCounters::default();
        for (name, count) in counters.named_mut() {
            // A file of another version may lack the name. The counter is 0 then.
            *count = named.get(name).copied().unwrap_or_default();
        }
        Ok(counters)
    }
}

impl MeshResult {
    /// Returns the total energy of all nodes, in millijoules.
    pub fn energy_mj(&self) -> f64 {
        self.energies_mj.iter().sum()
    }

    /// Returns the counters and the energies, each with the name that it has in rows of results.
    pub fn named(&self) -> Vec<(&'static str, f64)> {
        let counts = self.counters.named().map(|(name, count)| (name, count as f64));
        let states = ["transmit_mj", "receive_mj", "listen_mj", "sleep_mj"];
        counts.into_iter().chain(states.into_iter().zip(self.energies_mj)).collect()
    }

    /// Returns the number of frames and datagrams that the mesh lost after all retries of the link, including fragments that
    /// no buffer could take.
    pub fn drops(&self) -> u64 {
        let NodeCounters {
            not_acknowledged, channel_busy, queue_full, no_route, hop_limit, reassembly, ..
        } = self.counters;
        not_acknowledged + channel_busy + queue_full + no_route + hop_limit + reassembly
    }

    /// Returns the time that the radio of the busiest node sent or received frames, in seconds.
    pub fn busiest_s(&self) -> f64 {
        self.busy_s.iter().copied().fold(0.0, f64::max)
    }

    /// Subtracts the counts that the same run had at an earlier time, such as the end of the warm-up.
    pub(super) fn leave_out(&mut self, earlier: &Self) {
        self.counters -= earlier.counters;
        self.on_s -= earlier.on_s;
        self.all_s -= earlier.all_s;
        let own = self.energies_mj.iter_mut().chain(&mut self.busy_s);
        for (own, earlier) in own.zip(earlier.energies_mj.iter().chain(&earlier.busy_s)) {
            *own -= earlier;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_before_the_end_of_the_warm_up_are_left_out_of_every_sum() {
        let counters = NodeCounters { frames: 10, queue_full: 1, ..NodeCounters::default() };
        let earlier = MeshResult {
            counters,
            energies_mj: [0.0, 0.0, 2.0, 0.0],
            busy_s: vec![5.0, 0.5],
            ..MeshResult::default()
        };
        let counters = NodeCounters { frames: 25, queue_full: 4, no_route: 2, ..counters };
        let mut later = MeshResult {
            counters,
            energies_mj: [1.0, 0.0, 5.0, 0.0],
            busy_s: vec![6.0, 4.5],
            ..MeshResult::default()
        };
        later.leave_out(&earlier);
        assert_eq!((later.counters.frames, later.drops()), (15, 5));
        assert!((later.energy_mj() - 4.0).abs() < 1e-12);
        assert!(
            (later.busiest_s() - 4.0).abs() < 1e-12,
            "a node that was busy before is not the busiest now"
        );
    }
}
