//! Rows of results as CSV or JSON lines: one for each cell, or one for each run.

pub(super) mod columns;
pub(super) mod orders;
pub(super) mod sensitivity;

use std::collections::BTreeSet;
use std::io;

use super::{RowFormat, Sheet, SheetValue};
use crate::lists::distinct;
use crate::papers::References;
use crate::results::{CellResult, CellSummary, FlowSummary, Metric, PairedRatio, headline};
use coapace_run::measured::{Estimate, MeshResult, RunResult};
use columns::{CONDITIONS, NESTED, ORIGIN, POOLED, ResultRow, RowColumn, SEED};

/// A function that returns the value of a column for a row.
type Of = Box<dyn Fn(&ResultRow<'_>) -> SheetValue + Send + Sync>;

/// The columns of a table with a row for each of some cells, or for each of their runs. The columns are chosen before
/// any run.
pub struct Rows<'a> {
    references: &'a References,
    columns: Vec<(String, Of)>,
    lines: RowFormat,
    each: bool,
    commit: String,
}

impl<'a> Rows<'a> {
    /// Chooses the columns for these cells, which need no runs yet. There is a row for each cell, or for each run if
    /// `each` is true.
    pub fn new(
        cells: &[CellResult],
        references: &'a References,
        lines: RowFormat,
        each: bool,
        commit: &str,
    ) -> Self {
        let mut rows = Self { references, columns: Vec::new(), lines, each, commit: commit.to_owned() };
        rows.add_all(CONDITIONS);
        for metric in Metric::ALL {
            rows.add(metric.name(), move |row| mean(row.summary.estimate(metric)));
        }
        // A single run has no interval over seeds.
        if each {
            rows.add_all(SEED);
        } else {
            for metric in Metric::ALL {
                rows.add_interval("", metric, move |row| row.summary.estimate(metric));
            }
            rows.add_all(POOLED);
        }
        rows.add_all(ORIGIN);
        // Behind the columns that all rows have, so that these keep their places.
        rows.add_own(cells);
        // CSV has no nested values.
        if each && lines == RowFormat::Json {
            rows.add_all(NESTED);
        }
        rows
    }

