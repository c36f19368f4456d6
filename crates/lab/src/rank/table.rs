//! The ranking for the terminal.

use std::fmt::Write;

use super::ranking::NEAR;
use super::{Hindsight, RankedCell, Ranking, Section, Standing, Worst};
use crate::contender::cut;
use crate::results::number::{significant, significant_or_dash};
use crate::results::{BOUNDS, Ratio};

impl Ranking {
    /// Returns the standings, then the cells: a matrix of the worst ratio of each mechanism in each cell, or every figure if
    /// there is only one cell.
    pub fn table(&self) -> String {
        if self.standings.is_empty() || self.cells.is_empty() {
            return self.without_cells();
        }
        let mut text = self.standings_table();
        text += &match self.cells.as_slice() {
            [cell] => self.figures(cell),
            _ => self.matrix(),
        };
        text += &self.without_cells();
        text
    }

    fn standings_table(&self) -> String {
        let width = self.longest();
        let mut text = format!(
            "    {:width$}  {:>6}  {:>11}  {:>6}  {:>9}  {:>9}  worst in\n",
            "", "worst", "95 %", "mean", "cells", "figures"
        );
        text += &("─".repeat(width + 66) + "\n");
        let mut was_undithered = false;
        for (place, standing) in self.standings.iter().enumerate() {
            let is_undithered = standing.section == Section::Undithered;
            if is_undithered && !was_undithered {
                let _ = writeln!(text, "    {}", Section::Undithered.heading());
            }
            was_undithered = is_undithered;
            text += &self.standing(place, standing, width);
        }
        let hindsight = self.hindsight_rows();
        if !hindsight.is_empty() {
            let _ = writeln!(text, "    {}", Hindsight::HEADING);
            text.extend(hindsight.iter().map(|it| self.in_hindsight(it, width)));
        }
        let near = (NEAR - 1.0) * 100.0;
        let _ = write!(
            text,
            "\nHow many times worse each figure is than that of the best published mechanism that dithers, cell by cell and seed by\n\
             seed; 1 is as good. mean: geometric, over the figures of a cell and then over {} cells. cells, figures: those that are\n\
             at most {near:.0} % worse, in cells all figures. Means count more than 100 times as 100. * made here, ° another crate's or TCP: not what others are measured by.\n",
            self.cells.len()
        );
        if !hindsight.is_empty() {
            text += HINDSIGHT;
        }
        text
    }

    fn in_hindsight(&self, hindsight: &Hindsight, width: usize) -> String {
        let name = format!("    {:width$}", hindsight.name());
        let cells = format!("{}/{}", hindsight.cells_near, self.cells.len());
        self.line(&name, Some(hindsight.worst), hindsight.geometric_mean, [&cells, ""])
    }

    /// Returns the cell and the figure of a worst ratio.
    fn place(&self, worst: &Worst) -> String {
        let cell = &self.cells[worst.cell];
        let place = format!("{}: {}", cell.name, cell.figures[worst.figure].metric.title());
        place.trim_start_matches(": ").to_owned()
    }

    fn standing(&self, place: usize, standing: &Standing, width: usize) -> String {
        let name = format!("{:>2}  {:width$}", place + 1, self.name(standing));
        let cells = format!("{}/{}", standing.cells_near, standing.cells);
        let figures = format!("{}/{}", standing.figures_near, standing.figures);
        self.line(&name, standing.worst, standing.geometric_mean, [&cells, &figures])
    }

    /// Returns a line of the standings; `near` is the cells and the figures that are near the best.
    fn line(&self, name: &str, worst: Option<Worst>, mean: f64, near: [&str; 2]) -> String {
        let ratio = worst.map_or(Ratio { mean: f64::NAN, interval: None }, |worst| worst.ratio);
        let (_, interval) = ratio.words();
        let (ratio, mean, [cells, figures]) = (times(ratio.mean), times(mean), near);
        let place = worst.map_or_else(String::new, |worst| self.place(&worst));
        format!("{name}  {ratio:>6}  {interval:>11}  {mean:>6}  {cells:>9}  {figures:>9}  {place}\n")
    }

