//! The ranking for the terminal.

use std::fmt::Write;

use super::ranking::NEAR;
use super::{Hindsight, RankedCell, RankedMetric, Ranking, Section, Standing, Worst};
use crate::number::{significant, significant_or_dash};
use crate::output::sheet::cut;
use crate::output::{Look, wrapped};
use crate::results::{BOUNDS, PairedRatio};

/// The texts of a row after the name, and where its worst ratio occurs.
type RowTexts = ([String; 5], String);

impl Ranking {
    /// Returns the standings, then the cells: a matrix of the worst ratio of each mechanism in each cell, or every metric if
    /// there is only one cell. Columns that do not fit are left out and listed; a matrix that does not fit is split.
    pub fn table(&self, look: Look) -> String {
        if self.standings.is_empty() || self.cells.is_empty() {
            return self.without_cells(look);
        }
        let mut text = self.standings_table(look);
        text += &match self.cells.as_slice() {
            [cell] => self.metrics(cell, look),
            _ => self.matrix(look),
        };
        text += &self.without_cells(look);
        text
    }

    /// Returns a sentence with the number of ratios whose 95 % interval is above 1, and the number expected by chance; `None`
    /// without intervals.
    pub fn chance(&self) -> Option<String> {
        let metrics = self.cells.iter().flat_map(|cell| &cell.metrics);
        let rivals = metrics.flat_map(|ranked| {
            ranked.ratios.iter().enumerate().filter(|(own, _)| *own != ranked.best).map(|(_, ratio)| ratio)
        });
        let intervals: Vec<(f64, f64)> = rivals.filter_map(|ratio| ratio.interval).collect();
        let above = intervals.iter().filter(|(low, _)| *low > 1.0).count();
        // An interval of 95 % lies above the true ratio in one of forty cases.
        let expected = intervals.len() as f64 / 40.0;
        (!intervals.is_empty()).then(|| {
            format!(
                "The whole 95 % interval is above 1 for {above} of {} ratios. If no mechanism differed, it would be for {expected:.0} by \
                 chance: each interval is for one comparison, not corrected for their number.",
                intervals.len()
            )
        })
    }

    fn standings_table(&self, look: Look) -> String {
        const HEADER: [&str; 5] = ["worst", "95 %", "mean", "cells", "metrics"];
        const WIDTHS: [usize; 5] = [6, 11, 6, 7, 7];
        let width = self.longest();
        let hindsight = self.hindsight_rows();
        let own: Vec<RowTexts> = self.standings.iter().map(|standing| self.standing(standing)).collect();
        let best: Vec<RowTexts> = hindsight.iter().map(|it| self.in_hindsight(it)).collect();
        // The place of the worst ratio is the widest column, and its names are never cut.
        let places = own.iter().chain(&best).map(|(_, place)| place.chars().count()).max().unwrap_or(0);
        // Four columns for the number, and two blanks before each column.
        let total = |columns: usize| 4 + width + WIDTHS[..columns].iter().map(|own| own + 2).sum::<usize>();
        // A narrow terminal loses the cell of the worst ratio first, and then columns from the right.
        let has_places = total(5) + 2 + places <= look.width;
        // The worst ratio and its interval always stay.
        let columns = (2..=5).rev().find(|columns| total(*columns) <= look.width).unwrap_or(2);
        let line = |name: &str, (texts, place): &RowTexts| {
            let texts = texts[..columns].iter().zip(WIDTHS).map(|(text, own)| format!("  {text:>own$}"));
            let place = if has_places { format!("  {place}") } else { String::new() };
            format!("{name}{}{place}", texts.collect::<String>()).trim_end().to_owned() + "\n"
        };
        let header = (HEADER.map(str::to_owned), "worst in".to_owned());
        let mut text = line(&format!("    {:width$}", ""), &header);
        text += &("─".repeat(total(columns)) + "\n");
        // Standings are sorted by section, so its heading comes before its first mechanism.
        let mut was_undithered = false;
        for (number, (standing, row)) in self.standings.iter().zip(&own).enumerate() {
            let is_undithered = standing.section == Section::Undithered;
            if is_undithered && !was_undithered {
                let _ = writeln!(text, "    {}", Section::Undithered.heading());
            }
            was_undithered = is_undithered;
            text += &line(&format!("{:>2}  {:width$}", number + 1, self.name(standing)), row);
        }
        if !hindsight.is_empty() {
            let _ = writeln!(text, "    {}", Hindsight::HEADING);
        }
        for (hindsight, row) in hindsight.iter().zip(&best) {
            text += &line(&format!("    {:width$}", hindsight.name()), row);
        }
        let near = (NEAR - 1.0) * 100.0;
        let mut note = format!(
            "Ratios to the best published mechanism with random timeouts, cell by cell and seed by seed: 1 is as good, 2 is twice as slow or half as \
             much. worst: the greatest whose 95 % interval is above 1. mean: geometric, over the metrics of a cell and then over {} cells; more \
             than 100 counts as 100. cells, metrics: at most {near:.0} % worse, in cells every metric. * made here, ° another crate's or TCP: \
             not a baseline.",
            self.cells.len()
        );
        if let Some(chance) = self.chance() {
            note = format!("{note}\n{chance}");
        }
        if !hindsight.is_empty() {
            note = format!("{note}\n{HINDSIGHT}");
        }
        // A reader must not think that a hidden column does not exist.
        let mut missing = HEADER[columns..].to_vec();
        missing.extend((!has_places).then_some("worst in"));
        if !missing.is_empty() {
            note = format!("{note}\nNot shown here: {}. A wider terminal has them.", missing.join(", "));
        }
        format!("{text}\n{}\n", wrapped(&note, look.width))
    }

