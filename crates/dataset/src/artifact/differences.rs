//! Differences between recorded and repeated results.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use coapace_lab::results::CellResult;

use super::{Manifest, ManifestCell};
use crate::Table;

/// A run whose events differ between the record and its repetition, or that only one of both contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DifferingRun {
    /// A description of the run: the name of the scenario, the values of its knobs and its hash, the mechanism, and the
    /// seed.
    pub place: String,
    /// The recorded trace hash; `None` if no such run is recorded.
    pub recorded: Option<String>,
    /// The trace hash of the repeated run; `None` if it was not repeated.
    pub repeated: Option<String>,
}

/// A value of a result that differs from the recorded one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DifferingValue {
    /// The number of the row, from 1.
    pub row: usize,
    /// The name of the column.
    pub column: String,
    /// The recorded value; empty if it was unknown.
    pub recorded: String,
    /// The value of the repetition; empty if it is unknown.
    pub repeated: String,
}

/// The name of the column with the commit of the program that made the runs.
const ORIGIN: &str = "commit";

impl Manifest {
    /// Returns the runs whose trace hash differs from the recorded one, and the runs that are only in the record or only in
    /// `results`. Runs are identified by the scenario's hash, the mechanism and the seed.
    pub fn differing_runs(&self, results: &[CellResult]) -> Vec<DifferingRun> {
        let now: Vec<_> = results.iter().map(ManifestCell::of).collect();
        let (recorded, repeated) = (runs(&self.cells), runs(&now));
        // Sorted by the key, so that differences are reported in the same order everywhere.
        let all: BTreeSet<_> = recorded.keys().chain(repeated.keys()).collect();
        let differing = all.into_iter().filter_map(|key @ (_, _, seed)| {
            let (then, now) = (recorded.get(key), repeated.get(key));
            let hash = |run: Option<&(&ManifestCell, &String)>| run.map(|(_, hash)| (*hash).clone());
            // Every key comes from one of the two maps, so this skips no run.
            let (cell, _) = then.or(now)?;
            (hash(then) != hash(now)).then(|| DifferingRun {
                place: format!("{}, seed {seed}", cell.words()),
                recorded: hash(then),
                repeated: hash(now),
            })
        });
        differing.collect()
    }
}

/// Returns the cell and the trace hash of every run, by the scenario's hash, the mechanism and the seed.
fn runs(cells: &[ManifestCell]) -> BTreeMap<(&str, &str, u64), (&ManifestCell, &String)> {
    let runs = cells.iter().flat_map(|cell| cell.trace_hashes.iter().map(move |run| (cell, run)));
    runs.map(|(cell, (seed, hash))| ((&*cell.scenario_hash, &*cell.mechanism, *seed), (cell, hash))).collect()
}

/// Returns the values in which `repeated` differs from the recorded table, except in the column `commit`. `recorded`
/// may consist of several tables, whose rows follow each other.
pub fn differing_values(recorded: &[Table], repeated: &Table) -> Vec<DifferingValue> {
    let (recorded, repeated) = (recorded.iter().map(Table::batch).collect::<Vec<_>>(), repeated.batch());
    let mut names: Vec<&String> = Vec::new();
    // A column that only one of the tables has is unknown in the other.
    for field in recorded.iter().chain([&repeated]).flat_map(|batch| batch.schema_ref().fields()) {
        // A later commit may give equal results, and these then repeat the artefact.
        if !names.contains(&field.name()) && field.name() != ORIGIN {
            names.push(field.name());
        }
    }
    let rows = |batch: &RecordBatch| -> Vec<Vec<String>> {
        let columns: Vec<_> = names.iter().map(|name| batch.column_by_name(name)).collect();
        let value =
            |column: Option<&ArrayRef>, row| column.map_or_else(String::new, |column| text(column, row));
        (0..batch.num_rows()).map(|row| columns.iter().map(|column| value(*column, row)).collect()).collect()
    };
    // Texts are compared, so that a column may be whole numbers in one table and text in the other.
    let recorded: Vec<_> = recorded.into_iter().flat_map(rows).collect();
    let repeated = rows(repeated);
    let unknown = String::new();
    let mut differing = Vec::new();
    // Rows pair by their order, which is the same for the same request. A missing row differs in all known values.
    for row in 0..recorded.len().max(repeated.len()) {
        for (column, name) in names.iter().enumerate() {
            let of = |rows: &[Vec<String>]| rows.get(row).map_or(unknown.clone(), |row| row[column].clone());
            let (recorded, repeated) = (of(&recorded), of(&repeated));
            if recorded != repeated {
                let column = (*name).clone();
                differing.push(DifferingValue { row: row + 1, column, recorded, repeated });
            }
        }
    }
    differing
}

