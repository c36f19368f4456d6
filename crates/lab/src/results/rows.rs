//! Rows of results as CSV or JSON lines: one for each cell, or one for each run.

pub(super) mod columns;
pub(crate) mod fixed;
pub(super) mod lines;
pub(super) mod orders;

use std::collections::BTreeSet;
use std::io;

use super::sheet::{Always, Sheet, Value};
use super::{CellResult, Estimate, Metric, Ratio, RunResult, Summary, headline};
use columns::{CONDITIONS, NESTED, ORIGIN, OfRow, POOLED, Row, SEED, radio, radio_names};
use lines::Lines;

/// The columns of the rows of some cells. They are known before anything has run.
#[derive(Debug)]
pub struct Rows {
    sheet: Sheet<Key>,
    lines: Lines,
    each: bool,
    commit: String,
}

/// The source of a column's value.
#[derive(Clone, Debug)]
enum Key {
    Always(OfRow),
    /// A column of JSON alone.
    Nested(OfRow),
    Metric(Metric),
    Interval(Metric),
    Knob(String),
    Flow(String, Metric),
    FlowInterval(String, Metric),
    Share(String),
    Published(Metric),
    Counter(usize),
}

impl Row<'_> {
    fn value(&self, key: &Key) -> Value {
        let mean = |estimate: Option<Estimate>| Value::from(estimate.map(|estimate| estimate.mean));
        let half =
            |estimate: Option<Estimate>| Value::from(estimate.and_then(|estimate| estimate.half_width));
        let flow = |name: &String, metric: Metric| {
            self.summary.flows.iter().find(|flow| flow.name == *name)?.estimate(metric)
        };
        match key {
            Key::Always(of) | Key::Nested(of) => of(self),
            Key::Metric(metric) => mean(self.summary.estimate(*metric)),
            Key::Interval(metric) => half(self.summary.estimate(*metric)),
            Key::Knob(name) => self.knob(name),
            Key::Flow(name, metric) => mean(flow(name, *metric)),
            Key::FlowInterval(name, metric) => half(flow(name, *metric)),
            Key::Share(mechanism) => {
                let own = self.summary.populations.iter().find(|own| own.mechanism == *mechanism);
                own.filter(|_| self.summary.populations.len() > 1).and_then(|own| own.share).into()
            }
            Key::Published(metric) => {
                self.result.published.as_ref().and_then(|published| published.get(*metric)).into()
            }
            Key::Counter(place) => {
                let values: Vec<f64> =
                    self.runs.iter().filter_map(|run| Some(radio(run.mesh.as_ref()?, *place))).collect();
                mean(Estimate::of(&values))
            }
        }
    }
}

impl Rows {
    /// Chooses the columns for these cells, which need no runs yet. Each cell has a row, or a row for `each` run.
    pub fn new(cells: &[CellResult], lines: Lines, each: bool, commit: &str) -> Self {
        let always = |columns: &[Always<OfRow>]| {
            columns.iter().map(|(name, _, of)| ((*name).to_owned(), Key::Always(*of))).collect::<Vec<_>>()
        };
        let mut columns = always(CONDITIONS);
        columns.extend(Metric::ALL.map(|metric| (metric.name().to_owned(), Key::Metric(metric))));
        if each {
            columns.extend(always(SEED));
        } else {
            let intervals = Metric::ALL.into_iter();
            columns.extend(
                intervals
                    .filter_map(|metric| Some((metric.interval_name()?.to_owned(), Key::Interval(metric)))),
            );
            columns.extend(always(POOLED));
        }
        columns.extend(always(ORIGIN));
        columns.extend(Self::own_columns(cells, each));
        if each && lines == Lines::Json {
            columns.extend(NESTED.iter().map(|(name, _, of)| ((*name).to_owned(), Key::Nested(*of))));
        }
        Self { sheet: Sheet::new(columns), lines, each, commit: commit.to_owned() }
    }

    /// Returns the columns that depend on the cells.
    fn own_columns(cells: &[CellResult], each: bool) -> Vec<(String, Key)> {
        let all = |of: fn(&CellResult) -> Vec<String>| {
            let mut names: Vec<String> = Vec::new();
            for name in cells.iter().flat_map(of) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            names
        };
        let mut columns = Vec::new();
        for knob in all(|result| result.cell.knobs.keys().cloned().collect()) {
            columns.push((format!("knob.{knob}"), Key::Knob(knob)));
        }
        for flow in all(|result| result.cell.flows.clone()) {
            for metric in Metric::ALL.into_iter().filter(|metric| metric.is_of_flows()) {
                columns.push((format!("flow.{flow}.{metric}"), Key::Flow(flow.clone(), metric)));
                if let Some(interval) = metric.interval_name().filter(|_| !each) {
                    columns
                        .push((format!("flow.{flow}.{interval}"), Key::FlowInterval(flow.clone(), metric)));
                }
            }
        }
        for mechanism in all(|result| result.cell.mix.clone()) {
            columns.push((format!("share.{mechanism}"), Key::Share(mechanism)));
        }
        let published = cells.iter().filter_map(|result| result.published.as_ref());
        for metric in published.flat_map(|published| published.figures.keys()).collect::<BTreeSet<_>>() {
            columns.push((format!("published_{metric}"), Key::Published(*metric)));
        }
        if cells.iter().any(|result| result.cell.is_mesh) {
            columns.extend(
                radio_names().zip(0..).map(|(name, place)| (format!("mesh_{name}"), Key::Counter(place))),
            );
        }
        columns
    }