    fn in_hindsight(&self, hindsight: &Hindsight) -> RowTexts {
        let cells = format!("{}/{}", hindsight.cells_near, self.cells.len());
        self.row(Some(hindsight.worst), hindsight.geometric_mean, [cells, String::new()])
    }

    /// Returns the cell and the metric of a worst ratio.
    fn place(&self, worst: &Worst) -> String {
        let cell = &self.cells[worst.cell];
        let place = format!("{}: {}", cell.name, cell.metrics[worst.metric].metric.title());
        place.trim_start_matches(": ").to_owned()
    }

    fn standing(&self, standing: &Standing) -> RowTexts {
        let cells = format!("{}/{}", standing.cells_near, standing.cells);
        let metrics = format!("{}/{}", standing.metrics_near, standing.metrics);
        self.row(standing.worst, standing.geometric_mean, [cells, metrics])
    }

    /// Returns a row of the standings; `near` is the text on cells and metrics near the best.
    fn row(&self, worst: Option<Worst>, mean: f64, near: [String; 2]) -> RowTexts {
        // NaN is printed as a dash.
        let ratio = worst.map_or(PairedRatio { mean: f64::NAN, interval: None }, |worst| worst.ratio);
        let (_, interval) = ratio.words();
        let [cells, metrics] = near;
        let place = worst.map_or_else(String::new, |worst| self.place(&worst));
        ([times(ratio.mean), interval, times(mean), cells, metrics], place)
    }

