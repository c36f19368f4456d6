//! The scores of a paper under all variants of its unstated conditions, as CSV or JSON.

use std::io;

use crate::output::sheet::Column;
use crate::output::{RowFormat, Sheet, SheetValue};
use crate::papers::{Sensitivity, SensitivityScore, VariedValue};

/// A row about one variant of a paper's unstated conditions: the values that differ from the chosen ones, and the
/// score.
#[derive(Debug)]
pub(in crate::output) struct VariantRow {
    paper: String,
    values: [Option<VariedValue>; 2],
    score: SensitivityScore,
}

/// A function that returns the value of a column.
type Of = fn(&VariantRow) -> SheetValue;

/// The columns of every row: name, meaning and value.
pub(in crate::output) const COLUMNS: &[Column<Of>] = &[
    ("paper", "The key of the paper.", |it| (&it.paper).into()),
    ("condition", "The condition that is varied; empty for the chosen values.", |it| {
        varied(it, 0, |own| &own.condition)
    }),
    ("value", "The value of `condition`.", |it| varied(it, 0, |own| &own.value)),
    ("other_condition", "Another condition that is varied with it.", |it| {
        varied(it, 1, |own| &own.condition)
    }),
    ("other_value", "The value of `other_condition`.", |it| varied(it, 1, |own| &own.value)),
    ("values_met", "Published values that are met.", |it| count(it.score.values.0)),
    ("values", "Published values.", |it| count(it.score.values.1)),
    ("orders_held", "Published orders and ratios that hold.", |it| count(it.score.orders.0)),
    ("orders_inconclusive", "Published orders and ratios that are inconclusive.", |it| {
        count(it.score.inconclusive)
    }),
    ("orders", "Published orders and ratios.", |it| count(it.score.orders.1)),
];

/// Returns the part that `text` selects from the first (`place` 0) or second (`place` 1) value that differs from the
/// chosen ones; `Nothing` if the variant has no such value.
fn varied(row: &VariantRow, place: usize, text: fn(&VariedValue) -> &String) -> SheetValue {
    row.values[place].as_ref().map_or(SheetValue::Nothing, |own| text(own).into())
}

fn count(count: usize) -> SheetValue {
    SheetValue::Count(count as u64)
}

impl Sensitivity {
    /// Writes a row for the chosen values of a paper's unstated conditions, for each other value, and for each pair of
    /// other values. `docs/results.md` describes every column.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn write(&self, out: impl io::Write, lines: RowFormat, commit: &str, paper: &str) -> io::Result<()> {
        let row = |values, score| VariantRow { paper: paper.to_owned(), values, score };
        let varied = self.scores.iter().map(|(&(first, second), &score)| {
            // Two equal numbers are one value alone.
            let other = (first != second).then(|| self.values[second].clone());
            row([Some(self.values[first].clone()), other], score)
        });
        let rows: Vec<_> = [row([None, None], self.base)].into_iter().chain(varied).collect();
        Sheet::of(COLUMNS, &rows).with_commit(commit).write(out, lines)
    }
}
