//! The columns of a dataset, which all its parts share.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use coapace_lab::output::{RowFormat, Rows, SheetValue};
use coapace_lab::papers::References;
use coapace_lab::results::CellResult;
use coapace_run::contender::Contender;
use coapace_run::measured::RunResult;
use coapace_scenario::Amount;
use serde::{Deserialize, Serialize};

use super::Key;
use super::condition::Condition;
use crate::values::ColumnKind;
use crate::{Table, VERSION, Values};

/// The names and types of a dataset's columns, in sequence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Columns(Vec<(String, ColumnKind)>);

/// A row of a dataset: a finished run.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) key: Key,
    /// The result of the run, as a cell that has only this run.
    pub(super) result: CellResult,
}

impl Columns {
    /// Returns the columns of a plan that runs these contenders under these conditions.
    pub(super) fn of(conditions: &[Arc<Condition>], contenders: &[Contender]) -> Self {
        // `Plan::new` has refused a plan without mechanisms.
        let [first, ..] = contenders else { return Self(Vec::new()) };
        // Columns depend on the conditions and on the mechanisms, but not on both at once.
        let under_all = conditions.iter().map(|condition| (condition, first));
        let all_of =
            conditions.iter().take(1).flat_map(|condition| contenders.iter().map(move |it| (condition, it)));
        let empty = |(condition, contender): (&Arc<Condition>, &Contender)| {
            let cell = condition.trial(contender, 0).cell();
            let result = CellResult { cell, runs: vec![RunResult::default()] };
            Row { key: Key::of("", "", 0), result }
        };
        // Rows of empty runs have all columns of real ones, at no cost.
        let rows: Vec<Row> = under_all.chain(all_of).map(empty).collect();
        let kind = |(name, values): (String, Vec<SheetValue>)| {
            let kind = if is_knob(&name) { kind_of_knob(&values) } else { ColumnKind::of(&values) };
            (name, kind)
        };
        let columns = values(rows);
        let amounts = columns.iter().filter(|(name, values)| is_knob(name) && are_amounts(values));
        let amounts: Vec<String> = amounts.map(|(name, _)| number_of(name)).collect();
        // `values` makes a numeric column of every knob. It is kept where all values are amounts of one dimension.
        let columns = columns.into_iter().filter(|(name, _)| !is_number(name) || amounts.contains(name));
        Self(columns.map(kind).collect())
    }

    /// Checks that rows with the columns `other` can be added to a dataset that has the columns `self`.
    ///
    /// # Errors
    /// Returns a line that names the first incompatible column.
    pub(super) fn take(&self, other: &Self) -> Result<(), String> {
        let own: HashMap<&str, ColumnKind> =
            self.0.iter().map(|(name, kind)| (name.as_str(), *kind)).collect();
        for (name, kind) in &other.0 {
            match own.get(name.as_str()) {
                // A text column takes numbers, too.
                Some(ColumnKind::Text) => {}
                Some(own) if own == kind => {}
                Some(_) => {
                    return Err(format!(
                        "`{name}` is a number in the rows of the sweep, and a text in the new rows"
                    ));
                }
                None => return Err(format!("the rows of the sweep have no column `{name}`")),
            }
        }
        Ok(())
    }

    /// Returns a table of the rows. Columns for which the rows have no value are unknown.
    ///
    /// # Errors
    /// An error of Arrow.
    pub(super) fn table(&self, rows: Vec<Row>) -> io::Result<Table> {
        let count = rows.len();
        let mut known: HashMap<String, Vec<SheetValue>> = values(rows).into_iter().collect();
        let column = |(name, kind): &(String, ColumnKind)| {
            // A later plan may leave out a key that the first one set. Its column is then unknown, because all parts share their columns.
            let values = known.remove(name).unwrap_or_else(|| vec![SheetValue::Nothing; count]);
            (name.clone(), Values::of_kind(*kind, values))
        };
        Table::new(self.0.iter().map(column).collect()).map_err(io::Error::other)
    }
}

/// Returns all columns of the rows, each with its name and its values.
fn values(rows: Vec<Row>) -> Vec<(String, Vec<SheetValue>)> {
    let mut columns =
        vec![("key".to_owned(), rows.iter().map(|row| SheetValue::Text(row.key.to_string())).collect())];
    let results: Vec<CellResult> = rows.into_iter().map(|row| row.result).collect();
    columns
        // A sweep has no published values.
        .extend(Rows::new(&results, &References::default(), RowFormat::Csv, true, VERSION).sheet(&results).0);
    let number = |value: &SheetValue| match value {
        SheetValue::Text(text) => Amount::parse(text).map(Amount::number).into(),
        _ => SheetValue::Nothing,
    };
    let knobs = columns.iter().filter(|(name, _)| name.starts_with("knob."));
    let numbers: Vec<_> =
        knobs.map(|(name, values)| (number_of(name), values.iter().map(number).collect())).collect();
    columns.extend(numbers);
    columns
}

/// The prefix of the name of a column that has the values of a knob or key as plain numbers, without their units.
const NUMBER: &str = "number.";

/// Returns the name of the column of plain numbers that belongs to `column`, the column of a knob or key.
fn number_of(column: &str) -> String {
    format!("{NUMBER}{}", column.strip_prefix("knob.").unwrap_or(column))
}

fn is_number(column: &str) -> bool {
    column.starts_with(NUMBER)
}

/// Returns whether all known values of a column are amounts of one dimension, and one value at least is known.
fn are_amounts(values: &[SheetValue]) -> bool {
    let mut dimension = None;
    // Seconds and bytes in one column could not be compared. Unknown values alone have no dimension.
    values.iter().filter(|value| **value != SheetValue::Nothing).all(|value| {
        let SheetValue::Text(text) = value else { return false };
        let Some(amount) = Amount::parse(text) else { return false };
        *dimension.get_or_insert(amount.dimension) == amount.dimension
    }) && dimension.is_some()
}

/// Returns whether the column with this name has the values of a knob or of a key.
fn is_knob(name: &str) -> bool {
    name.starts_with("knob.") || ["buffer_bytes", "link_errors"].contains(&name)
}

/// Returns the type of a knob's column: numbers (not whole numbers) if all values are numbers, so that a finer grid can
/// be added later; texts otherwise.
fn kind_of_knob(values: &[SheetValue]) -> ColumnKind {
    let is_number = |value: &SheetValue| match value {
        SheetValue::Text(text) => text.parse().is_ok_and(f64::is_finite),
        SheetValue::Flag(_) | SheetValue::Nested(_) => false,
        SheetValue::Nothing | SheetValue::Number(_) | SheetValue::Count(_) => true,
    };
    if values.iter().all(is_number) { ColumnKind::Number } else { ColumnKind::Text }
}
