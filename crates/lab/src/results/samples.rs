//! Sample results of runs for tests.

use coapace_run::measured::{Delays, FlowResult, MeshResult, RunResult, Settling, TransferResult};
use coapace_sim::mesh::NodeCounters;

/// Makes a run of 100 s with two flows. In each of them 120 messages are offered and 20 dropped.
pub(crate) fn flowing(seed: u64, reached: u64) -> RunResult {
    let mut delays = Delays::default();
    (0..reached).for_each(|_| delays.add(500_000));
    let flow = |name: &str| FlowResult {
        name: name.to_owned(),
        clients: 4,
        message_bytes: 100,
        payload_bytes: 50,
        offered: 120,
        dropped: 20,
        reached,
        completed: reached,
        gave_up: 3,
        delays: delays.clone(),
    };
    let counters = NodeCounters { frames: 1_000, queue_full: 7, ..NodeCounters::default() };
    RunResult {
        seed,
        duration_s: 100.0,
        exchanges: vec![10; 8],
        flows: vec![flow("a"), flow("b")],
        mesh: Some(MeshResult { counters, energies_mj: [0.0, 0.0, 20.0, 0.0], ..MeshResult::default() }),
        settling: Some(Settling { event_s: 50.0, time_s: (seed == 1).then_some(8.0), observed_s: 30.0 }),
        ..RunResult::default()
    }
}

/// Makes a transfer of two clients on a link of 8 kbit/s, of which one took 10 s.
pub(crate) fn moved(name: &str, took_s: f64) -> TransferResult {
    let mut own = TransferResult::default();
    (own.name, own.clients, own.body_bytes, own.arrived_bytes) = (name.to_owned(), 2, 5_000, 10_000);
    own.completed_s = vec![(10.0, 10.0), (took_s, took_s)];
    (own.active_s, own.capacity_bps) = (took_s, Some(8_000));
    own
}