    /// Returns a row for each cell, with the worst ratio of each mechanism in a column of its number.
    fn matrix(&self) -> String {
        let hindsight = self.hindsight();
        let mut text = String::from("\n    ");
        for place in 1..=self.standings.len() {
            let _ = write!(text, "{place:>5}");
        }
        text += "    H\n";
        text += &("─".repeat(9 + 5 * self.standings.len()) + "\n");
        for (number, cell) in self.cells.iter().enumerate() {
            let _ = write!(text, "{:>3} ", number + 1);
            for standing in &self.standings {
                let worst = self.worst_in(number, standing.mechanism);
                let _ = write!(
                    text,
                    "{:>5}",
                    worst.map_or_else(|| "–".to_owned(), |worst| times(worst.ratio.mean))
                );
            }
            let best = hindsight.first().map_or(f64::NAN, |it| it.choices[number].worst.ratio.mean);
            let _ = writeln!(text, "{:>5}  {}", times(best), cell.name);
        }
        text + "\nThe worst ratio of all figures of a cell. Columns are the mechanisms by their numbers above, and H hindsight: the smallest of\n\
                those that are published and dither.\n"
    }

    /// Returns every figure of a single cell, each with its ratio.
    fn figures(&self, cell: &RankedCell) -> String {
        let width = self.longest();
        let header = |it: &super::RankedFigure| {
            format!("{} {}", it.metric.title(), it.metric.unit()).trim_end().to_owned()
        };
        let mut columns: Vec<Vec<String>> = cell
            .figures
            .iter()
            .map(|figure| {
                let row = |standing: &Standing| {
                    let place = standing.mechanism;
                    let value = significant_or_dash(figure.values[place], figure.metric.digits());
                    format!("{value} ({})", times(figure.ratios[place].mean))
                };
                let bound = figure.bound.map(|bound| bound.value);
                let bound = bound
                    .map_or_else(String::new, |value| significant(value, figure.metric.digits()) + "       ");
                [header(figure)].into_iter().chain(self.standings.iter().map(row)).chain([bound]).collect()
            })
            .collect();
        for column in &mut columns {
            let width = column.iter().map(|text| text.chars().count()).max().unwrap_or(0);
            for text in column {
                *text = format!("{text:>width$}");
            }
        }
        let line =
            |row: usize| columns.iter().map(|column| column[row].as_str()).collect::<Vec<_>>().join("   ");
        let mut text = format!("\n    {:width$}  {}\n", "", line(0));
        text += &("─".repeat(width + 6 + line(0).chars().count()) + "\n");
        for (place, standing) in self.standings.iter().enumerate() {
            let name = self.name(standing);
            let _ = writeln!(text, "{:>2}  {name:width$}  {}", place + 1, line(place + 1));
        }
        let has_bounds = cell.figures.iter().any(|figure| figure.bound.is_some());
        let mut note = "\nIn brackets: how many times worse than the best.\n".to_owned();
        if has_bounds {
            let _ = writeln!(text, "    {:width$}  {}", "bound", line(self.standings.len() + 1).trim_end());
            note = format!("{note}{BOUNDS}\n");
        }
        text + &note
    }

    fn without_cells(&self) -> String {
        match self.left_out.as_slice() {
            [] => String::new(),
            cells => {
                format!("\nNo published mechanism that dithers achieved anything in: {}.\n", cells.join("; "))
            }
        }
    }

    fn name(&self, standing: &Standing) -> String {
        let mark = match standing.section {
            Section::Coapace => "*",
            Section::Other => "°",
            Section::Published | Section::Undithered => "",
        };
        cut(&self.mechanisms[standing.mechanism]) + mark
    }

