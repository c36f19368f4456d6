//! Results as a table for the terminal.

mod flows;

use std::collections::BTreeSet;

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

use super::conditions::Conditions;
use super::number::{count, percent, significant, significant_or_dash};
use super::{CellResult, Estimate, Metric, Published, Summary, Traffic, paper_tables, verdicts};

/// One rule under the header is all the lines there are.
pub(super) const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// A column: its header, its cells, and how dear it is. Where the table is too wide, the cheapest go first.
struct Column {
    header: String,
    cells: Vec<String>,
    worth: u8,
    is_number: bool,
}

/// Never left out.
const ESSENTIAL: u8 = u8::MAX;

/// An aligned table of `results`, one row a cell. What all cells have in common stands once, above the table, and what
/// the columns are, below it.
///
/// The table fits into `width` columns; without a width, into the terminal; without a terminal, it is as wide as it
/// needs to be. Where it is too wide, columns are left out and named below; no cell is broken. It has no colours.
pub fn terminal_table(results: &[CellResult], width: Option<u16>) -> String {
    if results.is_empty() {
        return "no results\n".into();
    }
    let conditions = Conditions::of(results.iter().map(|result| &result.cell));
    let mut columns = columns(results, &conditions);

    let mut table = Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Disabled);
    let bound = width.or_else(|| table.width()).map_or(usize::MAX, usize::from);
    let mut left_out = Vec::new();
    while columns.iter().map(Column::width).sum::<usize>() > bound
        && let Some(cheapest) = (0..columns.len()).min_by_key(|&place| columns[place].worth)
        && columns[cheapest].worth < ESSENTIAL
    {
        left_out.push(columns.remove(cheapest).header);
    }
    table.set_header(columns.iter().map(|column| column.header.as_str()));
    for row in 0..results.len() {
        table.add_row(columns.iter().map(|column| column.cells[row].as_str()));
    }
    for (place, column) in table.column_iter_mut().enumerate() {
        if columns[place].is_number {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }

    let common = conditions.describe_common();
    let gap = if common.is_empty() { "" } else { "\n\n" };
    let missing = match left_out.as_slice() {
        [] => String::new(),
        headers => format!("Left out for want of width: {}.\n", headers.join(", ")),
    };
    let (legend, flows, populations) = (legend(results), flows::table(results), populations(results));
    let (figures, orders) = (paper_tables::table(results), verdicts::table(results));
    format!("{common}{gap}{}\n\n{legend}\n{missing}{flows}{populations}{figures}{orders}", table.trim_fmt())
}

/// What each mechanism of the mixes among `results` had; nothing if there are none.
fn populations(results: &[CellResult]) -> String {
    const HEADER: [&str; 7] =
        ["mix", "of which", "clients", "share", "of a fair one", "retrans.", "exchange time"];
    let mut table = Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(HEADER.into_iter().chain(["Jain"]));
    for result in results.iter().filter(|result| result.is_mix()) {
        for own in result.summary().populations {
            table.add_row([
                result.cell.mechanism.clone(),
                own.mechanism,
                own.clients.to_string(),
                own.share.map_or_else(|| "–".into(), |share| format!("{:.1}\u{a0}%", share * 100.0)),
                own.relative_share.map_or_else(|| "–".into(), |share| format!("{share:.2}")),
                count(own.retransmissions_per_client),
                significant_or_dash(own.exchange_time_s, 3),
                own.jain.map_or_else(|| "–".into(), |jain| format!("{jain:.3}")),
            ]);
        }
    }
    if table.is_empty() {
        return String::new();
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!(
        "\n{}\n\nShare of the throughput; 1 of a fair one is that of the clients; exchange time in seconds, mean; \
         Jain among its own.\n",
        table.trim_fmt()
    )
}

fn legend(results: &[CellResult]) -> String {
    let fct = if results.iter().any(CellResult::has_fct) { "FCT in seconds; " } else { "" };
    let throughput =
        if results.iter().all(CellResult::has_fct) { "" } else { "throughput in exchanges a second; " };
    let flows = if results.iter().any(|result| result.runs.iter().any(|run| !run.flows.is_empty())) {
        "PDR, carried load in kbit/s, delay, settling time and RTO in seconds: means of the runs, ± 95 % confidence; "
    } else {
        ""
    };
    format!(
        "{fct}{throughput}{flows}retransmissions and needless ones a client; drops a run; goodput in kbit/s."
    )
}

impl Column {
    /// With a blank on either side.
    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| cell.chars().count()).max();
        self.header.chars().count().max(cells.unwrap_or(0)) + 2
    }
}

