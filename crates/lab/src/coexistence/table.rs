//! The matrix of pairs as a table in the terminal.

use std::fmt::Write;

use super::{Encounter, Matrix, STARVED};
use crate::number::{count, significant, significant_or_dash};
use crate::output::aligned;
use crate::output::sheet::cut;
use crate::results::conditions::Conditions;

impl Matrix {
    /// Returns a table of relative shares in per cent, with a row and a numbered column for each mechanism and a column
    /// for each mechanism alone, followed by the [sentences](Self::sentences). A table of 21 mechanisms is 115 columns
    /// wide.
    pub fn table(&self) -> String {
        let conditions = Conditions::of(self.alone.iter().map(|result| &result.cell)).describe_common();
        // A name with many parameters would push the matrix out of the terminal.
        let names: Vec<String> = self.mechanisms.iter().map(|name| cut(name)).collect();
        let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let percent = |share: Option<f64>| {
            share.map_or_else(|| "–".to_owned(), |share| format!("{:.0}", share * 100.0))
        };

        let mut text = format!("{conditions}\n\n{:longest$}    ", "");
        for column in 1..=names.len() {
            let _ = write!(text, "{column:>4}");
        }
        text.push_str("    mean  alone\n");
        // The line is as wide as the header above it.
        let width = text.lines().last().map_or(0, |line| line.chars().count());
        text += &("─".repeat(width) + "\n");
        // Computed once: the means of all rows come from it.
        let standings = self.standings();
        for (row, name) in names.iter().enumerate() {
            let _ = write!(text, "{:>2} {name:<longest$} ", row + 1);
            for column in 0..names.len() {
                let encounter = self.encounter(row, column);
                let mark = if encounter.is_starved() { "*" } else { " " };
                let share =
                    // A mechanism alone has everything, which is not a share.
                    if row == column { "·".to_owned() } else { percent(encounter.own.relative_share) };
                let _ = write!(text, "{share:>3}{mark}");
            }
            let mean =
                standings.iter().find(|standing| standing.mechanism == row).map(|standing| standing.mean);
            // The diagonal is a mechanism among its own kind.
            let alone = self.encounter(row, row);
            let alone = match alone.own.transfers {
                // Exchanges a second, or for transfers kbit/s, as the legend has it.
                None => format!("{:.1}", alone.together()),
                Some(_) => significant(alone.own.rate_per_client / 1e3, 3),
            };
            let _ = writeln!(text, "    {:>4}  {alone:>5}", percent(mean));
        }
        if self.is_of_transfers() {
            let _ = write!(
                text,
                "\nHalf the clients that transfer have the mechanism of the row, the others the column's. Goodput of the row's half, in per\n\
                 cent of a fair share: 200 is everything. mean: over the columns. alone: kbit/s of a client where all have the\n\
                 mechanism. * less than {:.0} % of this beside the mechanism of the column.\n{}\n",
                STARVED * 100.0,
                self.transfers(&names)
            );
        } else {
            text += &legend();
        }
        for sentence in self.sentences() {
            let _ = writeln!(text, "{sentence}");
        }
        text
    }

    /// Returns a table with a row for each mechanism beside each other one: its goodput, this goodput divided by its
    /// goodput alone, the time of a transfer, and blocks sent again.
    fn transfers(&self, names: &[String]) -> String {
        const HEADER: [&str; 7] = ["mechanism", "beside", "kbit/s", "kept", "transfer", "again", "failed"];
        let pairs = self.encounters().filter(|(row, column, it)| row != column && it.pair.runs > 0);
        let row = |(row, column, it): (usize, usize, &Encounter)| {
            let kept = it.kept.map_or_else(|| "–".to_owned(), |kept| format!("{:.0} %", kept * 100.0));
            vec![
                names[row].clone(),
                names[column].clone(),
                significant(it.own.rate_per_client / 1e3, 3),
                kept,
                significant_or_dash(it.own.time_s, 3),
                count(it.own.again_per_client),
                count(it.own.transfers.map_or(0.0, |own| own.failed)),
            ]
        };
        // The first two columns are names.
        let table = aligned(HEADER, pairs.map(row).collect(), |place| place >= 2);
        format!(
            "\n{table}\n\nkbit/s: goodput of a client; kept: of its goodput alone; transfer: mean time in seconds; again: blocks of a client that\n\
             were sent again; failed: transfers in a run.\n"
        )
    }
}

/// Returns the legend of a matrix whose clients make single exchanges, not transfers.
fn legend() -> String {
    format!(
        "\nHalf the clients have the mechanism of the row, half the column's. Throughput of the row's half, in per cent\n\
             of a fair share: 200 is everything. mean: over the columns. alone: exchanges a second where all clients have the\n\
             mechanism. * less than {:.0} % of what a client of the row has there.\n\n",
        STARVED * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::matrix;

    #[test]
    fn columns_of_the_matrix_are_numbered_and_the_diagonal_is_a_dot() {
        let matrix = matrix(&["default", "cocoa:preset=libcoap-2019,vbf_on=initial", "fasor"], 2);
        let text = matrix.table();
        let lines: Vec<Vec<char>> = text.lines().map(|line| line.chars().collect()).collect();
        let head = lines.iter().position(|line| line.iter().collect::<String>().contains("mean")).unwrap();
        let place = |number: char| lines[head].iter().position(|&c| c == number).unwrap();
        for row in 0..3 {
            let line = &lines[head + 2 + row];
            for (column, number) in ['1', '2', '3'].into_iter().enumerate() {
                // A number ends in the fourth place of its column and a share in the third, because a mark may follow it.
                let last = line[place(number) - 1];
                assert_eq!(last == '·', row == column, "{text}");
                assert!(row == column || last.is_ascii_digit(), "{text}");
            }
        }
        assert!(text.contains("cocoa:preset=libcoap-2019,v…"), "{text}");
        assert!(text.contains("Takes the most: "), "{text}");
        let shares =
            |row: usize, column: usize| matrix.encounter(row, column).own.relative_share.unwrap() * 100.0;
        assert!(text.contains(&format!("{:.0} ", shares(0, 1))), "{text}");
    }

    #[test]
    fn the_matrix_marks_starved_mechanisms() {
        let mut matrix = matrix(&["default", "cocoa"], 2);
        assert!(
            !matrix.table().contains("* \n") && matrix.table().matches('*').count() == 1,
            "only the legend has a star"
        );
        matrix.encounters[1].kept = Some(0.3);
        assert_eq!(matrix.table().matches('*').count(), 2);
    }
}
