//! The tables of results.

use arrow_schema::ArrowError;
use coapace_lab::results::{CellResult, Lines, Rows};

use crate::{Table, Values};

/// Returns a row for each cell, its runs pooled: the columns of `coapace run --format csv`.
///
/// # Errors
/// Fails if Arrow does.
pub fn cells(results: &[CellResult]) -> Result<Table, ArrowError> {
    rows(results, false, env!("CARGO_PKG_VERSION"))
}

/// Returns a row for each run: the columns of `coapace run --each --format csv`.
///
/// # Errors
/// Fails if Arrow does.
pub fn runs(results: &[CellResult]) -> Result<Table, ArrowError> {
    rows(results, true, env!("CARGO_PKG_VERSION"))
}

/// Returns the table of [`cells`], or that of [`runs`] if there is a row for `each` run. Its column `commit` has this `commit`.
///
/// # Errors
/// Fails if Arrow does.
pub fn rows(results: &[CellResult], each: bool, commit: &str) -> Result<Table, ArrowError> {
    let rows = Rows::new(results, Lines::Csv, each, commit);
    Table::new(rows.columns(results).into_iter().map(|(name, values)| (name, Values::of(values))).collect())
}

/// Returns a row for each client of each run: its cell's place in [`cells`], `mechanism`, `seed`, `client` from 0, `fct_s`
/// (unknown for a client that gave up), and its `exchanges`.
///
/// # Errors
/// Fails if Arrow does.
pub fn clients(results: &[CellResult]) -> Result<Table, ArrowError> {
    let mut places = Vec::new();
    let (mut mechanism, mut seed, mut client) = (Vec::new(), Vec::new(), Vec::new());
    let (mut fct, mut exchanges) = (Vec::new(), Vec::new());
    for (place, cell) in results.iter().enumerate() {
        for run in &cell.runs {
            for (number, completed) in run.exchanges.iter().enumerate() {
                places.push(i64::try_from(place).ok());
                mechanism.push(Some(cell.cell.mechanism.clone()));
                seed.push(i64::try_from(run.seed).ok());
                client.push(i64::try_from(number).ok());
                fct.push(run.fct_s.get(number).copied().flatten());
                exchanges.push(Some(i64::from(*completed)));
            }
        }
    }
    Table::new(vec![
        ("cell".to_owned(), Values::Count(places)),
        ("mechanism".to_owned(), Values::Text(mechanism)),
        ("seed".to_owned(), Values::Count(seed)),
        ("client".to_owned(), Values::Count(client)),
        ("fct_s".to_owned(), Values::Number(fct)),
        ("exchanges".to_owned(), Values::Count(exchanges)),
    ])
}
