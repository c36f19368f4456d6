//! Tables of rows for programs: CSV, JSON lines and columns of Arrow with equal names and values.

use std::collections::BTreeSet;
use std::io;

use serde::Serialize;

use crate::number;
use crate::results::Cell;

/// A value in a row.
#[derive(Clone, Debug, PartialEq)]
pub enum SheetValue {
    /// An unknown value: empty in CSV, `null` in JSON.
    Nothing,
    /// A text.
    Text(String),
    /// A number, written with six decimals at most.
    Number(f64),
    /// A whole number.
    Count(u64),
    /// A truth value.
    Flag(bool),
    /// A list or an object, for JSON only.
    Nested(serde_json::Value),
}

impl SheetValue {
    /// Makes a nested value of any value that can be serialised.
    pub(crate) fn nested(value: &impl Serialize) -> Self {
        serde_json::to_value(value).map_or(Self::Nothing, Self::Nested)
    }

    /// Returns the value of the knob `name` of a cell: a count if it is a whole number, otherwise a text; `Nothing`
    /// without this knob.
    pub(super) fn knob(cell: &Cell, name: &str) -> Self {
        // Only whole numbers become numbers. `2 %` and `0.5 s` have units, and stay texts.
        let text = cell.knobs.get(name);
        text.map_or(Self::Nothing, |text| text.parse().map_or_else(|_| text.into(), Self::Count))
    }

    fn csv(&self) -> String {
        match self {
            // A list in a field would need a syntax of its own, so `Rows` gives CSV no nested columns.
            Self::Nothing | Self::Nested(_) => String::new(),
            Self::Text(text) => text.clone(),
            Self::Number(number) => number::field(Some(*number)),
            Self::Count(count) => count.to_string(),
            Self::Flag(flag) => flag.to_string(),
        }
    }

    fn json(&self) -> serde_json::Value {
        match self {
            Self::Nothing => serde_json::Value::Null,
            Self::Text(text) => text.as_str().into(),
            // Numbers have six decimals at most, as in CSV. A whole number has none.
            Self::Number(number) => {
                let text = number::field(Some(*number));
                text.parse::<i64>().map_or_else(|_| text.parse::<f64>().ok().into(), Into::into)
            }
            Self::Count(count) => (*count).into(),
            Self::Flag(flag) => (*flag).into(),
            Self::Nested(value) => value.clone(),
        }
    }
}

impl From<Option<f64>> for SheetValue {
    fn from(number: Option<f64>) -> Self {
        number.filter(|number| number.is_finite()).map_or(Self::Nothing, Self::Number)
    }
}

impl<T: AsRef<str> + ?Sized> From<&T> for SheetValue {
    fn from(text: &T) -> Self {
        Self::Text(text.as_ref().to_owned())
    }
}

/// The format of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFormat {
    /// Comma-separated values with a header.
    Csv,
    /// One JSON object on each line.
    Json,
}

/// A column of every row of one kind: its name, its meaning, and the function `F` that returns its value in a row.
pub(crate) type Column<F> = (&'static str, &'static str, F);

/// A function that returns the value of a column for a row.
type Of<R> = fn(&R) -> SheetValue;