    /// Returns the header of CSV; empty for JSON.
    pub fn header(&self) -> String {
        match self.lines {
            Lines::Csv => self.sheet.header(is_nested),
            Lines::Json => String::new(),
        }
    }

    /// Returns the row of the cell at `place`, or the rows of its runs.
    pub fn of(&self, results: &[CellResult], place: usize) -> String {
        let written = |row: Row<'_>| match self.lines {
            Lines::Csv => self.sheet.csv(|key| row.value(key), is_nested),
            Lines::Json => self.sheet.json(|key| row.value(key)),
        };
        self.rows(results, place).into_iter().map(written).collect()
    }

    /// Returns the names and the values of all columns, with the rows of all `results`.
    pub fn columns(&self, results: &[CellResult]) -> Vec<(String, Vec<Value>)> {
        let rows: Vec<Row<'_>> = (0..results.len()).flat_map(|place| self.rows(results, place)).collect();
        let values = |key: &Key| rows.iter().map(|row| row.value(key)).collect();
        self.sheet.columns().map(|(name, key)| (name.to_owned(), values(key))).collect()
    }

    /// Returns the row of the cell at `place`, or those of its runs.
    fn rows<'a>(&'a self, results: &'a [CellResult], place: usize) -> Vec<Row<'a>> {
        let Some(result) = results.get(place) else { return Vec::new() };
        if self.each {
            return result.runs.iter().map(|run| self.row(result, std::slice::from_ref(run), None)).collect();
        }
        let first = results.iter().find(|other| other.cell.same_conditions(&result.cell));
        let compared = first.filter(|first| !std::ptr::eq(*first, result)).map(|first| {
            let metric = headline([first, result]);
            (metric, first, Ratio::by_seed(metric, result, first))
        });
        vec![self.row(result, &result.runs, compared)]
    }

    fn row<'a>(
        &'a self,
        result: &'a CellResult,
        runs: &'a [RunResult],
        compared: Option<(Metric, &'a CellResult, Option<Ratio>)>,
    ) -> Row<'a> {
        Row { result, runs, summary: Summary::of(runs), compared, commit: &self.commit, is_run: self.each }
    }
}

fn is_nested(key: &Key) -> bool {
    matches!(key, Key::Nested(_))
}

/// Writes the rows of all `results`.
///
/// # Errors
/// Returns the errors of `out`.
pub fn write_rows(
    mut out: impl io::Write,
    lines: Lines,
    each: bool,
    commit: &str,
    results: &[CellResult],
) -> io::Result<()> {
    let rows = Rows::new(results, lines, each, commit);
    out.write_all(rows.header().as_bytes())?;
    for place in 0..results.len() {
        out.write_all(rows.of(results, place).as_bytes())?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::super::cell::tests::sample;
    use super::super::flow::tests::flowing;
    use super::super::summary::tests::mixed;
    use super::*;

    /// Returns the fields of each row with the names of their columns.
    fn csv(each: bool, results: &[CellResult]) -> Vec<Vec<(String, String)>> {
        let mut out = Vec::new();
        write_rows(&mut out, Lines::Csv, each, "c0ffee", results).unwrap();
        let mut reader = csv::Reader::from_reader(out.as_slice());
        let header: Vec<_> = reader.headers().unwrap().iter().map(str::to_owned).collect();
        let row = |record: csv::StringRecord| {
            header.iter().cloned().zip(record.iter().map(str::to_owned)).collect::<Vec<_>>()
        };
        reader.records().map(|record| row(record.unwrap())).collect()
    }

    fn json(each: bool, results: &[CellResult]) -> Vec<serde_json::Value> {
        let mut out = Vec::new();
        write_rows(&mut out, Lines::Json, each, "c0ffee", results).unwrap();
        str::from_utf8(&out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn field<'a>(row: &'a [(String, String)], name: &str) -> &'a str {
        &row.iter().find(|(column, _)| column == name).unwrap_or_else(|| panic!("{name}: {row:?}")).1
    }

    #[test]
    fn the_first_columns_are_those_of_the_published_tables() {
        let names: Vec<_> = csv(false, &[sample()])[0].iter().map(|(name, _)| name.clone()).collect();
        let first = "workload,clients,buffer_bytes,link_errors,mechanism,median_fct_s,p10,p25,p75,p90,\
                     retransmissions_per_client,unnecessary_per_client,drops,losses";
        assert!(names.join(",").starts_with(first), "{names:?}");
    }

    #[test]
    fn a_cell_has_every_metric_with_its_interval_and_says_how_to_make_it_again() {
        let row = &csv(false, &[sample()])[0];
        let summary = sample().summary();
        for metric in Metric::ALL {
            let estimate = summary.estimate(metric);
            assert_eq!(field(row, metric.name()), super::super::number::field(estimate.map(|it| it.mean)));
            if let Some(interval) = metric.interval_name() {
                let half_width = estimate.and_then(|it| it.half_width);
                assert_eq!(field(row, interval), super::super::number::field(half_width), "{interval}");
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
    fn each_run_has_every_metric_of_a_cell() {
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
    fn json_has_the_names_and_the_values_of_csv() {
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
    fn a_row_is_compared_with_the_first_mechanism_of_its_conditions() {
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
    fn each_flow_and_each_mechanism_of_a_mix_has_columns_of_its_own() {
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
    fn a_hostile_mechanism_name_stays_one_field() {
        let mut result = sample();
        result.cell.mechanism = "a\",\"b\n=1+1".into();
        assert_eq!(field(&csv(false, std::slice::from_ref(&result))[0], "mechanism"), result.cell.mechanism);
        assert_eq!(json(false, std::slice::from_ref(&result))[0]["mechanism"], *result.cell.mechanism);
    }
}