    fn add(
        &mut self,
        name: impl Into<String>,
        of: impl Fn(&ResultRow<'_>) -> SheetValue + Send + Sync + 'static,
    ) {
        self.columns.push((name.into(), Box::new(of)));
    }

    fn add_all(&mut self, columns: &[RowColumn]) {
        for &(name, _, of) in columns {
            self.add(name, of);
        }
    }

    /// Adds a column with the half-width of the confidence interval of a metric, if it has one.
    fn add_interval(
        &mut self,
        prefix: &str,
        metric: Metric,
        of: impl Fn(&ResultRow<'_>) -> Option<Estimate> + Send + Sync + 'static,
    ) {
        if let Some(name) = metric.interval_name() {
            self.add(format!("{prefix}{name}"), move |row| of(row).and_then(|it| it.half_width).into());
        }
    }

    /// Adds the columns that depend on the cells, such as columns for their knobs, flows, transfers and published
    /// values.
    fn add_own(&mut self, cells: &[CellResult]) {
        let all = |of: fn(&CellResult) -> Vec<String>| distinct(cells.iter().flat_map(of));
        // All cells together decide the columns, because every row must have the same.
        for knob in all(|result| result.cell.knobs.keys().cloned().collect()) {
            self.add(format!("knob.{knob}"), move |row| SheetValue::knob(&row.result.cell, &knob));
        }
        for flow in all(|result| result.cell.flows.clone()) {
            self.add_parts("flow", &flow, Metric::is_of_flows, |summary| &summary.flows);
        }
        for transfer in all(|result| result.cell.transfers.clone()) {
            self.add_parts("transfer", &transfer, Metric::is_of_transfers, |summary| &summary.transfers);
        }
        for mechanism in all(|result| result.cell.mix.clone()) {
            // A mechanism alone has everything, which is not a share.
            self.add(format!("share.{mechanism}"), move |row| {
                let all = row.summary.populations.iter();
                let own = all.clone().find(|own| own.mechanism == mechanism).filter(|_| all.len() > 1);
                own.and_then(|own| own.share).into()
            });
        }
        let references = self.references;
        // A column only for published metrics: most runs have no paper.
        let published = cells.iter().filter_map(|result| references.published(&result.cell));
        for &metric in published.flat_map(|published| published.values.keys()).collect::<BTreeSet<_>>() {
            self.add(format!("published_{metric}"), move |row| {
                row.published.and_then(|it| it.get(metric)).into()
            });
        }
        let published = cells.iter().filter_map(|result| references.published(&result.cell));
        for &metric in published.flat_map(|published| published.witnesses.keys()).collect::<BTreeSet<_>>() {
            let witness = move |row: &ResultRow| row.published?.witnesses.get(&metric).copied();
            self.add(format!("witness_low_{metric}"), move |row| witness(row).map(|it| it.low).into());
            self.add(format!("witness_high_{metric}"), move |row| witness(row).map(|it| it.high).into());
        }
        if cells.iter().any(|result| result.cell.is_mesh) {
            for (place, (name, _)) in MeshResult::default().named().into_iter().enumerate() {
                self.add(format!("mesh_{name}"), move |row| {
                    // `named` has the same names in the same sequence for every mesh.
                    let meshes = row.runs.iter().filter_map(|run| run.mesh.as_ref());
                    mean(Estimate::of(&meshes.map(|mesh| mesh.named()[place].1).collect::<Vec<_>>()))
                });
            }
        }
    }

    /// Adds the columns of the flow or transfer `name`: one for each metric that it has, and in rows of cells one for
    /// the confidence interval.
    fn add_parts(
        &mut self,
        kind: &str,
        name: &str,
        has: fn(Metric) -> bool,
        of: fn(&CellSummary) -> &[FlowSummary],
    ) {
        for metric in Metric::ALL.into_iter().filter(|metric| has(*metric)) {
            let own = name.to_owned();
            let estimate = move |row: &ResultRow<'_>| {
                of(&row.summary).iter().find(|part| part.name == own)?.estimate(metric)
            };
            self.add(format!("{kind}.{name}.{metric}"), {
                let estimate = estimate.clone();
                move |row| mean(estimate(row))
            });
            if !self.each {
                self.add_interval(&format!("{kind}.{name}."), metric, estimate);
            }
        }
    }

    /// Returns the header of CSV; empty for JSON.
    pub fn header(&self) -> String {
        self.sheet_of(&[]).header(self.lines)
    }

    /// Returns the row of cell number `place` as text, or the rows of its runs if each run has a row.
    pub fn of(&self, results: &[CellResult], place: usize) -> String {
        self.sheet_of(&self.rows(results, place)).rows(self.lines)
    }

    /// Returns the rows of all `results`.
    pub fn sheet(&self, results: &[CellResult]) -> Sheet {
        self.sheet_of(&(0..results.len()).flat_map(|place| self.rows(results, place)).collect::<Vec<_>>())
    }

    fn sheet_of(&self, rows: &[ResultRow<'_>]) -> Sheet {
        Sheet(self.columns.iter().map(|(name, of)| (name.clone(), rows.iter().map(of).collect())).collect())
    }

    /// Returns the row of cell number `place`, or the rows of its runs if each run has a row.
    fn rows<'b>(&'b self, results: &'b [CellResult], place: usize) -> Vec<ResultRow<'b>> {
        let Some(result) = results.get(place) else { return Vec::new() };
        let published = self.references.published(&result.cell);
        let row = |runs: &'b [RunResult], compared| {
            let summary = CellSummary::of(runs);
            ResultRow { result, published, runs, summary, compared, commit: &self.commit, is_run: self.each }
        };
        if self.each {
            return result.runs.iter().map(|run| row(std::slice::from_ref(run), None)).collect();
        }
        // The mechanism that the user named first is the first one under the same conditions.
        let first = results.iter().find(|other| other.cell.same_conditions(&result.cell));
        let compared = first.filter(|first| !std::ptr::eq(*first, result)).map(|first| {
            let metric = headline([first, result]);
            (metric, first, PairedRatio::by_seed(metric, result, first))
        });
        vec![row(&result.runs, compared)]
    }
}

fn mean(estimate: Option<Estimate>) -> SheetValue {
    estimate.map(|estimate| estimate.mean).into()
}

/// Writes the rows of all `results`.
///
/// # Errors
/// Errors of `out`.
pub fn write_rows(
    out: impl io::Write,
    lines: RowFormat,
    each: bool,
    commit: &str,
    results: &[CellResult],
    references: &References,
) -> io::Result<()> {
    Rows::new(results, references, lines, each, commit).sheet(results).write(out, lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number;
    use crate::papers::references::tests::sample_references;
    use crate::results::cell::tests::sample;
    use crate::results::samples::flowing;
    use crate::results::samples::moved;
    use crate::results::summary::tests::mixed;

    /// Returns the fields of each row with the names of their columns.
    fn csv(each: bool, results: &[CellResult]) -> Vec<Vec<(String, String)>> {
        let mut out = Vec::new();
        write_rows(&mut out, RowFormat::Csv, each, "c0ffee", results, &sample_references()).unwrap();
        let mut reader = csv::Reader::from_reader(out.as_slice());
        let header: Vec<_> = reader.headers().unwrap().iter().map(str::to_owned).collect();
        let row = |record: csv::StringRecord| {
            header.iter().cloned().zip(record.iter().map(str::to_owned)).collect::<Vec<_>>()
        };
        reader.records().map(|record| row(record.unwrap())).collect()
    }

    fn json(each: bool, results: &[CellResult]) -> Vec<serde_json::Value> {
        let mut out = Vec::new();
        write_rows(&mut out, RowFormat::Json, each, "c0ffee", results, &sample_references()).unwrap();
        str::from_utf8(&out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn field<'a>(row: &'a [(String, String)], name: &str) -> &'a str {
        &row.iter().find(|(column, _)| column == name).unwrap_or_else(|| panic!("{name}: {row:?}")).1
    }

    #[test]
    fn the_first_columns_of_rows_are_those_of_published_tables() {
        let names: Vec<_> = csv(false, &[sample()])[0].iter().map(|(name, _)| name.clone()).collect();
        let first = "workload,clients,buffer_bytes,link_errors,mechanism,median_fct_s,p10,p25,p75,p90,\
                     retransmissions_per_client,spurious_per_client,drops,losses";
        assert!(names.join(",").starts_with(first), "{names:?}");
    }

    #[test]
    fn a_row_of_a_cell_has_every_metric_with_its_interval_and_the_settings_that_reproduce_it() {
        let row = &csv(false, &[sample()])[0];
        let summary = sample().summary();
        for metric in Metric::ALL {
            let estimate = summary.estimate(metric);
            assert_eq!(field(row, metric.name()), number::field(estimate.map(|it| it.mean)));
            if let Some(interval) = metric.interval_name() {
                let half_width = estimate.and_then(|it| it.half_width);
                assert_eq!(field(row, interval), number::field(half_width), "{interval}");
            }
        }
        for (name, value) in [
            ("median_fct_s", "37.75"),
            ("p75", ""),
            ("mean_fct_ci95", "36.52"),
            ("retransmissions_per_client", "4.5"),
            ("buffer_bytes", "2500"),
            ("link_errors", "none"),
            ("knob.delay_ms", "200"),
            ("published_median_fct_s", "40"),
            ("relative_error", "-0.05625"),
            ("runs", "2"),
            ("seed_last", "2"),
            ("commit", "c0ffee"),
            ("scenario_hash", "0000000000000abc"),
            ("mechanism", "cocoa:preset=draft-3,weak=1/4"),
        ] {
            assert!(field(row, name).starts_with(value), "{name}: {}", field(row, name));
        }
        assert_eq!(field(row, "trace_hash"), summary.trace_hash.to_string());
    }

    #[test]
    fn a_row_of_a_single_run_has_every_metric_of_a_cell() {
        let rows = csv(true, &[sample()]);
        assert_eq!(rows.iter().map(|row| field(row, "seed")).collect::<Vec<_>>(), ["2", "1"]);
        assert_eq!(field(&rows[1], "trace_hash"), "0000000000001001");
        assert_eq!((field(&rows[1], "retransmissions"), field(&rows[1], "median_fct_s")), ("6", "34.25"));
        let of_cell = csv(false, &[sample()]);
        let columns = of_cell[0].iter().map(|(name, _)| name.as_str());
        let pooled =
            |name: &str| name.ends_with("_ci95") || POOLED.iter().any(|(pooled, ..)| *pooled == name);
        for name in columns.filter(|name| !pooled(name)) {
            field(&rows[0], name);
        }
        let lines = json(true, &[sample()]);
        assert_eq!(lines[0]["fct_s"], serde_json::json!([40.0, null]));
        assert_eq!(lines[0]["seed"], 2);
    }

    #[test]
    fn json_rows_have_the_names_and_values_of_csv_rows() {
        for each in [false, true] {
            for (row, line) in csv(each, &[sample()]).iter().zip(json(each, &[sample()])) {
                for (name, value) in row {
                    let text = match &line[name] {
                        serde_json::Value::Null => String::new(),
                        serde_json::Value::String(text) => text.clone(),
                        other => other.to_string(),
                    };
                    assert_eq!(text, *value, "{name}");
                }
            }
        }
    }

    #[test]
    fn each_row_is_compared_with_the_first_mechanism_under_the_same_conditions() {
        let mut other = sample();
        other.cell.mechanism = "default".into();
        for run in &mut other.runs {
            run.fct_s.iter_mut().flatten().for_each(|fct| *fct *= 2.0);
        }
        let mut elsewhere = sample();
        elsewhere.cell.clients = 3;
        let mut first = sample();
        first.runs[0].fct_s[1] = Some(44.0);
        other.runs[0].fct_s[1] = Some(88.0);
        let rows = csv(false, &[first, other, elsewhere]);
        assert_eq!((field(&rows[0], "ratio"), field(&rows[2], "compared_with")), ("", ""));
        assert_eq!(field(&rows[1], "compared_with"), "cocoa:preset=draft-3,weak=1/4");
        assert_eq!((field(&rows[1], "compared_metric"), field(&rows[1], "ratio")), ("median_fct_s", "2"));
        assert_eq!((field(&rows[1], "ratio_low"), field(&rows[1], "ratio_high")), ("2", "2"));
    }

    #[test]
    fn each_flow_and_each_mechanism_of_a_mix_has_its_own_columns() {
        let mut flows = CellResult { runs: vec![flowing(1, 80), flowing(2, 60)], ..CellResult::default() };
        flows.cell.flows = vec!["a".into(), "b".into()];
        flows.cell.is_mesh = true;
        let mut mix = CellResult { runs: vec![mixed(1), mixed(2)], ..CellResult::default() };
        mix.cell.mix = vec!["a".into(), "b".into()];
        let rows = csv(false, &[flows, mix]);
        for (name, value) in [("flow.a.pdr", "0.583333"), ("flow.b.delay_s", "0.5"), ("mesh_queue_full", "7")]
        {
            assert_eq!((field(&rows[0], name), field(&rows[1], name)), (value, ""), "{name}");
        }
        assert_eq!((field(&rows[0], "mesh_listen_mj"), field(&rows[0], "mesh_frames")), ("20", "1000"));
        assert_eq!((field(&rows[1], "share.a"), field(&rows[1], "share.b")), ("0.75", "0.25"));
        assert_eq!(field(&rows[0], "share.a"), "");
    }

    #[test]
    fn a_hostile_mechanism_name_is_quoted_as_one_csv_field() {
        let mut result = sample();
        result.cell.mechanism = "a\",\"b\n=1+1".into();
        assert_eq!(field(&csv(false, std::slice::from_ref(&result))[0], "mechanism"), result.cell.mechanism);
        assert_eq!(json(false, std::slice::from_ref(&result))[0]["mechanism"], *result.cell.mechanism);
    }

    #[test]
    fn each_transfer_has_its_own_columns() {
        let run = |seed, took_s| RunResult {
            seed,
            transfers: vec![moved("image", took_s), moved("log", 20.0)],
            ..RunResult::default()
        };
        let mut result = CellResult { runs: vec![run(1, 30.0), run(2, 50.0)], ..CellResult::default() };
        result.cell.transfers = vec!["image".into(), "log".into()];
        let rows = csv(false, &[result]);
        let value = |name: &str| field(&rows[0], name);
        assert_eq!(value("transfer.image.transfer_time_s"), "25");
        assert_eq!(value("transfer.image.transfer_time_max_s"), "50");
        assert_eq!(value("transfer.log.link_share"), "0.5");
        assert_eq!((value("transfers_completed"), value("throughput")), ("4", ""));
        assert!(rows[0].iter().all(|(column, _)| !column.starts_with("flow.")));
    }
}
