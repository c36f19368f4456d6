//! Figures of a paper's tables beside the measured ones, for the terminal.

use super::style::{Look, aligned, wrapped};
use crate::number::significant_or_dash;
use crate::papers::{Judged, References, judged, nearness};
use crate::results::CellResult;
use crate::results::conditions::Conditions;

/// Returns the figures of papers' tables among `results`, then the tables; empty if there are none.
pub(super) fn table(results: &[CellResult], references: &References, look: Look) -> String {
    let judged = judged(results, references);
    if judged.is_empty() {
        return String::new();
    }
    let tables: String =
        nearness(&judged).iter().map(|table| wrapped(&table.words(), look.width) + "\n").collect();
    format!("\n{}\n\n{}\n\n{tables}", figures(&judged), wrapped(FIGURES, look.width))
}

const FIGURES: &str = "Factor: the larger of published and measured over the smaller; beyond is more than what is asked of the table.";

fn figures(judged: &[Judged]) -> String {
    let conditions = Conditions::of(judged.iter().map(|one| &one.result.cell));
    let header = ["mechanism", "figure", "published", "measured", "factor", "", "table"];
    let row = |one: &Judged| {
        let [published, measured] =
            [Some(one.figure.published), one.figure.measured].map(|figure| significant_or_dash(figure, 4));
        let cells = [
            one.result.cell.label().to_owned(),
            one.figure.metric.axis(),
            published,
            measured,
            significant_or_dash(one.figure.factor(), 3),
            one.word().to_owned(),
            one.table.title.clone(),
        ];
        conditions.values(&one.result.cell).into_iter().chain(cells).collect()
    };
    let numbers = conditions.varying.len() + 2..conditions.varying.len() + 5;
    aligned(conditions.header(header), judged.iter().map(row).collect(), |place| numbers.contains(&place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Look, terminal_table};
    use crate::papers::nearness::tests::printed;
    use crate::papers::references::tests::parted;

    #[test]
    fn figures_of_tables_stand_below_the_results_and_the_tables_below_them() {
        let mut far = printed("Table 2: throughput", 1.5, 10.0, &[25.0]);
        far.0.cell.clients = 180;
        let (results, references) = parted([printed("Table 2: throughput", 1.5, 10.0, &[11.0]), far]);
        let text = terminal_table(&results, &references, Look { width: 200, colours: false });
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
        let (results, references) = parted([printed("Table 1", 2.0, 10.0, &[])]);
        let line = nearness(&judged(&results, &references))[0].words();
        assert_eq!(line, "Table 1: 0 of 1 within a factor of 2, not all measured; other radios");
    }
}
