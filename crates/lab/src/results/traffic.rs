//! What flows came to over all runs of a cell.

use serde::{Deserialize, Serialize};

use super::{Delays, Estimate, FlowResult, RunResult};

/// The flows of a cell, pooled. Ratios and delays are of all flows together; an estimate is the mean of the runs' values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// Messages offered, per run.
    pub offered: f64,
    /// Messages that the application dropped, per run.
    pub dropped: f64,
    /// Messages that reached their sink, per run.
    pub reached: f64,
    /// The packet delivery ratio: see [`FlowResult::pdr`].
    pub pdr: Option<Estimate>,
    /// The share of offered messages that reached their sink: see [`FlowResult::reached_share`].
    pub reached_share: Option<Estimate>,
    /// Bits of CoAP messages that reached their sinks in a second.
    pub carried_load_bps: Option<Estimate>,
    /// The mean delay from the offer of a message to its first arrival, in seconds.
    pub delay_s: Option<Estimate>,
    /// How long after an event the delay was as before, in seconds, over the runs that settled.
    pub settling_time_s: Option<Estimate>,
    /// Runs that did not settle until their end.
    pub unsettled: u64,
    /// The mean timeout of first transmissions, in seconds.
    pub initial_rto_s: Option<Estimate>,
    /// The mean timeout of all transmissions, in seconds.
    pub rto_mean_s: Option<Estimate>,
    /// The longest timeout of a run, in seconds.
    pub rto_max_s: Option<Estimate>,
    /// Energy that all radios spent for each byte of payload that reached its sink, in microjoule.
    pub energy_per_byte_uj: Option<Estimate>,
    /// Frames sent, per run; nothing without radios.
    pub frames: Option<Estimate>,
    /// Frames and datagrams that the mesh dropped, per run.
    pub mesh_drops: Option<Estimate>,
    /// The delays of all runs.
    pub delays: Delays,
    /// Every flow by itself.
    pub flows: Vec<FlowSummary>,
}

/// One flow over all runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowSummary {
    /// Its name.
    pub name: String,
    /// All runs added up.
    pub sum: FlowResult,
    /// The packet delivery ratio.
    pub pdr: Option<Estimate>,
    /// Bits of CoAP messages that reached their sink in a second.
    pub carried_load_bps: Option<Estimate>,
    /// The mean delay, in seconds.
    pub delay_s: Option<Estimate>,
}

impl Traffic {
    /// Of these runs; `None` if they have no flows and no mesh.
    pub(super) fn of(runs: &[RunResult]) -> Option<Self> {
        let first = runs.iter().find(|run| !run.flows.is_empty() || run.mesh.is_some())?;
        let totals: Vec<FlowResult> = runs.iter().map(total).collect();
        let per_run = |of: fn(&FlowResult) -> u64| {
            totals.iter().map(|total| of(total) as f64).sum::<f64>() / totals.len() as f64
        };
        let mut delays = Delays::default();
        for total in &totals {
            delays.merge(&total.delays);
        }
        let of_runs = |of: &dyn Fn(&RunResult) -> Option<f64>| {
            Estimate::of(&runs.iter().filter_map(of).collect::<Vec<_>>())
        };
        let has_flows = !first.flows.is_empty();
        Some(Self {
            offered: per_run(|total| total.offered),
            dropped: per_run(|total| total.dropped),
            reached: per_run(|total| total.reached),
            pdr: Estimate::of(&totals.iter().filter_map(FlowResult::pdr).collect::<Vec<_>>()),
            reached_share: Estimate::of(
                &totals.iter().filter_map(FlowResult::reached_share).collect::<Vec<_>>(),
            ),
            carried_load_bps: of_runs(&|run| carried(&run.flows, run.duration_s)).filter(|_| has_flows),
            delay_s: Estimate::of(
                &totals.iter().filter_map(|total| total.delays.mean_s()).collect::<Vec<_>>(),
            ),
            settling_time_s: of_runs(&|run| run.settling?.time_s),
            unsettled: runs
                .iter()
                .filter(|run| run.settling.is_some_and(|settling| settling.time_s.is_none()))
                .count() as u64,
            initial_rto_s: of_runs(&|run| run.timeouts.initial_s()),
            rto_mean_s: of_runs(&|run| run.timeouts.mean_s()),
            rto_max_s: of_runs(&|run| run.timeouts.max_s()),
            energy_per_byte_uj: of_runs(&energy_per_byte_uj),
            frames: of_runs(&|run| Some(run.mesh?.counters.frames as f64)),
            mesh_drops: of_runs(&|run| Some(run.mesh?.drops() as f64)),
            delays,
            flows: (0..first.flows.len()).map(|place| FlowSummary::of(runs, place)).collect(),
        })
    }
}

