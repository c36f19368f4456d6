//! Values of a paper's tables beside the measured ones, in the terminal.

use super::style::{Look, aligned, wrapped};
use crate::number::significant_or_dash;
use crate::output::page::WITNESS;
use crate::papers::{Judged, References, judged, nearness, witnesses};
use crate::results::CellResult;
use crate::results::conditions::Conditions;

/// Returns the published values of `results` that are judged by the factor of a paper's table, then a line for each
/// such table; empty if there are none.
pub(super) fn table(results: &[CellResult], references: &References, look: Look) -> String {
    let judged = judged(results, references);
    if judged.is_empty() {
        return String::new();
    }
    let tables = nearness(&judged).into_iter().map(|table| table.words()).chain(witnesses(&judged));
    let tables: String = tables.map(|line| wrapped(&line, look.width) + "\n").collect();
    format!("\n{}\n\n{}\n\n{tables}", values(&judged), wrapped(VALUES, look.width))
}

const VALUES: &str =
    "Factor: the larger of published and measured over the smaller; beyond is more than the table's factor.";

fn values(judged: &[Judged]) -> String {
    let conditions = Conditions::of(judged.iter().map(|one| &one.result.cell));
    let has_witness = judged.iter().any(|one| one.witness.is_some());
    let [witness, by_witness] = WITNESS.map(|name| has_witness.then_some(name));
    let header = ["mechanism", "metric", "published"].into_iter().chain(witness);
    let header = header.chain(["measured", "factor", ""]).chain(by_witness).chain(["table"]);
    let row = |one: &Judged| {
        let [witness, by_witness] = one.witness_words().map(|words| has_witness.then_some(words));
        let [published, measured] =
            [Some(one.value.published), one.value.measured].map(|value| significant_or_dash(value, 4));
        let cells = [one.result.cell.label().to_owned(), one.value.metric.axis(), published];
        let judged = [measured, significant_or_dash(one.value.factor(), 3), one.word().to_owned()];
        let cells = cells.into_iter().chain(witness).chain(judged).chain(by_witness);
        conditions
            .values(&one.result.cell)
            .into_iter()
            .chain(cells)
            .chain([one.table.title.clone()])
            .collect()
    };
    let first = conditions.varying.len() + 2;
    // Published, the witness if there is one, measured and factor are aligned to the right.
    let numbers = first..first + 3 + usize::from(has_witness);
    aligned(conditions.header(header), judged.iter().map(row).collect(), |place| numbers.contains(&place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Look, terminal_table};
    use crate::papers::nearness::tests::printed;
    use crate::papers::references::tests::parted;

    #[test]
    fn published_values_are_printed_below_the_results_and_counts_for_each_published_table_last() {
        let mut far = printed("Table 2: throughput", 1.5, 10.0, &[25.0]);
        far.0.cell.clients = 180;
        let (results, references) = parted([printed("Table 2: throughput", 1.5, 10.0, &[11.0]), far]);
        let text = terminal_table(&results, &references, Look { width: 200, colours: false });
        let (results, values) = text.split_once(" metric ").unwrap();
        assert!(!results.contains("published") && !results.contains("error"), "{text}");
        let rows: Vec<Vec<&str>> = values.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[2][..2], ["180", "a"]);
        assert_eq!(rows[2][5..9], ["10.00", "25.00", "2.50", "beyond"]);
        assert_eq!(rows[3][5..9], ["10.00", "11.00", "1.10", "within"]);
        let line = "Table 2: throughput: 1 of 2 within a factor of 1.5, largest 2.50; other radios";
        assert!(text.lines().any(|it| it == line), "{text}");
    }

    #[test]
    fn the_line_of_a_published_table_says_if_a_value_was_not_measured() {
        let (results, references) = parted([printed("Table 1", 2.0, 10.0, &[])]);
        let line = nearness(&judged(&results, &references))[0].words();
        assert_eq!(line, "Table 1: 0 of 1 within a factor of 2, not all measured; other radios");
    }
}
