//! Results as CSV: one row a cell, or one row a run.

mod traffic;

use std::io;

use super::number::field;
use super::{CellResult, Metric, PopulationSummary, Published, Quantiles};

/// The columns of [`write_cells_csv`]: times in seconds, `goodput_bps` in bit/s, `throughput` in exchanges per second,
/// `relative_error` as a fraction; `exchange_time_s` is the mean over completed exchanges; `shares` is what each population
/// of a mix had of the throughput, `MECHANISM=SHARE` separated by semicolons; `published` is every published figure,
/// `COLUMN=VALUE` separated by semicolons, and `relative_error` that of the one which is met worst;
/// `drops`, `losses`, `exchanges` and `given_up` are means per run.
///
/// From `pdr` on they are of flows, and empty without: `…_ci95` is the half-width of the 95 % confidence interval of the
/// column before; `offered`, `dropped_by_application`, `reached`, `frames` and `mesh_drops` are means per run; `unsettled`
/// counts runs; `flows` has of each flow `NAME:pdr=…,carried_load_bps=…,delay_s=…`, separated by semicolons.
pub const CELL_COLUMNS: [&str; 61] = [
    "workload",
    "clients",
    "buffer_bytes",
    "link_errors",
    "mechanism",
    "median_fct_s",
    "p10",
    "p25",
    "p75",
    "p90",
    "retransmissions_per_client",
    "unnecessary_per_client",
    "drops",
    "losses",
    "mean_fct_s",
    "clients_finished",
    "clients_gave_up",
    "goodput_bps",
    "jain",
    "exchanges",
    "given_up",
    "published_median_fct_s",
    "relative_error",
    "scenario",
    "knobs",
    "runs",
    "seed_first",
    "seed_last",
    "commit",
    "scenario_hash",
    "trace_hash",
    "throughput",
    "exchange_time_s",
    "shares",
    "published",
    "pdr",
    "pdr_ci95",
    "carried_load_bps",
    "carried_load_ci95",
    "delay_s",
    "delay_ci95",
    "delay_p50_s",
    "delay_p90_s",
    "delay_p99_s",
    "settling_time_s",
    "settling_time_ci95",
    "unsettled",
    "initial_rto_s",
    "initial_rto_ci95",
    "rto_mean_s",
    "rto_max_s",
    "offered",
    "dropped_by_application",
    "reached",
    "frames",
    "mesh_drops",
    "energy_per_byte_uj",
    "energy_ci95",
    "flows",
    "reached_share",
    "reached_share_ci95",
];

/// The columns of [`write_runs_csv`]: times in seconds, `goodput_bps` in bit/s, `throughput` in exchanges per second,
/// `shares` as in [`CELL_COLUMNS`], the others counts of the whole run; `mesh` has every count of the radios and the energy
/// in mJ by state, `NAME=VALUE` separated by semicolons.
pub const RUN_COLUMNS: [&str; 42] = [
    "workload",
    "clients",
    "buffer_bytes",
    "link_errors",
    "mechanism",
    "seed",
    "median_fct_s",
    "p10",
    "p25",
    "p75",
    "p90",
    "retransmissions",
    "unnecessary",
    "drops",
    "losses",
    "exchanges",
    "given_up",
    "requests_sent",
    "responses_sent",
    "goodput_bps",
    "jain",
    "scenario",
    "knobs",
    "commit",
    "scenario_hash",
    "trace_hash",
    "throughput",
    "shares",
    "pdr",
    "carried_load_bps",
    "delay_s",
    "settling_time_s",
    "initial_rto_s",
    "rto_mean_s",
    "rto_max_s",
    "offered",
    "dropped_by_application",
    "reached",
    "energy_per_byte_uj",
    "flows",
    "mesh",
    "reached_share",
];

