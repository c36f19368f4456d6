//! What each flow had, where there are several.

use comfy_table::{CellAlignment, ContentArrangement, Table};

use super::{STYLE, count, estimated, significant_or_dash};
use crate::results::CellResult;

/// A table of the flows of all `results`; nothing if no cell has more than one.
pub(super) fn table(results: &[CellResult]) -> String {
    const HEADER: [&str; 9] =
        ["mechanism", "flow", "clients", "offered", "dropped", "PDR %", "carried", "delay", "90 %"];
    let mut table = Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(HEADER);
    for result in results {
        let summary = result.summary();
        let runs = summary.runs.max(1) as f64;
        let flows = summary.traffic.map(|traffic| traffic.flows).unwrap_or_default();
        for flow in flows.iter().filter(|_| flows.len() > 1) {
            table.add_row([
                result.cell.mechanism.clone(),
                flow.name.clone(),
                flow.sum.clients.to_string(),
                count(flow.sum.offered as f64 / runs),
                count(flow.sum.dropped as f64 / runs),
                estimated(flow.pdr, 100.0, 3),
                estimated(flow.carried_load_bps, 1e-3, 3),
                estimated(flow.delay_s, 1.0, 3),
                significant_or_dash(flow.sum.delays.quantile_s(0.9), 3),
            ]);
        }
    }
    if table.is_empty() {
        return String::new();
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!("\n{}\n\nMessages offered and dropped by the application a run.\n", table.trim_fmt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::terminal_table;
    use crate::results::traffic::tests::flowing;

    #[test]
    fn flows_stand_below_the_table_where_there_are_several() {
        let mut result = CellResult { runs: vec![flowing(1, 80), flowing(2, 60)], ..CellResult::default() };
        result.cell.mechanism = "cocoa".into();
        let text = terminal_table(std::slice::from_ref(&result), Some(200));
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        let flow = |name| rows.iter().find(|row| row.get(1) == Some(&name)).cloned().unwrap_or_default();
        assert_eq!(flow("a")[..6], ["cocoa", "a", "4", "120", "20.0", "70.0"], "{text}");
        assert!(text.contains("PDR %") && text.contains("settling") && text.contains("µJ/B"), "{text}");
        result.runs.iter_mut().for_each(|run| run.flows.truncate(1));
        assert_eq!(table(&[result]), "");
    }
}