impl FlowSummary {
    fn of(runs: &[RunResult], place: usize) -> Self {
        let own: Vec<_> =
            runs.iter().filter_map(|run| Some((run.flows.get(place)?, run.duration_s))).collect();
        let estimate = |of: &dyn Fn(&FlowResult, f64) -> Option<f64>| {
            let values: Vec<f64> =
                own.iter().filter_map(|(flow, duration_s)| of(flow, *duration_s)).collect();
            Estimate::of(&values)
        };
        let mut sum = own.first().map(|(flow, _)| (*flow).clone()).unwrap_or_default();
        own.iter().skip(1).for_each(|(flow, _)| sum.merge(flow));
        Self {
            name: sum.name.clone(),
            pdr: estimate(&|flow, _| flow.pdr()),
            carried_load_bps: estimate(&|flow, duration_s| carried(std::slice::from_ref(flow), duration_s)),
            delay_s: estimate(&|flow, _| flow.delays.mean_s()),
            sum,
        }
    }
}

/// All flows of a run in one.
fn total(run: &RunResult) -> FlowResult {
    let mut total = FlowResult::default();
    run.flows.iter().for_each(|flow| total.merge(flow));
    total
}

fn carried(flows: &[FlowResult], duration_s: f64) -> Option<f64> {
    (duration_s > 0.0).then(|| flows.iter().map(FlowResult::carried_bits).sum::<f64>() / duration_s)
}

fn energy_per_byte_uj(run: &RunResult) -> Option<f64> {
    let bytes: f64 = run.flows.iter().map(FlowResult::reached_bytes).sum();
    (bytes > 0.0).then_some(run.mesh?.energy_mj() * 1e3 / bytes)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::{MeshResult, Settling};
    use super::*;
    use coapace_sim::mesh::NodeCounters;

    /// A run of 100 s with two flows.
    pub(in crate::results) fn flowing(seed: u64, reached: u64) -> RunResult {
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
            mesh: Some(MeshResult { counters, listen_mj: 20.0, ..MeshResult::default() }),
            settling: Some(Settling { event_s: 50.0, time_s: (seed == 1).then_some(8.0) }),
            ..RunResult::default()
        }
    }

    #[test]
    fn the_flows_of_all_runs_are_one_and_each_by_itself() {
        let traffic = Traffic::of(&[flowing(1, 80), flowing(2, 60)]).unwrap();
        let mean = |estimate: Option<Estimate>| estimate.unwrap().mean;
        assert!((mean(traffic.pdr) - 0.7).abs() < 1e-12);
        // 2 flows · 70 messages · 800 bits / 100 s.
        assert!((mean(traffic.carried_load_bps) - 1_120.0).abs() < 1e-9);
        assert!((mean(traffic.delay_s) - 0.5).abs() < 1e-12);
        // 20 mJ over 160 · 50 and 120 · 50 bytes.
        assert!((mean(traffic.energy_per_byte_uj) - f64::midpoint(2.5, 20.0 / 6.0)).abs() < 1e-12);
        assert_eq!((traffic.settling_time_s.map(|time| time.mean), traffic.unsettled), (Some(8.0), 1));
        assert_eq!(traffic.delays.count, 280);
        let [a, _] = traffic.flows.as_slice() else { panic!("{traffic:?}") };
        assert_eq!((a.name.as_str(), a.sum.reached, a.sum.gave_up), ("a", 140, 6));
        assert!((mean(a.carried_load_bps) - 560.0).abs() < 1e-9);
    }

    #[test]
    fn runs_without_flows_have_no_traffic() {
        assert_eq!(Traffic::of(&[RunResult::default()]), None);
    }
}
