//! The scores of a paper under all variants of its unstated conditions, as a table for the terminal.

use std::fmt::Write;

use crate::papers::{Sensitivity, SensitivityScore};

impl Sensitivity {
    /// Returns the scores as text: a line for the chosen values, a line for each other value, and two matrices with an
    /// entry for each pair of values: how many published values agree, and how many rankings hold.
    pub fn table(&self) -> String {
        let lengths = self.values.iter().map(|it| it.value.chars().count());
        let width = lengths.max().unwrap_or(0).max(AS_CHOSEN.len());
        let mut text =
            format!("    {:width$}  {:>9}  {:>9}\n{}\n", "", "figures", "orders", "─".repeat(width + 26));
        let _ = writeln!(text, "    {AS_CHOSEN:width$}  {}", scores(self.base));
        for (condition, chosen) in &self.chosen {
            let _ = writeln!(text, "{condition}: {chosen}");
            for (number, value) in self.values.iter().enumerate().filter(|(_, it)| it.condition == *condition)
            {
                let score = self.score(number, number).map(scores).unwrap_or_default();
                let _ = writeln!(text, "{:>2}  {:width$}  {score}", number + 1, value.value);
            }
        }
        text += "\nEach condition has its chosen value beside it, and the other values below. values: published values that are met,\n\
                 within the factor of their table or 5 %. orders: orders and ratios that hold; +n more are inconclusive.\n";
        for (title, of) in SensitivityScore::COUNTS {
            let (_, all) = of(&self.base);
            if all > 0 {
                let _ = write!(text, "\n{title}, of {all}, in pairs\n{}", self.matrix(of));
            }
        }
        text
    }

    /// Returns a matrix as text: a row and a numbered column for each value, and in each entry the first of the two
    /// counts that `of` takes from the score of both values.
    fn matrix(&self, of: fn(&SensitivityScore) -> (usize, usize)) -> String {
        let mut text = " ".repeat(4);
        for number in 1..=self.values.len() {
            let _ = write!(text, "{number:>4}");
        }
        text.push('\n');
        for (row, value) in self.values.iter().enumerate() {
            let _ = write!(text, "{:>2}  ", row + 1);
            for column in 0..self.values.len() {
                // Two values of one condition exclude each other, so they have no score.
                let cell =
                    self.score(row, column).map_or_else(|| "·".to_owned(), |score| of(&score).0.to_string());
                let _ = write!(text, "{cell:>4}");
            }
            let _ = writeln!(text, "  {}", value.value);
        }
        text
    }
}

/// The name of the line for the chosen values.
const AS_CHOSEN: &str = "all as chosen";

/// Returns a score as text: how many values are confirmed, how many rankings hold, and how many are inconclusive.
fn scores(SensitivityScore { values, orders, inconclusive }: SensitivityScore) -> String {
    let count = |(met, all): (usize, usize)| if all == 0 { "–".to_owned() } else { format!("{met}/{all}") };
    let more = if inconclusive == 0 { String::new() } else { format!(" +{inconclusive}") };
    format!("{:>9}  {:>9}{more}", count(values), count(orders))
}