    /// Returns a row for each cell, with the worst ratio of each mechanism in a column of its number.
    fn matrix(&self, look: Look) -> String {
        // The first oracle chooses among published mechanisms alone.
        let hindsight = self.hindsight();
        let best = |number: usize| {
            times(hindsight.first().map_or(f64::NAN, |it| it.choices[number].worst.ratio.mean))
        };
        let own = |number: usize, standing: &Standing| {
            self.worst_in(number, standing.mechanism)
                .map_or_else(|| "–".to_owned(), |worst| times(worst.ratio.mean))
        };
        // The columns: a heading, and a text for each cell.
        let mut columns: Vec<Vec<String>> = vec![];
        for (place, standing) in self.standings.iter().enumerate() {
            let texts = (0..self.cells.len()).map(|number| own(number, standing));
            columns.push([(place + 1).to_string()].into_iter().chain(texts).collect());
        }
        // The column of hindsight is the last, because it is not a mechanism.
        columns.push(["H".to_owned()].into_iter().chain((0..self.cells.len()).map(best)).collect());
        let names = self.cells.iter().map(|cell| cell.name.chars().count()).max().unwrap_or(0);
        // If the names of cells do not fit beside the columns, they come before the table, and the columns in parts.
        let is_whole = 4 + 5 * columns.len() + 2 + names <= look.width;
        // At least one column a part, however narrow the terminal is.
        let most = if is_whole { columns.len() } else { (look.width.saturating_sub(4) / 5).max(1) };
        let mut text = String::new();
        if !is_whole {
            text += "\n";
            for (number, cell) in self.cells.iter().enumerate() {
                let _ =
                    writeln!(text, "{}", wrapped(&format!("{:>3} {}", number + 1, cell.name), look.width));
            }
        }
        for part in columns.chunks(most) {
            let line = |row: usize| {
                part.iter().map(|column| format!("{:>5}", column[row])).collect::<Vec<_>>().concat()
            };
            let _ = writeln!(text, "\n    {}\n{}", line(0), "─".repeat(4 + 5 * part.len()));
            for (number, cell) in self.cells.iter().enumerate() {
                let name = if is_whole { format!("  {}", cell.name) } else { String::new() };
                let _ = writeln!(text, "{:>3} {}{name}", number + 1, line(number + 1));
            }
        }
        let note = "The worst ratio of all metrics of a cell. Columns are the mechanisms by their numbers above, and H hindsight: the \
                    smallest of those that are published and dither.";
        format!("{text}\n{}\n", wrapped(note, look.width))
    }

    /// Returns every metric of a single cell, each with its ratio. If the terminal is narrow, metrics are left out from the
    /// second on.
    fn metrics(&self, cell: &RankedCell, look: Look) -> String {
        let mut shown: Vec<&RankedMetric> = cell.metrics.iter().collect();
        let mut missing = Vec::new();
        let mut text = self.metrics_of(&shown);
        // The first metric stays, because it is the headline of the cell.
        while text.lines().any(|line| line.chars().count() > look.width) && shown.len() > 1 {
            missing.push(shown.remove(1).metric.title());
            text = self.metrics_of(&shown);
        }
        let mut note = "In brackets: how many times worse than the best.".to_owned();
        if shown.iter().any(|ranked| ranked.bound.is_some()) {
            note = format!("{note}\n{BOUNDS}");
        }
        if !missing.is_empty() {
            note = format!("{note}\nNot shown here: {}. A wider terminal has them.", missing.join(", "));
        }
        format!("{text}\n{}\n", wrapped(&note, look.width))
    }

    fn metrics_of(&self, metrics: &[&RankedMetric]) -> String {
        let width = self.longest();
        let column = |ranked: &&RankedMetric| -> Vec<String> {
            let metric = ranked.metric;
            let header = format!("{} {}", metric.title(), metric.unit()).trim_end().to_owned();
            let row = |standing: &Standing| {
                let place = standing.mechanism;
                let value = significant_or_dash(ranked.values[place], metric.digits());
                format!("{value} ({})", times(ranked.ratios[place].mean))
            };
            // A bound has no ratio: spaces in place of it keep the digits below each other.
            let bound = ranked
                .bound
                .map_or_else(String::new, |bound| significant(bound.value, metric.digits()) + "       ");
            // All texts of a column are made first, because its width is the widest of them.
            let texts: Vec<String> =
                [header].into_iter().chain(self.standings.iter().map(row)).chain([bound]).collect();
            let widest = texts.iter().map(|text| text.chars().count()).max().unwrap_or(0);
            texts.into_iter().map(|text| format!("{text:>widest$}")).collect()
        };
        let columns: Vec<Vec<String>> = metrics.iter().map(column).collect();
        let line =
            |row: usize| columns.iter().map(|column| column[row].as_str()).collect::<Vec<_>>().join("   ");
        // Four characters are for the number of a mechanism, which the other tables use.
        let mut text = format!("\n    {:width$}  {}\n", "", line(0));
        text += &("─".repeat(width + 6 + line(0).chars().count()) + "\n");
        for (place, standing) in self.standings.iter().enumerate() {
            let name = self.name(standing);
            let _ = writeln!(text, "{:>2}  {name:width$}  {}", place + 1, line(place + 1));
        }
        if metrics.iter().any(|ranked| ranked.bound.is_some()) {
            let _ = writeln!(text, "    {:width$}  {}", "bound", line(self.standings.len() + 1).trim_end());
        }
        text
    }

