//! Figures of a paper's tables beside the measured ones, for the terminal.

use comfy_table::{CellAlignment, ContentArrangement, Table};

use super::conditions::Conditions;
use super::number::significant_or_dash;
use super::table::STYLE;
use super::{CellResult, Judged, Nearness, judged, nearness};

/// The tables that `results` have figures of: every figure, then every table; nothing if there are none.
pub(super) fn table(results: &[CellResult]) -> String {
    let judged = judged(results);
    if judged.is_empty() {
        return String::new();
    }
    let tables: String = nearness(&judged).iter().map(|table| table.words() + "\n").collect();
    format!("\n{}\n\n{FIGURES}\n\n{tables}", figures(&judged))
}

const FIGURES: &str = "Factor: the larger of published and measured over the smaller; beyond is more than what is asked of the table.";

fn figures(judged: &[Judged]) -> String {
    let conditions = Conditions::of(judged.iter().map(|one| &one.result.cell));
    let mut table = Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Disabled);
    let header = ["mechanism", "figure", "published", "measured", "factor", "", "table"];
    table.set_header(conditions.varying.iter().map(String::as_str).chain(header));
    for one in judged {
        let [published, measured] =
            [Some(one.figure.published), one.figure.measured].map(|figure| significant_or_dash(figure, 4));
        let cells = [
            one.result.cell.mechanism.clone(),
            one.figure.metric.axis(),
            published,
            measured,
            significant_or_dash(one.figure.factor(), 3),
            one.word().to_owned(),
            one.table.title.clone(),
        ];
        table.add_row(conditions.values(&one.result.cell).into_iter().chain(cells));
    }
    let numbers = conditions.varying.len() + 2..conditions.varying.len() + 5;
    for (_, column) in table.column_iter_mut().enumerate().filter(|(place, _)| numbers.contains(place)) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

impl Nearness<'_> {
    /// A line: how many figures are within the factor, the largest that was met, and what differs.
    pub fn words(&self) -> String {
        let Self { table, figures, within, largest } = self;
        let largest = largest.map_or_else(
            || "not all measured".to_owned(),
            |largest| format!("largest {}", significant_or_dash(Some(largest), 3)),
        );
        let why = if table.why.is_empty() { String::new() } else { format!("; {}", table.why) };
        format!("{}: {within} of {figures} within a factor of {}, {largest}{why}", table.title, table.factor)
    }
}

#[cfg(test)]
mod tests {
    use super::super::paper_table::tests::printed;
    use super::super::terminal_table;
    use super::*;

    #[test]
    fn figures_of_tables_stand_below_the_results_and_the_tables_below_them() {
        let mut far = printed("Table 2: throughput", 1.5, 10.0, &[25.0]);
        far.cell.clients = 180;
        let results = [printed("Table 2: throughput", 1.5, 10.0, &[11.0]), far];
        let text = terminal_table(&results, Some(200));
        let (results, figures) = text.split_once(" figure ").unwrap();
        assert!(!results.contains("published") && !results.contains("error"), "{text}");
        let rows: Vec<Vec<&str>> = figures.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[2][..2], ["180", "a"]);
        assert_eq!(rows[2][5..9], ["10.00", "25.00", "2.50", "beyond"]);
        assert_eq!(rows[3][5..9], ["10.00", "11.00", "1.10", "within"]);
        let line = "Table 2: throughput: 1 of 2 within a factor of 1.5, largest 2.50; other radios";
        assert!(text.lines().any(|it| it == line), "{text}");
    }

    #[test]
    fn a_table_with_a_figure_that_was_not_measured_says_so() {
        let results = [printed("Table 1", 2.0, 10.0, &[])];
        let line = nearness(&judged(&results))[0].words();
        assert_eq!(line, "Table 1: 0 of 1 within a factor of 2, not all measured; other radios");
    }
}
