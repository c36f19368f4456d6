//! What the radios of a mesh did.

use coapace_sim::mesh::NodeCounters;
use serde::{Deserialize, Serialize};

/// Sums over all nodes of a mesh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeshResult {
    /// What the nodes have counted.
    #[serde(flatten, with = "counts")]
    pub counters: NodeCounters,
    /// Energy spent sending, in millijoule.
    pub transmit_mj: f64,
    /// Energy spent receiving.
    pub receive_mj: f64,
    /// Energy spent listening.
    pub listen_mj: f64,
    /// Energy spent while switched off.
    pub sleep_mj: f64,
}

impl MeshResult {
    /// Energy spent in all, in millijoule.
    pub fn energy_mj(&self) -> f64 {
        self.transmit_mj + self.receive_mj + self.listen_mj + self.sleep_mj
    }

    /// Frames and datagrams that the mesh lost for good, fragments it had no room for included.
    pub fn drops(&self) -> u64 {
        let NodeCounters {
            not_acknowledged, channel_busy, queue_full, no_route, hop_limit, reassembly, ..
        } = self.counters;
        not_acknowledged + channel_busy + queue_full + no_route + hop_limit + reassembly
    }

    /// Takes away what was counted until an earlier moment of the same run.
    pub(super) fn leave_out(&mut self, earlier: &Self) {
        self.counters -= earlier.counters;
        self.transmit_mj -= earlier.transmit_mj;
        self.receive_mj -= earlier.receive_mj;
        self.listen_mj -= earlier.listen_mj;
        self.sleep_mj -= earlier.sleep_mj;
    }
}

/// Counts in results: numbers beside the energies, each under its name.
mod counts {
    use std::collections::BTreeMap;

    use coapace_sim::mesh::NodeCounters;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    pub(super) fn serialize<S: Serializer>(counters: &NodeCounters, into: S) -> Result<S::Ok, S::Error> {
        into.collect_map(counters.named())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<NodeCounters, D::Error> {
        let read = BTreeMap::<String, u64>::deserialize(from)?;
        let mut counters = NodeCounters::default();
        for (name, count) in counters.named_mut() {
            *count = *read.get(name).ok_or_else(|| D::Error::missing_field(name))?;
        }
        Ok(counters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_before_is_left_out_of_every_sum() {
        let counters = NodeCounters { frames: 10, queue_full: 1, ..NodeCounters::default() };
        let earlier = MeshResult { counters, listen_mj: 2.0, ..MeshResult::default() };
        let counters = NodeCounters { frames: 25, queue_full: 4, no_route: 2, ..counters };
        let mut later = MeshResult { counters, listen_mj: 5.0, transmit_mj: 1.0, ..earlier };
        later.leave_out(&earlier);
        assert_eq!((later.counters.frames, later.drops()), (15, 5));
        assert!((later.energy_mj() - 4.0).abs() < 1e-12);
    }

    #[test]
    fn counts_are_written_beside_the_energies_in_their_order_and_read_again() {
        let counters = NodeCounters { frames: 10, reassembly: 1, ..NodeCounters::default() };
        let mesh = MeshResult { counters, listen_mj: 2.5, ..MeshResult::default() };
        let text = serde_json::to_string(&mesh).unwrap();
        let written = concat!(
            r#"{"frames":10,"acks":0,"control_frames":0,"received":0,"collided":0,"missed":0,"not_acknowledged":0,"#,
            r#""channel_busy":0,"queue_full":0,"no_route":0,"hop_limit":0,"reassembly":1,"#,
            r#""transmit_mj":0.0,"receive_mj":0.0,"listen_mj":2.5,"sleep_mj":0.0}"#
        );
        assert_eq!(text, written);
        assert_eq!(serde_json::from_str::<MeshResult>(&text).unwrap(), mesh);
        let lacking = text.replace(r#""acks":0,"#, "");
        let error = serde_json::from_str::<MeshResult>(&lacking).unwrap_err();
        assert!(error.to_string().contains("missing field `acks`"), "{error}");
    }
}