/// Declares columns. The comment of each column is its meaning, which is also printed in `docs/results.md`.
macro_rules! columns {
    ($($(#[doc = $about:literal])+ $name:literal => $of:expr,)+) => {
        &[$(($name, concat!($($about),+).trim_ascii(), $of)),+]
    };
}
pub(crate) use columns;

/// A table for programs: columns in sequence, each with its name and one value for each row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sheet(pub Vec<(String, Vec<SheetValue>)>);

impl Sheet {
    /// Makes a sheet with these columns, and with the value of each column for each of `rows`.
    pub(crate) fn of<R>(columns: &[Column<Of<R>>], rows: &[R]) -> Self {
        let values = |of: &Of<R>| rows.iter().map(of).collect();
        Self(columns.iter().map(|(name, _, of)| ((*name).to_owned(), values(of))).collect())
    }

    /// Adds a column with the commit.
    pub(crate) fn with_commit(mut self, commit: &str) -> Self {
        self.push("commit", (0..self.len()).map(|_| commit.into()));
        self
    }

    /// Adds a column for each knob of `cells`. `own` has the cell of each row, from which the values come.
    pub(crate) fn with_knobs<'a>(
        mut self,
        cells: impl IntoIterator<Item = &'a Cell>,
        own: &(impl Iterator<Item = &'a Cell> + Clone),
    ) -> Self {
        // Sorted by name, so that the columns do not depend on the order of the cells.
        let knobs: BTreeSet<&String> = cells.into_iter().flat_map(|cell| cell.knobs.keys()).collect();
        for name in knobs {
            self.push(format!("knob.{name}"), own.clone().map(|cell| SheetValue::knob(cell, name)));
        }
        self
    }

    /// Returns the number of rows.
    fn len(&self) -> usize {
        self.0.first().map_or(0, |(_, values)| values.len())
    }

    /// Adds a column with this name and these values, one for each row.
    pub fn push(&mut self, name: impl Into<String>, values: impl IntoIterator<Item = SheetValue>) {
        self.0.push((name.into(), values.into_iter().collect()));
    }

    /// Adds a value to the column of this name, for a sheet that is filled row by row. Every row must have all columns.
    pub fn add(&mut self, name: &str, value: impl Into<SheetValue>) {
        // A row without a value here would shift the values of the rows after it.
        match self.0.iter_mut().find(|(own, _)| own == name) {
            Some((_, values)) => values.push(value.into()),
            None => self.push(name, [value.into()]),
        }
    }

    /// Writes the rows; for CSV, the header first.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn write(&self, mut out: impl io::Write, lines: RowFormat) -> io::Result<()> {
        out.write_all(self.header(lines).as_bytes())?;
        out.write_all(self.rows(lines).as_bytes())?;
        out.flush()
    }

    /// Returns the names of the columns as a line of CSV; empty for JSON.
    pub(super) fn header(&self, lines: RowFormat) -> String {
        match lines {
            RowFormat::Csv => csv([self.0.iter().map(|(name, _)| name.clone())]),
            RowFormat::Json => String::new(),
        }
    }

    /// Returns a line for each row.
    pub(super) fn rows(&self, lines: RowFormat) -> String {
        let rows = 0..self.len();
        match lines {
            RowFormat::Csv => csv(rows.map(|row| self.0.iter().map(move |(_, values)| values[row].csv()))),
            RowFormat::Json => rows.map(|row| self.json(row)).collect(),
        }
    }

    fn json(&self, row: usize) -> String {
        let fields = self.0.iter().map(|(name, values)| {
            // A name can always be written as JSON.
            let name = serde_json::Value::from(name.as_str());
            format!("{name}:{}", values[row].json())
        });
        format!("{{{}}}\n", fields.collect::<Vec<_>>().join(","))
    }
}

/// Writes records as lines of CSV (RFC 4180).
fn csv<R: IntoIterator<Item = String>>(records: impl IntoIterator<Item = R>) -> String {
    let mut csv = csv::WriterBuilder::new().from_writer(Vec::new());
    for record in records {
        // Writing to memory does not fail.
        let _ = csv.write_record(record.into_iter().collect::<Vec<_>>());
    }
    csv.into_inner().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

/// The maximum number of characters of a mechanism's name in a table with a row for each mechanism.
const LONGEST: usize = 28;

/// Returns the name of a mechanism for a table with a row for each mechanism. A name that is too long is shortened.
pub(crate) fn cut(name: &str) -> String {
    match name.char_indices().nth(LONGEST) {
        Some(_) => name.chars().take(LONGEST - 1).chain(['…']).collect(),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_and_json_of_a_table_have_the_same_values() {
        let values = [
            ("a", SheetValue::from("x,\"y\"\n")),
            ("b", SheetValue::Number(0.123_456_7)),
            ("c", SheetValue::Number(62.0)),
            ("d", SheetValue::from(Some(f64::INFINITY))),
            ("e", SheetValue::Count(u64::MAX)),
            ("f", SheetValue::Flag(true)),
        ];
        let mut sheet = Sheet::default();
        for (name, value) in values {
            sheet.push(name, [value]);
        }
        let mut out = Vec::new();
        sheet.write(&mut out, RowFormat::Csv).unwrap();
        let csv = "a,b,c,d,e,f\n\"x,\"\"y\"\"\n\",0.123457,62,,18446744073709551615,true\n";
        assert_eq!(str::from_utf8(&out), Ok(csv));
        sheet.push("g", [SheetValue::nested(&[1, 2])]);
        let json = "{\"a\":\"x,\\\"y\\\"\\n\",\"b\":0.123457,\"c\":62,\"d\":null,\"e\":18446744073709551615,\"f\":true,\"g\":[1,2]}\n";
        assert_eq!(
            (sheet.header(RowFormat::Json), sheet.rows(RowFormat::Json)),
            (String::new(), json.to_owned())
        );
    }
}
