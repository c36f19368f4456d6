//! Results as a table for the terminal.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

use super::CellResult;
use super::conditions::Conditions;
use super::number::{count, percent, significant, significant_or_dash};

/// One rule under the header is all the lines there are.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// An aligned table of `results`, one row a cell. What all cells have in common stands once, above the table.
///
/// The table fits into `width` columns; without a width, into the terminal; without a terminal, it is as wide as it
/// needs to be. It has no colours.
pub fn terminal_table(results: &[CellResult], width: Option<u16>) -> String {
    if results.is_empty() {
        return "no results\n".into();
    }
    let conditions = Conditions::of(results.iter().map(|result| &result.cell));
    let gave_up = results.iter().any(|result| result.runs.iter().any(|run| run.given_up > 0));
    let published = results.iter().any(|result| result.published.is_some());

    let mut header: Vec<&str> = conditions.varying.iter().map(String::as_str).collect();
    header.push("mechanism");
    let words = header.len();
    header.extend(["median FCT (s)", "10 % (s)", "90 % (s)"]);
    if published {
        header.extend(["published (s)", "error"]);
    }
    if gave_up {
        header.push("gave up /run");
    }
    header.extend(["retrans. /client", "needless /client", "drops /run", "goodput (kbit/s)", "Jain"]);

    let mut table = Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Dynamic).set_header(header);
    if let Some(width) = width {
        table.set_width(width);
    }
    for result in results {
        let summary = result.summary();
        let mut row = conditions.values(&result.cell);
        row.push(result.cell.mechanism.clone());
        row.extend(
            [summary.fct.median, summary.fct.p10, summary.fct.p90].map(|fct| significant_or_dash(fct, 4)),
        );
        if published {
            row.push(significant_or_dash(result.published.as_ref().map(|p| p.median_fct_s), 4));
            row.push(result.relative_error().map_or_else(|| "–".into(), percent));
        }
        if gave_up {
            row.push(count(summary.given_up));
        }
        row.extend([
            count(summary.retransmissions_per_client),
            count(summary.unnecessary_per_client),
            count(summary.drops),
            significant(summary.goodput_bps / 1000.0, 3),
            summary.jain.map_or_else(|| "–".into(), |jain| format!("{jain:.3}")),
        ]);
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(words) {
        column.set_cell_alignment(CellAlignment::Right);
    }

    let common = conditions.describe_common();
    let gap = if common.is_empty() { "" } else { "\n\n" };
    format!("{common}{gap}{}\n", table.trim_fmt())
}

#[cfg(test)]
mod tests {
    use super::super::cell_result::tests::sample;
    use super::*;

    fn two() -> [CellResult; 2] {
        let mut other = sample();
        other.cell.mechanism = "default".into();
        other.published = None;
        [sample(), other]
    }

    #[test]
    fn what_cells_share_stands_above_the_table() {
        let text = terminal_table(&two(), Some(200));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[0],
            "bottleneck · continuous workload · 2 clients · buffer 2500\u{a0}B · link errors none · delay_ms 200"
        );
        assert!(lines[2].trim_start().starts_with("mechanism"), "{text}");
        assert_eq!(lines.len(), 6, "{text}");
        assert!(
            lines[4].contains("cocoa:preset=draft-3,weak=1/4") && lines[4].contains("−5.6\u{a0}%"),
            "{text}"
        );
        assert!(lines[5].contains("default") && lines[5].contains('–'), "{text}");
    }

    #[test]
    fn a_narrow_terminal_makes_a_narrow_table() {
        let text = terminal_table(&two(), Some(80));
        let table = text.lines().skip(2);
        assert!(table.clone().count() > 4, "{text}");
        assert!(table.into_iter().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn no_results_are_said_to_be_none() {
        assert_eq!(terminal_table(&[], Some(80)), "no results\n");
    }
}