/// Writes one row a cell, its seeds pooled. What is not known stays empty.
///
/// # Errors
/// Those of `out`.
pub fn write_cells_csv(out: impl io::Write, commit: &str, results: &[CellResult]) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(CELL_COLUMNS)?;
    for result in results {
        let (cell, summary) = (&result.cell, result.summary());
        let row = [
            cell.workload.clone(),
            cell.clients.to_string(),
            cell.buffer_bytes.map_or_else(String::new, |bytes| bytes.to_string()),
            cell.link_errors.clone(),
            cell.mechanism.clone(),
            field(summary.fct.median),
            field(summary.fct.p10),
            field(summary.fct.p25),
            field(summary.fct.p75),
            field(summary.fct.p90),
            field(Some(summary.retransmissions_per_client)),
            field(Some(summary.unnecessary_per_client)),
            field(Some(summary.drops)),
            field(Some(summary.losses)),
            field(summary.mean_fct_s),
            summary.clients_finished.to_string(),
            summary.clients_gave_up.to_string(),
            field(Some(summary.goodput_bps)),
            field(summary.jain),
            field(Some(summary.exchanges)),
            field(Some(summary.given_up)),
            field(result.published.as_ref().and_then(|published| published.get(Metric::MedianFct))),
            field(result.relative_error()),
            cell.scenario.clone(),
            cell.knobs_field(),
            summary.runs.to_string(),
            summary.seed_first.to_string(),
            summary.seed_last.to_string(),
            commit.into(),
            cell.scenario_hash.to_string(),
            summary.trace_hash.to_string(),
            field(Some(summary.throughput)),
            field(summary.exchange_time_s()),
            shares(&summary.populations),
            result.published.as_ref().map_or_else(String::new, Published::figures_field),
        ];
        csv.write_record(row.into_iter().chain(traffic::cell_fields(summary.traffic.as_ref())))?;
    }
    csv.flush()
}

/// Writes one row a run.
///
/// # Errors
/// Those of `out`.
pub fn write_runs_csv(out: impl io::Write, commit: &str, results: &[CellResult]) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(RUN_COLUMNS)?;
    for (cell, run) in results.iter().flat_map(|result| result.runs.iter().map(|run| (&result.cell, run))) {
        let mut fct_s: Vec<f64> = run.fct_s.iter().map(|fct| fct.unwrap_or(f64::INFINITY)).collect();
        fct_s.sort_by(f64::total_cmp);
        let fct = Quantiles::of(&fct_s);
        let row = [
            cell.workload.clone(),
            cell.clients.to_string(),
            cell.buffer_bytes.map_or_else(String::new, |bytes| bytes.to_string()),
            cell.link_errors.clone(),
            cell.mechanism.clone(),
            run.seed.to_string(),
            field(fct.median),
            field(fct.p10),
            field(fct.p25),
            field(fct.p75),
            field(fct.p90),
            run.retransmissions.to_string(),
            run.unnecessary.to_string(),
            run.drops.to_string(),
            run.losses.to_string(),
            run.completed().to_string(),
            run.given_up.to_string(),
            run.requests_sent.to_string(),
            run.responses_sent.to_string(),
            field(Some(run.goodput_bps)),
            field(run.fairness()),
            cell.scenario.clone(),
            cell.knobs_field(),
            commit.into(),
            cell.scenario_hash.to_string(),
            run.trace_hash.to_string(),
            field(Some(run.throughput)),
            shares(&PopulationSummary::of(std::slice::from_ref(run))),
        ];
        csv.write_record(row.into_iter().chain(traffic::run_fields(run)))?;
    }
    csv.flush()
}