    fn without_cells(&self, look: Look) -> String {
        match self.left_out.as_slice() {
            [] => String::new(),
            cells => {
                let text = format!(
                    "No published mechanism with random timeouts has a result in: {}.",
                    cells.join("; ")
                );
                format!("\n{}\n", wrapped(&text, look.width))
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

    /// Returns the width of the longest name.
    fn longest(&self) -> usize {
        let names = self.standings.iter().map(|standing| self.name(standing).chars().count());
        names.chain(["hindsight*".len()]).max().unwrap_or(0)
    }
}

const HINDSIGHT: &str = "hindsight: an oracle that chooses a mechanism for each cell, in each column the least that any choice of published \
    mechanisms with dither reaches (* and those made here). The distance of a mechanism from it is its regret, the price of not knowing the \
    network.";

/// Returns a ratio with two decimals, or with fewer if it is large; a dash for NaN.
pub fn times(ratio: f64) -> String {
    match ratio {
        _ if ratio.is_nan() => "–".to_owned(),
        _ if ratio.is_infinite() => "∞".to_owned(),
        // 9.995 would be printed as 10.00, with a digit more than the others.
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
    fn ratios_are_printed_with_few_digits() {
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
    fn a_ranking_of_several_cells_is_a_matrix_with_mechanisms_without_dither_below() {
        let ranking = ranking(&["linux-rto", "default", "cocoa"], 2);
        let text = ranking.table(Look::PLAIN);
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
    fn a_ranking_of_one_cell_shows_every_metric() {
        let mut ranking = ranking(&["default", "cocoa"], 2);
        ranking.cells.truncate(1);
        ranking.standings.iter_mut().for_each(|standing| standing.worst = None);
        let text = ranking.table(Look::PLAIN);
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
        let best = &ranking.cells[0].metrics[0];
        let value = significant_or_dash(best.values[best.best], 4);
        assert!(text.contains(&format!("{value} (1.00)")), "{text}");
    }

    #[test]
    fn no_line_of_a_ranking_is_wider_than_the_terminal() {
        let mut ranking =
            ranking(&["linux-rto", "default", "cocoa", "ebb", "fasor-token:preset=libcoap-2019"], 2);
        for cells in [2, 1] {
            ranking.cells.truncate(cells);
            for width in [80, 100, 120, 200] {
                let text = ranking.table(Look { width, colours: false });
                let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
                assert!(widest <= width, "{widest} at {width}: {text}");
                assert!(text.contains("transmissions per exchange") || cells == 2, "{text}");
            }
            ranking.standings.iter_mut().for_each(|standing| standing.worst = None);
        }
    }

    #[test]
    fn a_ranking_says_how_many_ratios_differ_from_1_by_chance() {
        let ranking = ranking(&["default", "cocoa", "fasor", "linux-rto"], 2);
        // Two cells of five metrics, and three rivals of the best in each.
        let text = ranking.chance().unwrap();
        assert!(
            text.contains(" of 30 ratios. If no mechanism differed, it would be for 1 by chance"),
            "{text}"
        );
        assert!(ranking.table(Look::PLAIN).contains(&wrapped(&text, usize::MAX)), "{text}");
        assert_eq!(Ranking::default().chance(), None);
    }

    #[test]
    fn an_empty_ranking_says_that_it_has_no_cells() {
        assert_eq!(Ranking::default().table(Look::PLAIN), "");
        let ranking = Ranking { left_out: vec!["a".into(), "b".into()], ..Ranking::default() };
        assert!(ranking.table(Look::PLAIN).ends_with("has a result in: a; b.\n"));
    }
}