/// Returns the value in this row of a column as text; empty if it is unknown. Different values have different texts.
fn text(column: &dyn Array, row: usize) -> String {
    let any = column.as_any();
    if column.is_null(row) {
        String::new()
    } else if let Some(texts) = any.downcast_ref::<StringArray>() {
        texts.value(row).to_owned()
    } else if let Some(numbers) = any.downcast_ref::<Float64Array>() {
        // The shortest digits that read back as the same number, so equal texts are equal numbers.
        numbers.value(row).to_string()
    } else if let Some(counts) = any.downcast_ref::<Int64Array>() {
        counts.value(row).to_string()
    } else if let Some(flags) = any.downcast_ref::<BooleanArray>() {
        flags.value(row).to_string()
    } else {
        // This crate writes the types above only. A Parquet file in the folder may have others, of which only the type is compared.
        format!("a value of type {}", column.data_type())
    }
}

impl fmt::Display for DifferingRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        match (&self.recorded, &self.repeated) {
            (Some(recorded), Some(repeated)) => write!(f, "recorded {recorded}, repeated {repeated}"),
            (Some(recorded), None) => write!(f, "recorded {recorded}, not run here"),
            (None, _) => f.write_str("run here, not recorded"),
        }
    }
}

impl fmt::Display for DifferingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { row, column, recorded, repeated } = self;
        let known = |value: &String| if value.is_empty() { "unknown".to_owned() } else { value.clone() };
        write!(f, "row {row}, {column}: recorded {}, repeated {}", known(recorded), known(repeated))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Values;
    use crate::artifact::manifest::tests::{manifest, results};

    #[test]
    fn a_repeated_run_with_different_events_is_reported_with_both_trace_hashes() {
        let results = results();
        let mut manifest = manifest(&results);
        assert_eq!(manifest.differing_runs(&results), []);
        manifest.cells[1].trace_hashes.insert(2, "0123456789abcdef".to_owned());
        let differing = manifest.differing_runs(&results);
        assert_eq!(differing.len(), 1);
        let line = differing[0].to_string();
        let now = results[1].runs[1].trace_hash;
        assert!(line.starts_with("nb-iot") && line.contains("clients=2"), "{line}");
        assert!(
            line.ends_with(&format!("cocoa, seed 2: recorded 0123456789abcdef, repeated {now}")),
            "{line}"
        );
    }

    #[test]
    fn a_run_of_another_scenario_is_reported_as_missing_and_as_not_recorded() {
        let results = results();
        let mut manifest = manifest(&results);
        manifest.cells[0].scenario_hash = "00000000000000ff".to_owned();
        let lines: Vec<_> = manifest.differing_runs(&results).iter().map(ToString::to_string).collect();
        assert_eq!(lines.len(), 4, "{lines:?}");
        assert!(lines[0].contains("(scenario 00000000000000ff)") && lines[0].ends_with("not run here"));
        assert_eq!(lines.iter().filter(|line| line.ends_with("run here, not recorded")).count(), 2);
    }

    #[test]
    fn a_result_that_differs_in_its_last_digit_is_reported_and_a_different_commit_is_not() {
        let table = |commit: &str, jain| {
            Table::new(vec![
                ("commit".to_owned(), Values::Text(vec![Some(commit.to_owned()); 2])),
                ("jain".to_owned(), Values::Number(vec![Some(0.1), jain])),
            ])
            .unwrap()
        };
        let part = |table: &Table, row| Table::from(table.batch().slice(row, 1));
        let recorded = table("a", Some(0.2));
        let parts = [part(&recorded, 0), part(&recorded, 1)];
        assert_eq!(differing_values(&parts, &table("b", Some(0.2))), []);
        let lines = |table: &Table| {
            differing_values(&parts, table).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let other = table("a", Some(0.2_f64.next_up()));
        assert_eq!(lines(&other), ["row 2, jain: recorded 0.2, repeated 0.20000000000000004"]);
        assert_eq!(lines(&table("a", None)), ["row 2, jain: recorded 0.2, repeated unknown"]);
        assert_eq!(lines(&part(&recorded, 0)).len(), 1, "a row is missing");
    }
}
