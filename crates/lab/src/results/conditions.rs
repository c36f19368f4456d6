//! Common and varying conditions of several cells.

use super::Cell;
use crate::lists::distinct;
use crate::number::{measure, thousands};

/// The conditions shared by all cells of a set, and the names of the varying conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// The names and values of the conditions that all cells share. Empty values are left out.
    pub common: Vec<(String, String)>,
    /// The names of the conditions that vary between the cells.
    pub varying: Vec<String>,
}

impl Conditions {
    /// Finds the common and the varying conditions of `cells`, in the sequence in which cells list them.
    pub fn of<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> Self {
        let cells: Vec<&Cell> = cells.into_iter().collect();
        let names = distinct(cells.iter().flat_map(|cell| conditions(cell)).map(|(name, _)| name));
        // Neighbours are enough: if all neighbours are equal, all cells are.
        let (varying, same): (Vec<_>, Vec<_>) = (names.into_iter())
            .partition(|name| cells.windows(2).any(|pair| value(pair[0], name) != value(pair[1], name)));
        let common = (same.into_iter())
            .filter_map(|name| cells.first().map(|cell| value(cell, &name)).map(|value| (name, value)))
            .filter(|(_, value)| !value.is_empty())
            .collect();
        Self { common, varying }
    }

    /// Returns the values of `cell` for the varying conditions.
    pub fn values(&self, cell: &Cell) -> Vec<String> {
        self.varying.iter().map(|name| value(cell, name)).collect()
    }

    /// Returns the header of a table: the varying conditions as its first columns, followed by the columns `others`.
    pub(crate) fn header<'a>(&'a self, others: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
        self.varying.iter().map(String::as_str).chain(others).collect()
    }

    /// Returns, in words, the conditions of `cell` that vary between the cells.
    pub fn describe(&self, cell: &Cell) -> String {
        let pairs = self.varying.iter().map(|name| (name.clone(), value(cell, name)));
        phrase(pairs.filter(|(_, value)| !value.is_empty()))
    }

    /// Returns, in words, the conditions of `cell` that vary between the cells, except the condition `name`.
    pub fn describe_without(&self, name: &str, cell: &Cell) -> String {
        let varying = self.varying.iter().filter(|other| *other != name).cloned().collect();
        Self { common: Vec::new(), varying }.describe(cell)
    }

    /// Returns, in words, the conditions that the cells share.
    pub fn describe_common(&self) -> String {
        phrase(self.common.iter().cloned())
    }
}

/// Returns all conditions except the mechanism, as names and values for people. A knob that repeats another condition is left
/// out.
fn conditions(cell: &Cell) -> Vec<(String, String)> {
    let known = [
        ("scenario", cell.scenario.clone()),
        ("workload", cell.workload.clone()),
        ("clients", thousands(cell.clients.into())),
    ];
    let known = known.map(|(name, value)| (name.to_owned(), value));
    // A knob `clients` would repeat the number of clients.
    let others = cell.knobs.iter().filter(|(name, _)| known.iter().all(|(other, _)| other != *name));
    let others = others.map(|(name, value)| {
        // Digits are grouped in knobs, too, so that the same number looks the same everywhere.
        let value = value.parse().map_or_else(|_| value.clone(), thousands);
        (name.clone(), value)
    });
    known.iter().cloned().chain(others).collect()
}

fn value(cell: &Cell, name: &str) -> String {
    conditions(cell).into_iter().find(|(n, _)| n == name).map_or_else(String::new, |(_, value)| value)
}

/// Returns the values of a condition in these cells, and their unit; `None` unless all are numbers in one unit.
pub fn numbers<'a>(name: &str, cells: impl Iterator<Item = &'a Cell>) -> Option<(Vec<f64>, String)> {
    let mut unit = None;
    let values = cells.map(|cell| {
        // The narrow no-break spaces that group digits.
        let text: String = value(cell, name).chars().filter(|c| *c != '\u{202f}').collect();
        let (number, own) = measure(&text)?;
        // The first cell decides the unit. An axis has one.
        (unit.get_or_insert_with(|| own.trim().to_owned()) == own.trim()).then_some(number)
    });
    let values = values.collect::<Option<Vec<f64>>>()?;
    Some((values, unit?))
}

fn phrase(pairs: impl Iterator<Item = (String, String)>) -> String {
    let words: Vec<_> = pairs
        .map(|(name, value)| match name.as_str() {
            "scenario" => value,
            "workload" => format!("{value} workload"),
            "clients" if value == "1" => "1 client".into(),
            "clients" => format!("{value} clients"),
            _ => format!("{name} {value}"),
        })
        .collect();
    words.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(knobs: &[(&str, &str)]) -> Cell {
        let knobs = knobs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Cell { workload: "random".into(), clients: 400, knobs: knobs.collect(), ..Cell::default() }
    }

    #[test]
    fn conditions_common_to_all_cells_are_separated_from_varying_ones() {
        let one = cell(&[("buffer", "2500"), ("clients", "400")]);
        let two = cell(&[("buffer", "1410000"), ("clients", "400"), ("delay_ms", "200")]);
        let conditions = Conditions::of([&one, &two]);
        assert_eq!(conditions.varying, ["buffer", "delay_ms"]);
        assert_eq!(conditions.describe_common(), "random workload · 400 clients");
        assert_eq!(conditions.describe(&one), "buffer 2500");
        assert_eq!(conditions.describe(&two), "buffer 1\u{202f}410\u{202f}000 · delay_ms 200");
        assert_eq!(conditions.describe_without("buffer", &two), "delay_ms 200");
    }

    #[test]
    fn a_condition_with_a_unit_is_a_number_and_a_word_is_not() {
        let one = cell(&[("buffer", "2500"), ("errors", "low"), ("loss", "5 %")]);
        let two = cell(&[("buffer", "1410000"), ("errors", "low"), ("loss", "20 %")]);
        let of = |name| numbers(name, [&one, &two].into_iter());
        assert_eq!(of("buffer"), Some((vec![2500.0, 1_410_000.0], String::new())));
        assert_eq!(of("loss"), Some((vec![5.0, 20.0], "%".to_owned())));
        assert_eq!(of("clients"), Some((vec![400.0, 400.0], String::new())));
        assert_eq!(of("errors"), None);
        let endless = cell(&[("loss", "5 %")]);
        assert_eq!(numbers("buffer", [&one, &endless].into_iter()), None);
    }
}
