//! The mechanisms under the same conditions, as a block of a table.

use std::fmt::Write;

use super::column::{PLACE, Shows, TableColumn, TableColumns};
use super::places::{Place, places};
use super::style::{Look, bar};
use crate::rank::Section;
use crate::results::conditions::Conditions;
use crate::results::{Better, CellResult, Metric};

/// A block of a table: a heading, and the rows of the mechanisms under the same conditions.
pub(super) struct TableBlock<'a> {
    heading: String,
    rows: Vec<TableRow<'a>>,
    /// Whether the rows are divided into sections.
    has_sections: bool,
}

struct TableRow<'a> {
    cell: &'a CellResult,
    section: Section,
    place: Option<Place>,
}

impl<'a> TableBlock<'a> {
    /// Makes a block of rows from the results of several mechanisms under the same conditions.
    pub(super) fn of(metric: Metric, conditions: &Conditions, cells: &[&'a CellResult]) -> Self {
        let row = |(cell, place): (&&'a CellResult, Option<Place>)| TableRow {
            cell,
            section: Section::of(&cell.cell.mechanism),
            place,
        };
        // Places come in the sequence of the cells, so rows are sorted only afterwards.
        let mut rows: Vec<TableRow> = cells.iter().zip(places(metric, cells)).map(row).collect();
        // Sorted ascending: larger values that are better are negated, and unknown values come last.
        let value = |row: &TableRow| match metric.estimate_in_all(&row.cell.runs) {
            Some(estimate) if metric.better() == Better::Higher => -estimate.mean,
            Some(estimate) => estimate.mean,
            None => f64::INFINITY,
        };
        rows.sort_by(|a, b| a.section.cmp(&b.section).then(value(a).total_cmp(&value(b))));
        // Rows are sorted by section, so it is enough to compare neighbours.
        let has_sections = rows.windows(2).any(|pair| pair[0].section != pair[1].section);
        let heading = cells.first().map_or_else(String::new, |cell| conditions.describe(&cell.cell));
        Self { heading, rows, has_sections }
    }

    /// Makes a block of cells in their sequence, without ranks.
    pub(super) fn plain(cells: Vec<&'a CellResult>) -> Self {
        let row = |cell: &'a CellResult| TableRow { cell, section: Section::Published, place: None };
        Self { heading: String::new(), rows: cells.into_iter().map(row).collect(), has_sections: false }
    }

    pub(super) fn has_places(&self) -> bool {
        self.rows.iter().any(|row| row.place.is_some())
    }

    /// Returns whether any of the columns has a bound: a value that no mechanism can beat under these conditions.
    pub(super) fn has_bounds(&self, columns: &TableColumns) -> bool {
        self.rows
            // All rows of a block have the same conditions, and so the same bounds.
            .first()
            .is_some_and(|row| columns.all.iter().any(|column| columns.bound(column, row.cell).is_some()))
    }

    /// Returns the lines of the block: the heading, the header, and the rows.
    pub(super) fn text(&self, metric: Metric, columns: &TableColumns, look: Look) -> String {
        let mut text = String::new();
        if !self.heading.is_empty() {
            let _ = writeln!(text, "{}", super::wrapped(&self.heading, look.width));
        }
        let _ = writeln!(text, "{}", columns.line(|column| column.padded(&column.header)));
        let _ = writeln!(text, "{}", "─".repeat(columns.width()));
        // A bar is a share of the largest value in the block.
        let value = |row: &TableRow| metric.estimate_in_all(&row.cell.runs).map_or(0.0, |it| it.mean);
        let largest = self.rows.iter().map(value).fold(0.0, f64::max);
        // Rows are sorted by section, so a heading comes where the section changes.
        let mut section = None;
        for row in &self.rows {
            if self.has_sections && section != Some(row.section) {
                section = Some(row.section);
                let indent = if columns.all.iter().any(TableColumn::has_places) { PLACE } else { 2 };
                let _ = writeln!(text, "{}{}", " ".repeat(indent), row.section.heading());
            }
            let share = if largest > 0.0 { value(row) / largest } else { 0.0 };
            // Columns have cells of all blocks, in the order of the results.
            let number = columns.row_of(row.cell);
            let cell = |column: &TableColumn| {
                let own = &column.cells[number];
                let (text, is_coloured) = match column.shows {
                    Shows::Bar => (bar(share, column.width), true),
                    // Ranks are by the main metric alone, so only its column has their colours.
                    Shows::Metric(own_metric) => (own.clone(), own_metric == metric),
                    Shows::Mechanism => (named(row.place, column, own), true),
                    Shows::Condition | Shows::Published => (own.clone(), false),
                };
                let text = column.padded(&text);
                match row.place.filter(|_| is_coloured) {
                    Some(place) => look.coloured(place.rank, &text),
                    None => text,
                }
            };
            let _ = writeln!(text, "{}", columns.line(cell));
        }
        // The bound is the last row, so that it does not read like a mechanism with a place.
        if self.has_bounds(columns) {
            let bound = |column: &TableColumn| {
                column.padded(&match column.shows {
                    Shows::Mechanism => named(None, column, "bound"),
                    _ => {
                        self.rows.first().and_then(|row| columns.bound(column, row.cell)).unwrap_or_default()
                    }
                })
            };
            let _ = writeln!(text, "{}", columns.line(bound));
        }
        text
    }
}

/// Returns a name with its rank before it, if the column has ranks.
fn named(place: Option<Place>, column: &TableColumn, name: &str) -> String {
    let place = place.map(Place::text).unwrap_or_default();
    if column.has_places() { format!("{place:>4} {name}") } else { name.to_owned() }
}