fn columns(results: &[CellResult], conditions: &Conditions) -> Vec<Column> {
    let summaries: Vec<_> = results.iter().map(CellResult::summary).collect();
    let mut columns = Vec::new();
    for (place, name) in conditions.varying.iter().enumerate() {
        let cells = results.iter().map(|result| conditions.values(&result.cell)[place].clone()).collect();
        columns.push(Column { header: name.clone(), cells, worth: ESSENTIAL, is_number: false });
    }
    let cells = results.iter().map(|result| result.cell.mechanism.clone()).collect();
    columns.push(Column { header: "mechanism".into(), cells, worth: ESSENTIAL, is_number: false });

    let mut number = |header: &str, worth, cell: &dyn Fn(&CellResult, &Summary) -> String| {
        let cells = results.iter().zip(&summaries).map(|(result, summary)| cell(result, summary)).collect();
        columns.push(Column { header: header.into(), cells, worth, is_number: true });
    };
    if results.iter().any(CellResult::has_fct) {
        number("median FCT", ESSENTIAL, &|_, summary| significant_or_dash(summary.fct.median, 4));
        number("10 %", 3, &|_, summary| significant_or_dash(summary.fct.p10, 4));
        number("90 %", 4, &|_, summary| significant_or_dash(summary.fct.p90, 4));
    }
    if !results.iter().all(CellResult::has_fct) {
        number("throughput", ESSENTIAL, &|_, summary| significant(summary.throughput, 4));
    }
    let has_flows = |result: &CellResult| result.runs.iter().any(|run| !run.flows.is_empty());
    if results.iter().any(has_flows) {
        let traffic = |of: fn(&Traffic) -> Option<Estimate>, factor: f64, digits: i32| {
            move |_: &CellResult, summary: &Summary| {
                estimated(summary.traffic.as_ref().and_then(of), factor, digits)
            }
        };
        number("PDR %", 14, &traffic(|traffic| traffic.pdr, 100.0, 3));
        number("carried", 13, &traffic(|traffic| traffic.carried_load_bps, 1e-3, 3));
        number("delay", 12, &traffic(|traffic| traffic.delay_s, 1.0, 3));
        if results.iter().any(|result| result.runs.iter().any(|run| run.settling.is_some())) {
            number("settling", 11, &traffic(|traffic| traffic.settling_time_s, 1.0, 3));
        }
        number("initial RTO", 10, &traffic(|traffic| traffic.initial_rto_s, 1.0, 3));
        if results.iter().any(|result| result.runs.iter().any(|run| run.mesh.is_some())) {
            number("µJ/B", 4, &traffic(|traffic| traffic.energy_per_byte_uj, 1.0, 3));
            number("frames", 1, &traffic(|traffic| traffic.frames, 1.0, 4));
            number("lost in mesh", 2, &traffic(|traffic| traffic.mesh_drops, 1.0, 3));
        }
    }
    let published = published(results);
    for &metric in &published {
        let name = if published.len() == 1 { String::new() } else { format!(" {}", metric.title()) };
        number(&format!("published{name}"), 8, &|result, _| {
            significant_or_dash(result.published.as_ref().and_then(|published| published.get(metric)), 4)
        });
    }
    if !published.is_empty() {
        let header = if published.len() == 1 { "error" } else { "largest error" };
        let plain =
            |result: &CellResult| result.published.as_ref().is_some_and(|it| it.plain().next().is_some());
        number(header, 9, &|result, _| {
            let error = if plain(result) { result.relative_error() } else { None };
            error.map_or_else(|| "–".into(), percent)
        });
    }
    if results.iter().any(|result| result.runs.iter().any(|run| run.given_up > 0)) {
        number("gave up", 7, &|_, summary| count(summary.given_up));
    }
    number("retrans.", 6, &|_, summary| count(summary.retransmissions_per_client));
    number("needless", 5, &|_, summary| count(summary.unnecessary_per_client));
    number("drops", 2, &|_, summary| count(summary.drops));
    number("goodput", 1, &|_, summary| significant(summary.goodput_bps / 1000.0, 3));
    number("Jain", 0, &|_, summary| summary.jain.map_or_else(|| "–".into(), |jain| format!("{jain:.3}")));
    columns
}

