//! The columns of flows and meshes.

use super::field;
use crate::results::{Estimate, FlowResult, FlowSummary, RunResult, Traffic};

/// How many columns of cells there are.
const CELL_FIELDS: usize = 26;

/// The columns of a cell from `pdr` on.
pub(super) fn cell_fields(traffic: Option<&Traffic>) -> Vec<String> {
    let Some(traffic) = traffic else { return vec![String::new(); CELL_FIELDS] };
    let mean = |estimate: Option<Estimate>| field(estimate.map(|estimate| estimate.mean));
    let interval = |estimate: Option<Estimate>| field(estimate.and_then(|estimate| estimate.half_width));
    let has_event = traffic.settling_time_s.is_some() || traffic.unsettled > 0;
    vec![
        mean(traffic.pdr),
        interval(traffic.pdr),
        mean(traffic.carried_load_bps),
        interval(traffic.carried_load_bps),
        mean(traffic.delay_s),
        interval(traffic.delay_s),
        field(traffic.delays.quantile_s(0.5)),
        field(traffic.delays.quantile_s(0.9)),
        field(traffic.delays.quantile_s(0.99)),
        mean(traffic.settling_time_s),
        interval(traffic.settling_time_s),
        if has_event { traffic.unsettled.to_string() } else { String::new() },
        mean(traffic.initial_rto_s),
        interval(traffic.initial_rto_s),
        mean(traffic.rto_mean_s),
        mean(traffic.rto_max_s),
        field(Some(traffic.offered)),
        field(Some(traffic.dropped)),
        field(Some(traffic.reached)),
        mean(traffic.frames),
        mean(traffic.mesh_drops),
        mean(traffic.energy_per_byte_uj),
        interval(traffic.energy_per_byte_uj),
        flows(&traffic.flows),
        mean(traffic.reached_share),
        interval(traffic.reached_share),
    ]
}

/// The columns of a run from `pdr` on.
pub(super) fn run_fields(run: &RunResult) -> Vec<String> {
    let traffic = Traffic::of(std::slice::from_ref(run)).unwrap_or_default();
    let mean = |estimate: Option<Estimate>| field(estimate.map(|estimate| estimate.mean));
    let sum = |of: fn(&FlowResult) -> u64| {
        let sum = run.flows.iter().map(of).sum::<u64>();
        if run.flows.is_empty() { String::new() } else { sum.to_string() }
    };
    let mesh = run.mesh.map(|mesh| {
        let energies = [
            ("transmit_mj", mesh.transmit_mj),
            ("receive_mj", mesh.receive_mj),
            ("listen_mj", mesh.listen_mj),
            ("sleep_mj", mesh.sleep_mj),
        ];
        let counts = mesh.counters.named().into_iter().map(|(name, count)| format!("{name}={count}"));
        let energies = energies.into_iter().map(|(name, energy)| format!("{name}={}", field(Some(energy))));
        counts.chain(energies).collect::<Vec<_>>().join(";")
    });
    vec![
        mean(traffic.pdr),
        mean(traffic.carried_load_bps),
        mean(traffic.delay_s),
        mean(traffic.settling_time_s),
        mean(traffic.initial_rto_s),
        mean(traffic.rto_mean_s),
        mean(traffic.rto_max_s),
        sum(|flow| flow.offered),
        sum(|flow| flow.dropped),
        sum(|flow| flow.reached),
        mean(traffic.energy_per_byte_uj),
        flows(&traffic.flows),
        mesh.unwrap_or_default(),
        mean(traffic.reached_share),
    ]
}

fn flows(flows: &[FlowSummary]) -> String {
    let mean = |estimate: Option<Estimate>| field(estimate.map(|estimate| estimate.mean));
    let one = |flow: &FlowSummary| {
        let (pdr, load, delay) = (mean(flow.pdr), mean(flow.carried_load_bps), mean(flow.delay_s));
        format!("{}:pdr={pdr},carried_load_bps={load},delay_s={delay}", flow.name)
    };
    flows.iter().map(one).collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::traffic::tests::flowing;

    #[test]
    fn rows_with_and_without_flows_have_the_same_columns() {
        let run = flowing(1, 80);
        let traffic = Traffic::of(std::slice::from_ref(&run));
        assert_eq!(cell_fields(traffic.as_ref()).len(), cell_fields(None).len());
        let (with, without) = (run_fields(&run), run_fields(&RunResult::default()));
        assert_eq!(with.len(), without.len());
        assert_eq!(with[..3], ["0.8", "1280", "0.5"].map(String::from));
        assert!(with[12].contains("queue_full=7;") && with[12].ends_with("listen_mj=20;sleep_mj=0"));
        assert!(with[11].starts_with("a:pdr=0.8,carried_load_bps=640,delay_s=0.5;b:"));
        assert!(without.iter().all(String::is_empty), "{without:?}");
    }
}
