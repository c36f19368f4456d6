//! Rows with fixed columns, the commit and the knobs.

use std::collections::BTreeSet;
use std::io;

use super::lines::Lines;
use crate::results::Cell;
use crate::results::sheet::{Always, Sheet, Value};

/// A function that returns the value of a column.
pub(crate) type Of<T> = fn(&T) -> Value;

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
    enum Lookup<'a, T> {
        Always(Of<T>),
        Knob(&'a str),
        Commit,
    }
    let knobs: BTreeSet<&str> =
        cells.into_iter().flat_map(|cell| cell.knobs.keys()).map(String::as_str).collect();
    let always = columns.iter().map(|(name, _, of)| ((*name).to_owned(), Lookup::Always(*of)));
    let knobs = knobs.into_iter().map(|name| (format!("knob.{name}"), Lookup::Knob(name)));
    let sheet = Sheet::new(always.chain([("commit".to_owned(), Lookup::Commit)]).chain(knobs));
    if lines == Lines::Csv {
        out.write_all(sheet.header(|_| false).as_bytes())?;
    }
    for (row, cell) in rows {
        let value = |lookup: &Lookup<T>| match lookup {
            Lookup::Always(of) => of(row),
            Lookup::Knob(name) => {
                cell.knobs.get(*name).map_or(Value::Nothing, |text| Value::number_or_text(text))
            }
            Lookup::Commit => commit.into(),
        };
        let line = if lines == Lines::Csv { sheet.csv(value, |_| false) } else { sheet.json(value) };
        out.write_all(line.as_bytes())?;
    }
    out.flush()
}
