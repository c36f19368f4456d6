//! Rows with fixed columns, the commit and the knobs.

use std::collections::BTreeSet;
use std::io;

use super::lines::Lines;
use crate::results::Cell;
use crate::results::sheet::{Always, Sheet, Value};

/// A function that returns the value of a column.
pub(crate) type Of<T> = fn(&T) -> Value;

/// The source of a column's value.
enum Lookup<'a, T> {
    Always(Of<T>),
    Knob(&'a str),
    Commit,
}

impl<T> Lookup<'_, T> {
    fn value(&self, (row, cell): (&T, &Cell), commit: &str) -> Value {
        match self {
            Lookup::Always(of) => of(row),
            Lookup::Knob(name) => {
                cell.knobs.get(*name).map_or(Value::Nothing, |text| Value::number_or_text(text))
            }
            Lookup::Commit => commit.into(),
        }
    }
}

/// Returns the columns, the commit, and the knobs of all `cells`.
fn sheet<'a, T>(
    columns: &[Always<Of<T>>],
    cells: impl IntoIterator<Item = &'a Cell>,
) -> Sheet<Lookup<'a, T>> {
    let knobs: BTreeSet<&str> =
        cells.into_iter().flat_map(|cell| cell.knobs.keys()).map(String::as_str).collect();
    let always = columns.iter().map(|(name, _, of)| ((*name).to_owned(), Lookup::Always(*of)));
    let knobs = knobs.into_iter().map(|name| (format!("knob.{name}"), Lookup::Knob(name)));
    Sheet::new(always.chain([("commit".to_owned(), Lookup::Commit)]).chain(knobs))
}

/// Writes `rows`, each with the cell that has its knobs. The knobs of all `cells` have columns.
///
/// # Errors
/// Returns the errors of `out`.
pub(crate) fn write<'a, T: 'a>(
    mut out: impl io::Write,
    lines: Lines,
    commit: &str,
    columns: &[Always<Of<T>>],
    cells: impl IntoIterator<Item = &'a Cell>,
    rows: impl IntoIterator<Item = (&'a T, &'a Cell)>,
) -> io::Result<()> {
    let sheet = sheet(columns, cells);
    if lines == Lines::Csv {
        out.write_all(sheet.header(|_| false).as_bytes())?;
    }
    for row in rows {
        let value = |lookup: &Lookup<T>| lookup.value(row, commit);
        let line = if lines == Lines::Csv { sheet.csv(value, |_| false) } else { sheet.json(value) };
        out.write_all(line.as_bytes())?;
    }
    out.flush()
}

/// Returns the names and the values of the columns that [`write`] would write.
pub(crate) fn columns<'a, T: 'a>(
    commit: &str,
    columns: &[Always<Of<T>>],
    cells: impl IntoIterator<Item = &'a Cell>,
    rows: impl IntoIterator<Item = (&'a T, &'a Cell)>,
) -> Vec<(String, Vec<Value>)> {
    let rows: Vec<_> = rows.into_iter().collect();
    let values = |lookup: &Lookup<T>| rows.iter().map(|row| lookup.value(*row, commit)).collect();
    sheet(columns, cells).columns().map(|(name, lookup)| (name.to_owned(), values(lookup))).collect()
}
