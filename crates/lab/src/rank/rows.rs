//! Ratios as csv or json: a row for each metric of each mechanism in each cell.

use super::{RankedCell, RankedMetric, Ranking, Section};
use crate::output::sheet::{Column, columns};
use crate::output::{Sheet, SheetValue};
use crate::results::{Cell, CellResult, CellSummary};

/// A metric of one mechanism in one cell.
pub(crate) struct RankingRow<'a> {
    /// The number of the cell, from 1.
    number: usize,
    cell: &'a Cell,
    ranked: &'a RankedMetric,
    /// The number of the mechanism.
    mechanism: usize,
    best: &'a str,
    hindsight: &'a str,
    summary: &'a CellSummary,
}

/// A function that returns the value of a column.
type Of = fn(&RankingRow<'_>) -> SheetValue;

/// The columns of every row: name, meaning and value.
pub(crate) const COLUMNS: &[Column<Of>] = columns! {
    /// The number of the cell among the comparable cells of the suite, from 1.
    "cell" => |it| SheetValue::Count(it.number as u64),
    /// The scenario's name.
    "scenario" => |it| (&it.cell.scenario).into(),
    /// The kind of the workload.
    "workload" => |it| (&it.cell.workload).into(),
    /// How many clients there are.
    "clients" => |it| SheetValue::Count(it.cell.clients.into()),
    /// The mechanism, exactly as it was named.
    "mechanism" => |it| (&it.cell.mechanism).into(),
    /// `published`: published, with random timeouts, a possible baseline; `coapace`: made by this project, with random
    /// timeouts; `other`: of another crate, a mix or TCP; `undithered`: without random timeouts.
    "section" => |it| Section::of(&it.cell.mechanism).word().into(),
    /// The metric that is compared.
    "metric" => |it| it.ranked.metric.name().into(),
    /// The mean of the value over the seeds, in the metric's unit; empty if some seed has none.
    "value" => |it| it.ranked.values[it.mechanism].into(),
    /// The published mechanism with random timeouts that has the best value.
    "best" => |it| it.best.into(),
    /// The value of the mechanism in `best`.
    "best_value" => |it| it.ranked.values[it.ranked.best].into(),
    /// The best value that any mechanism can reach in this scenario, if it is known (docs/rank.md).
    "bound" => |it| it.ranked.bound.map(|bound| bound.value).into(),
    /// How many times worse the value is than the best, seed by seed: the geometric mean. 1 is as good, and more is worse. It
    /// is empty if some seed has no value, which counts as infinite.
    "ratio" => |it| Some(it.ranked.ratios[it.mechanism].mean).into(),
    /// The lower end of the ratio's 95 % confidence interval; empty with one seed.
    "ratio_low" => |it| it.ranked.ratios[it.mechanism].interval.map(|(low, _)| low).into(),
    /// The upper end of the ratio's interval; empty if there is none.
    "ratio_high" => |it| it.ranked.ratios[it.mechanism].interval.map(|(_, high)| high).into(),
    /// The published mechanism with random timeouts that is best in hindsight: its worst ratio over the metrics of the cell is the
    /// smallest.
    "hindsight" => |it| it.hindsight.into(),
    /// How many seeds were run.
    "runs" => |it| SheetValue::Count(it.summary.runs),
    /// The hash of the scenario, including the values of its knobs.
    "scenario_hash" => |it| SheetValue::Text(it.cell.scenario_hash.to_string()),
    /// The hash of the runs.
    "trace_hash" => |it| SheetValue::Text(it.summary.trace_hash.to_string()),
};

impl Ranking {
    /// Returns a row for each metric of each mechanism in each cell. `docs/results.md` describes every column.
    pub fn rows(&self, commit: &str) -> Sheet {
        // Made once for each mechanism, because every metric of it has a row with the summary.
        let summary = |cell: &RankedCell| cell.results.iter().map(CellResult::summary).collect();
        let summaries: Vec<Vec<CellSummary>> = self.cells.iter().map(summary).collect();
        let hindsight = self.hindsight();
        let mut rows = Vec::new();
        for (place, cell) in self.cells.iter().enumerate() {
            // The first oracle chooses among published mechanisms alone.
            let chosen = hindsight.first().map_or("", |it| &self.mechanisms[it.choices[place].mechanism]);
            for ranked in &cell.metrics {
                for (mechanism, result) in cell.results.iter().enumerate() {
                    rows.push(RankingRow {
                        number: place + 1,
                        cell: &result.cell,
                        ranked,
                        mechanism,
                        best: &self.mechanisms[ranked.best],
                        hindsight: chosen,
                        summary: &summaries[place][mechanism],
                    });
                }
            }
        }
        let cells = rows.iter().map(|row| row.cell);
        Sheet::of(COLUMNS, &rows).with_commit(commit).with_knobs(cells.clone(), &cells)
    }
}

#[cfg(test)]
mod tests {
    use super::super::ranking::tests::ranking;
    use super::*;
    use crate::output::RowFormat;

    fn written(lines: RowFormat, ranking: &Ranking) -> String {
        let mut out = Vec::new();
        ranking.rows("c0ffee").write(&mut out, lines).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_row_of_a_ranking_has_a_value_and_the_best_value() {
        let ranking = ranking(&["default", "linux-rto"], 2);
        let csv = written(RowFormat::Csv, &ranking);
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let header = reader.headers().unwrap().clone();
        let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 2 * 5 * 2, "cells, metrics, mechanisms");
        let column = |row: &csv::StringRecord, name| {
            row[header.iter().position(|other| other == name).unwrap()].to_owned()
        };
        for row in &rows {
            assert_eq!(["best", "hindsight"].map(|name| column(row, name)), ["default", "default"]);
            assert_eq!(column(row, "commit"), "c0ffee");
            let number = |name| column(row, name).parse::<f64>().unwrap();
            if column(row, "mechanism") == "default" {
                assert!(
                    (number("ratio") - 1.0).abs() < 1e-9
                        && (number("value") - number("best_value")).abs() < 1e-9
                );
            }
            assert!(number("ratio_low") <= number("ratio") && number("ratio") <= number("ratio_high"));
        }
        assert_eq!(written(RowFormat::Json, &ranking).lines().count(), rows.len());
    }

    #[test]
    fn the_rows_of_a_ranking_do_not_depend_on_the_number_of_threads() {
        let on = |jobs| written(RowFormat::Csv, &ranking(&["default", "cocoa"], jobs));
        assert_eq!(on(1), on(2));
    }
}
