//! A row for each published ranking.

use crate::output::sheet::{Column, columns};
use crate::output::{Sheet, SheetValue};
use crate::papers::{OrderOutcome, OrderVerdict, References, verdicts};
use crate::results::CellResult;

/// A function that returns the value of a column.
type Of = fn(&OrderVerdict<'_>) -> SheetValue;

/// The columns of verdicts.
pub(in crate::output) const COLUMNS: &[Column<Of>] = columns! {
    /// The scenario's name.
    "scenario" => |it| (&it.above.cell.scenario).into(),
    /// The kind of the workload.
    "workload" => |it| (&it.above.cell.workload).into(),
    /// How many clients there are.
    "clients" => |it| SheetValue::Count(it.above.cell.clients.into()),
    /// The metric that is compared.
    "metric" => |it| it.order.metric.name().into(),
    /// The mechanism that the published ranking names first.
    "above" => |it| it.above.cell.label().into(),
    /// `>`, `>=`, or `=` of a ratio.
    "relation" => |it| it.order.relation.sign().into(),
    /// The mechanism that the published ranking names second.
    "below" => |it| (&it.order.than).into(),
    /// The published ratio; with `>` or `>=`, the least ratio that is claimed; empty if there is none.
    "times" => |it| it.order.times.into(),
    /// The value of the mechanism in `above`, in the metric's unit.
    "above_value" => |it| it.values[0].into(),
    /// The value of the mechanism in `below`, in the same unit.
    "below_value" => |it| it.values[1].into(),
    /// `above_value` divided by `below_value`, seed by seed: the geometric mean.
    "ratio" => |it| it.ratio.map(|it| it.mean).into(),
    /// The lower end of the ratio's 95 % confidence interval.
    "ratio_low" => |it| it.ratio.and_then(|it| it.interval).map(|it| it.0).into(),
    /// The upper end of the ratio's interval.
    "ratio_high" => |it| it.ratio.and_then(|it| it.interval).map(|it| it.1).into(),
    /// Whether the published ranking held.
    "held" => |it| SheetValue::Flag(it.outcome() == OrderOutcome::Held),
    /// The verdict on the ranking: `held`, `inconclusive` or `not held`.
    "verdict" => |it| it.outcome().word().into(),
    /// The number of seeds that would probably decide an inconclusive ranking.
    "deciding_seeds" => |it| it.deciding_seeds().map_or(SheetValue::Nothing, SheetValue::Count),
    /// How many seeds were run.
    "runs" => |it| SheetValue::Count(it.above.runs.len() as u64),
    /// Where the value is printed in the paper.
    "source" => |it| it.source.into(),
    /// The likely reason why the ranking does not hold here.
    "why" => |it| (&it.order.why).into(),
    /// The hash of the scenario, including the values of its knobs.
    "scenario_hash" => |it| SheetValue::Text(it.above.cell.scenario_hash.to_string()),
};

/// Returns a row for each published order among `results`, the worst first: the conditions, the values of the two mechanisms,
/// the ratio with its 95 % interval, and whether the order held. `docs/results.md` has every column.
pub fn order_rows(commit: &str, results: &[CellResult], references: &References) -> Sheet {
    let (rows, cells) = (verdicts(results, references), results.iter().map(|result| &result.cell));
    // All cells decide the columns of knobs, so tables of one paper have equal columns.
    Sheet::of(COLUMNS, &rows).with_commit(commit).with_knobs(cells, &rows.iter().map(|it| &it.above.cell))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::RowFormat;
    use crate::papers::verdict::tests::held_and_not_held;

    #[test]
    fn csv_rows_of_published_rankings_have_the_claim_and_its_verdict() {
        let (mut csv, mut json) = (Vec::new(), Vec::new());
        let (results, references) = held_and_not_held();
        let sheet = order_rows("c0ffee", &results, &references);
        sheet.write(&mut csv, RowFormat::Csv).unwrap();
        sheet.write(&mut json, RowFormat::Json).unwrap();
        let lines: Vec<serde_json::Value> =
            str::from_utf8(&json).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut csv = csv::Reader::from_reader(csv.as_slice());
        let header = csv.headers().unwrap().clone();
        let rows: Vec<_> = csv.records().map(Result::unwrap).collect();
        assert_eq!((rows.len(), lines.len()), (2, 2));
        let field = |row: usize, name| &rows[row][header.iter().position(|column| column == name).unwrap()];
        assert_eq!((field(1, "relation"), field(0, "relation")), (">", ">="));
        assert_eq!((field(1, "held"), field(0, "held")), ("true", "false"));
        assert_eq!((field(1, "metric"), field(1, "above_value")), ("throughput", "33"));
        assert_eq!((field(0, "clients"), field(0, "below_value")), ("180", "2"));
        for (row, line) in lines.iter().enumerate() {
            assert_eq!(line["ratio"].to_string(), field(row, "ratio"));
            assert!(line["ratio_low"].as_f64() < line["ratio"].as_f64());
            assert!(line["ratio"].as_f64() < line["ratio_high"].as_f64());
        }
    }
}
