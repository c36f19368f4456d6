//! The medium that carries the packets of a run, and the counts that a mesh of radios adds to the results.

use coapace_scenario::{Mesh, Places};
use coapace_sim::mesh::{Mesh as SimMesh, MeshConfig};
use coapace_sim::{Luck, Medium, Network, Node, NodeId, Time};

use crate::measured::{FilmMoment, MeshResult, RunResult};
use crate::nodes::HostNode;

/// A medium that can add its own counts to the results of a run.
pub(super) trait CountingMedium: Medium {
    /// Adds the medium's counts up to `now` to the results.
    fn count(&self, _now: Time, _result: &mut RunResult) {}

    /// Returns whether the medium goes on having events when all hosts are idle.
    fn never_rests(&self) -> bool {
        false
    }

    /// Returns the state of each node at `now`, for a film; empty if the medium is not a mesh.
    fn moments(&self, _now: Time, _hosts: &[HostNode]) -> Vec<FilmMoment> {
        Vec::new()
    }
}

impl CountingMedium for Network {}

impl CountingMedium for SimMesh {
    fn count(&self, now: Time, result: &mut RunResult) {
        let mut sum = MeshResult::default();
        for node in (0..self.nodes() as u32).map(NodeId) {
            sum.counters += self.counters(node);
            for (sum, own) in sum.energies_mj.iter_mut().zip(self.energy_mj(node, now)) {
                *sum += own;
            }
            let times = self.radio_times(node, now);
            sum.busy_s.push((times.transmit + times.receive).as_secs_f64());
            let on = times.transmit + times.receive + times.listen;
            // Radios that never sleep are on all the time, and the share would say nothing.
            if self.sleeps() {
                sum.on_s += on.as_secs_f64();
                sum.all_s += (on + times.sleep).as_secs_f64();
            }
        }
        result.mesh = Some(sum);
    }

    fn never_rests(&self) -> bool {
        true
    }

    fn moments(&self, now: Time, hosts: &[HostNode]) -> Vec<FilmMoment> {
        let moment = |(host, node): (&HostNode, NodeId)| {
            let counters = self.counters(node);
            FilmMoment {
                position: self.position(node),
                parent: self.parent(node).map(|parent| parent.0),
                queued: self.queued(node) as u32,
                sent: counters.frames,
                collided: counters.collided,
                dropped: counters.not_acknowledged + counters.channel_busy + counters.queue_full,
                rto_s: host.rto().map(|rto| rto.as_micros() as f64 / 1e6),
                energy_mj: self.energy_mj(node, now).iter().sum(),
            }
        };
        hosts.iter().zip((0..).map(NodeId)).map(moment).collect()
    }
}

/// Makes the simulated mesh of a scenario. Movements of nodes are computed up to `end`.
pub(super) fn mesh(mesh: &Mesh, places: &Places, luck: Luck, end: Time) -> SimMesh {
    let waypoints = places.waypoints(end, luck.stream("mobility"));
    SimMesh::new(luck, &places.layout, waypoints, mesh_config(mesh))
        .expect("a scenario's layout was checked when it was read")
}

/// Returns the configuration of the simulated mesh of a scenario.
pub(crate) fn mesh_config(mesh: &Mesh) -> MeshConfig {
    MeshConfig {
        radio: mesh.radio.clone(),
        mac: mesh.mac.config,
        lowpan: mesh.lowpan.config,
        routing: mesh.routing.config(),
    }
}