    /// Returns the width of the names.
    fn longest(&self) -> usize {
        let names = self.standings.iter().map(|standing| self.name(standing).chars().count());
        names.chain(["hindsight*".len()]).max().unwrap_or(0)
    }
}

const HINDSIGHT: &str = "hindsight: the least that any choice of a mechanism for each cell reaches, in each column, among the published that dither (* and those\n\
    made here). A mechanism's distance from it is its regret, the price of not knowing the network.\n";

/// Returns a ratio with two decimals, or with fewer if it is large; a dash for NaN.
pub fn times(ratio: f64) -> String {
    match ratio {
        _ if ratio.is_nan() => "–".to_owned(),
        _ if ratio.is_infinite() => "∞".to_owned(),
        _ if ratio < 9.995 => format!("{ratio:.2}"),
        _ if ratio < 9_999.5 => significant(ratio, if ratio < 99.95 { 3 } else { 0 }),
        _ => format!("{ratio:.0e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::ranking::tests::ranking;
    use super::*;

    #[test]
    fn ratios_are_short() {
        for (ratio, text) in [
            (1.0, "1.00"),
            (1.054, "1.05"),
            (12.34, "12.3"),
            (123.4, "123"),
            (f64::INFINITY, "∞"),
            (f64::NAN, "–"),
            (2e7, "2e7"),
        ] {
            assert_eq!(times(ratio), text);
        }
    }

    #[test]
    fn several_cells_are_a_matrix_and_the_undithered_stand_below() {
        let ranking = ranking(&["linux-rto", "default", "cocoa"], 2);
        let text = ranking.table();
        let lines: Vec<&str> = text.lines().collect();
        let place = |start: &str| lines.iter().position(|line| line.trim_start().starts_with(start)).unwrap();
        assert!(
            place("Without dither") + 1 == place("3  linux-rto") && place("2  ") < place("Without dither"),
            "{text}"
        );
        let row = lines.iter().find(|line| line.ends_with("  12 clients")).unwrap();
        let cells: Vec<&str> = row.split_whitespace().collect();
        let worst = |standing: &Standing| times(ranking.worst_in(1, standing.mechanism).unwrap().ratio.mean);
        let mut expected: Vec<String> = ranking.standings.iter().map(worst).collect();
        let least =
            expected[..2].iter().min_by(|a, b| a.parse::<f64>().unwrap().total_cmp(&b.parse().unwrap()));
        expected.push(least.unwrap().clone());
        assert_eq!(cells[1..5], expected, "{text}");
        let hindsight = lines.iter().filter(|line| line.starts_with("    hindsight")).collect::<Vec<_>>();
        let [line] = hindsight[..] else { panic!("one, for nothing was made here: {text}") };
        assert!(line.contains(&times(ranking.hindsight()[0].worst.ratio.mean)), "{text}");
    }

    #[test]
    fn one_cell_has_every_figure() {
        let mut ranking = ranking(&["default", "cocoa"], 2);
        ranking.cells.truncate(1);
        ranking.standings.iter_mut().for_each(|standing| standing.worst = None);
        let text = ranking.table();
        assert!(!text.contains("hindsight"), "the first mechanism is it: {text}");
        for title in [
            "median FCT s",
            "mean FCT s",
            "90 % quantile of the FCT s",
            "FCT of the last client s",
            "transmissions per exchange",
        ] {
            assert!(text.contains(title), "{title}: {text}");
        }
        let best = &ranking.cells[0].figures[0];
        let value = significant_or_dash(best.values[best.best], 4);
        assert!(text.contains(&format!("{value} (1.00)")), "{text}");
    }

    #[test]
    fn nothing_to_rank_is_said() {
        assert_eq!(Ranking::default().table(), "");
        let ranking = Ranking { left_out: vec!["a".into(), "b".into()], ..Ranking::default() };
        assert!(ranking.table().ends_with("achieved anything in: a; b.\n"));
    }
}