/// What each population of a mix had of the throughput; nothing where there is one.
fn shares(populations: &[PopulationSummary]) -> String {
    if populations.len() < 2 {
        return String::new();
    }
    let share = |own: &PopulationSummary| format!("{}={}", own.mechanism, field(own.share));
    populations.iter().map(share).collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    use super::super::cell_result::tests::sample;
    use super::super::population::tests::mixed;
    use super::*;

    #[test]
    fn the_columns_of_cells_are_these() {
        let mut out = Vec::new();
        write_cells_csv(&mut out, "c0ffee", &[sample()]).unwrap();
        let summary_hash = sample().summary().trace_hash;
        assert_eq!(
            String::from_utf8(out).unwrap(),
            format!(
                "workload,clients,buffer_bytes,link_errors,mechanism,median_fct_s,p10,p25,p75,p90,\
                 retransmissions_per_client,unnecessary_per_client,drops,losses,mean_fct_s,clients_finished,\
                 clients_gave_up,goodput_bps,jain,exchanges,given_up,published_median_fct_s,relative_error,scenario,\
                 knobs,runs,seed_first,seed_last,commit,scenario_hash,trace_hash,throughput,exchange_time_s,shares,\
                 published,pdr,pdr_ci95,carried_load_bps,carried_load_ci95,delay_s,delay_ci95,delay_p50_s,delay_p90_s,\
                 delay_p99_s,settling_time_s,settling_time_ci95,unsettled,initial_rto_s,initial_rto_ci95,rto_mean_s,\
                 rto_max_s,offered,dropped_by_application,reached,frames,mesh_drops,energy_per_byte_uj,energy_ci95,flows,\
                 reached_share,reached_share_ci95\n\
                 continuous,2,2500,none,\"cocoa:preset=draft-3,weak=1/4\",37.75,33.75,34.875,,,\
                 4.5,1,3,1,36.166667,3,1,960,0.993237,100,0,40,-0.05625,bottleneck,\
                 delay_ms=200,2,1,2,c0ffee,0000000000000abc,{summary_hash},2,,,median_fct_s=40{}\n",
                ",".repeat(26)
            )
        );
    }

    #[test]
    fn the_columns_of_runs_are_these() {
        let mut out = Vec::new();
        write_runs_csv(&mut out, "c0ffee", &[sample()]).unwrap();
        let text = String::from_utf8(out).unwrap();
        let mut lines = text.lines();
        assert_eq!(
            lines.next(),
            Some(
                "workload,clients,buffer_bytes,link_errors,mechanism,seed,median_fct_s,p10,p25,p75,p90,\
                 retransmissions,unnecessary,drops,losses,exchanges,given_up,requests_sent,responses_sent,goodput_bps,\
                 jain,scenario,knobs,commit,scenario_hash,trace_hash,throughput,shares,pdr,carried_load_bps,delay_s,\
                 settling_time_s,initial_rto_s,rto_mean_s,rto_max_s,offered,dropped_by_application,reached,\
                 energy_per_byte_uj,flows,mesh,reached_share"
            )
        );
        assert_eq!(lines.clone().count(), 2);
        assert!(lines.all(|line| line.contains(",c0ffee,0000000000000abc,000000000000100")));
    }

    #[test]
    fn the_shares_of_a_mix_are_one_field() {
        let result = CellResult { runs: vec![mixed(1), mixed(2)], ..CellResult::default() };
        let results = [result];
        let (mut cells, mut runs) = (Vec::new(), Vec::new());
        write_cells_csv(&mut cells, "", &results).unwrap();
        write_runs_csv(&mut runs, "", &results).unwrap();
        for out in [cells, runs] {
            let mut reader = csv::Reader::from_reader(out.as_slice());
            let shares = reader.headers().unwrap().iter().position(|column| column == "shares").unwrap();
            assert_eq!(&reader.records().next().unwrap().unwrap()[shares], "a=0.75;b=0.25");
        }
    }

    #[test]
    fn a_hostile_mechanism_name_stays_one_field() {
        let mut result = sample();
        result.cell.mechanism = "a\",\"b\n=1+1".into();
        let mut out = Vec::new();
        write_cells_csv(&mut out, "", std::slice::from_ref(&result)).unwrap();
        let mut reader = csv::Reader::from_reader(out.as_slice());
        let row = reader.records().next().unwrap().unwrap();
        assert_eq!(&row[4], result.cell.mechanism);
        assert_eq!(row.len(), CELL_COLUMNS.len());
    }
}
