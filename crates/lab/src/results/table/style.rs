//! The look of tables in the terminal.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

use crate::results::number::significant;
use crate::results::{Estimate, Metric};

/// Returns an empty table. Its only line is the rule under the header, and no cell is broken.
pub(super) fn empty() -> Table {
    const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));
    let mut table = Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Disabled);
    table
}

/// Returns the table as text. Columns for which `is_number` holds are aligned to the right.
pub(super) fn aligned(mut table: Table, is_number: impl Fn(usize) -> bool) -> String {
    for (_, column) in table.column_iter_mut().enumerate().filter(|(place, _)| is_number(*place)) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

/// Returns a value with its confidence interval.
pub(super) fn estimated(metric: Metric, estimate: Option<Estimate>) -> String {
    let Some(Estimate { mean, half_width }) = estimate else { return "–".into() };
    let mean = significant(mean, metric.digits());
    match half_width.filter(|_| metric.interval_name().is_some()) {
        Some(half_width) => format!("{mean} ±{}", significant(half_width, 2)),
        None => mean,
    }
}
