//! The look of tables in the terminal.

use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

use crate::results::number::{half_interval, significant};
use crate::results::{Estimate, Metric};

/// Returns a table as text. Its only line is the rule under the header, and no cell is broken. Columns for which `is_number`
/// holds are aligned to the right.
pub(super) fn aligned<H: Into<Cell>>(
    header: impl IntoIterator<Item = H>,
    rows: Vec<Vec<String>>,
    is_number: impl Fn(usize) -> bool,
) -> String {
    const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));
    let mut table = Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.into_iter().map(Into::into).collect::<Vec<Cell>>());
    table.add_rows(rows);
    for (_, column) in table.column_iter_mut().enumerate().filter(|(place, _)| is_number(*place)) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

/// Returns a value with its confidence interval.
pub(super) fn estimated(metric: Metric, estimate: Option<Estimate>) -> String {
    let Some(Estimate { mean, half_width }) = estimate else { return "–".into() };
    let digits = metric.digits();
    let shown = significant(mean, digits);
    match half_width.filter(|_| metric.interval_name().is_some()) {
        Some(half) => format!("{shown} ±{}", half_interval(half, mean, digits)),
        None => shown,
    }
}
