//! The scores of all variants, for the terminal.

use std::fmt::Write;

use super::{Score, Sensitivity};

impl Sensitivity {
    /// Returns a line for the chosen values and one for each other value alone, then a matrix of the figures that are met under
    /// each pair, and one of the orders that hold.
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
        text += "\nEach condition stands with its chosen value, and the other values below. figures: published figures that are met,\n\
                 within the factor of their table or 5 %. orders: orders and ratios that hold; +n more are inconclusive.\n";
        let all: [(&str, usize, fn(Score) -> usize); 2] = [
            ("figures met", self.base.figures.1, |score| score.figures.0),
            ("orders that hold", self.base.orders.1, |score| score.orders.0),
        ];
        for (title, all, of) in all.into_iter().filter(|(_, all, _)| *all > 0) {
            let _ = write!(text, "\n{title}, of {all}, in pairs\n{}", self.matrix(of));
        }
        text
    }

    /// Returns a matrix of one count, a row and a numbered column for each value.
    fn matrix(&self, of: fn(Score) -> usize) -> String {
        let header: String = (1..=self.values.len()).map(|number| format!("{number:>4}")).collect();
        let mut text = format!("    {header}\n");
        for row in 0..self.values.len() {
            let cell = |column| {
                self.score(row, column).map_or_else(|| "   ·".to_owned(), |score| format!("{:>4}", of(score)))
            };
            let cells: String = (0..self.values.len()).map(cell).collect();
            let _ = writeln!(text, "{:>2}  {cells}  {}", row + 1, self.values[row].value);
        }
        text
    }
}

/// The name of the first line.
const AS_CHOSEN: &str = "all as chosen";

/// Returns both counts of a score.
fn scores(Score { figures, orders, inconclusive }: Score) -> String {
    let count = |(met, all): (usize, usize)| if all == 0 { "–".to_owned() } else { format!("{met}/{all}") };
    let more = if inconclusive == 0 { String::new() } else { format!(" +{inconclusive}") };
    format!("{:>9}  {:>9}{more}", count(figures), count(orders))
}