/// A mean with its confidence interval.
fn estimated(estimate: Option<Estimate>, factor: f64, digits: i32) -> String {
    let Some(Estimate { mean, half_width }) = estimate else { return "–".into() };
    let mean = significant(mean * factor, digits);
    match half_width {
        Some(half_width) => format!("{mean} ±{}", significant(half_width * factor, 2)),
        None => mean,
    }
}

/// The metrics that figures were published of which stand in no table of a paper: those are listed below.
fn published(results: &[CellResult]) -> Vec<Metric> {
    let published = results.iter().filter_map(|result| result.published.as_ref());
    let metrics: BTreeSet<Metric> = published.flat_map(Published::plain).collect();
    metrics.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::super::cell_result::tests::sample;
    use super::super::population::tests::mixed;
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
        assert_eq!(lines.len(), 8, "{text}");
        assert!(text.contains("Jain") && !text.contains("Left out"), "{text}");
        assert!(
            lines[4].contains("cocoa:preset=draft-3,weak=1/4") && lines[4].contains("−5.6\u{a0}%"),
            "{text}"
        );
        assert!(lines[5].contains("default") && lines[5].contains('–'), "{text}");
    }

    #[test]
    fn a_narrow_terminal_leaves_columns_out_and_says_so_but_breaks_no_cell() {
        let text = terminal_table(&two(), Some(80));
        assert!(text.lines().skip(2).take(4).all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("cocoa:preset=draft-3,weak=1/4") && text.contains("published"), "{text}");
        assert!(text.contains("Left out for want of width: Jain, goodput"), "{text}");

        let text = terminal_table(&two(), Some(10));
        assert!(text.contains("cocoa:preset=draft-3,weak=1/4") && text.contains("median FCT"), "{text}");
    }

    #[test]
    fn where_nobody_has_an_end_to_reach_the_throughput_stands_in_the_place_of_the_fct() {
        let mut endless = two();
        for run in endless.iter_mut().flat_map(|result| &mut result.runs) {
            run.fct_s.clear();
        }
        let text = terminal_table(&endless, Some(80));
        assert!(text.contains("throughput") && text.contains("2.000"), "{text}");
        assert!(!text.contains("FCT"), "{text}");
    }

    #[test]
    fn the_populations_of_a_mix_stand_below_the_table() {
        let mut mix = sample();
        mix.cell.mechanism = "a+b".into();
        mix.runs = vec![mixed(1), mixed(2)];
        let text = terminal_table(&[mix, sample()], Some(80));
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert!(
            rows.contains(&vec!["a+b", "a", "2", "75.0", "%", "1.12", "10.0", "0.500", "1.000"]),
            "{text}"
        );
        assert!(rows.contains(&vec!["a+b", "b", "1", "25.0", "%", "0.75", "0", "0.500", "1.000"]), "{text}");
        assert!(!terminal_table(&two(), Some(80)).contains("Share of"), "there is none without a mix");
    }

    #[test]
    fn no_results_are_said_to_be_none() {
        assert_eq!(terminal_table(&[], Some(80)), "no results\n");
    }
}
