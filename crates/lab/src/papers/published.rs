//! Published values and rankings of a cell.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Order;
use crate::number::significant;
use crate::results::{CellSummary, Metric};

/// The results that a paper published for a cell: values, and relations to the values of other mechanisms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The published values, each in the unit of its metric.
    pub values: BTreeMap<Metric, f64>,
    /// The tables that print the values, for metrics whose value is judged by the factor of its table.
    pub tables: BTreeMap<Metric, PaperTable>,
    /// The values measured by independent witnesses for values of tables, each in the unit of its metric.
    pub witnesses: BTreeMap<Metric, Witness>,
    /// The relations of this mechanism to others under the same conditions.
    pub orders: Vec<Order>,
    /// Where the results are printed: work, table or figure.
    pub source: String,
}

impl Published {
    /// Makes published results with a single value.
    pub fn value(metric: Metric, value: f64, source: impl Into<String>) -> Self {
        Self { values: BTreeMap::from([(metric, value)]), source: source.into(), ..Self::default() }
    }

    /// Returns the published value of a metric, if there is one.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        self.values.get(&metric).copied()
    }

    /// Returns the metrics whose values are not judged by the factor of a table. Such a value counts as confirmed
    /// within a fixed percentage, [`Compared::MET`].
    pub fn plain(&self) -> impl Iterator<Item = Metric> {
        self.values.keys().copied().filter(|metric| !self.tables.contains_key(metric))
    }

    /// Returns every published value beside the value of the pooled runs.
    pub(crate) fn compared(&self, summary: &CellSummary) -> impl Iterator<Item = Compared> {
        let beside = |(&metric, &published)| Compared { metric, published, measured: summary.value(metric) };
        self.values.iter().map(beside)
    }

    /// Returns the relative error of the pooled runs that is farthest from 0; `None` if nothing was published, or if
    /// the error of any value is unknown.
    pub(crate) fn relative_error(&self, summary: &CellSummary) -> Option<f64> {
        let worse =
            // `zip` makes the result unknown as soon as one value is.
            |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| if b.abs() > a.abs() { b } else { a });
        self.compared(summary).map(|value| value.relative_error()).reduce(worse).flatten()
    }

    /// Adds the results of `other` for the same cell. Equal results are kept once.
    pub fn extend(&mut self, other: Self) {
        self.values.extend(other.values);
        self.tables.extend(other.tables);
        self.witnesses.extend(other.witnesses);
        for order in other.orders {
            if !self.orders.contains(&order) {
                self.orders.push(order);
            }
        }
    }
}

/// A table of a paper, and the factor by which its values are judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PaperTable {
    /// The number and the title of the table.
    pub title: String,
    /// A value is within the factor if neither the published nor the measured one is more than this many times the other; at
    /// least 1.
    pub factor: f64,
    /// The number of runs that the paper averaged for a value, if known.
    pub runs: Option<u32>,
    /// How the experiment differs from the paper, in a line; empty if no difference is known.
    pub why: String,
    /// Where the values of an independent witness come from: its stack, its runs, and how it differs from the paper. Empty
    /// without a witness.
    pub witness: String,
}

/// The lowest and highest value that an independent witness, such as another simulator, measured for a published value over its
/// runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Witness {
    /// The lowest value, above 0.
    pub low: f64,
    /// The highest value, not below `low`.
    pub high: f64,
}

impl Witness {
    /// Returns the value of the range that is nearest to `value`.
    pub(crate) fn nearest(self, value: f64) -> f64 {
        value.max(self.low).min(self.high)
    }

    /// Returns the range as text: `7.10–8.30`, or one value.
    pub fn words(self) -> String {
        let [low, high] = [self.low, self.high].map(|value| significant(value, 3));
        if low == high { low } else { format!("{low}–{high}") }
    }
}

impl FromStr for Witness {
    type Err = String;

    /// Parses `0.657 to 0.698`, or a single value.
    fn from_str(text: &str) -> Result<Self, String> {
        let (low, high) = text.split_once(" to ").unwrap_or((text, text));
        let read = |value: &str| value.parse().ok().filter(|value: &f64| value.is_finite() && *value > 0.0);
        let range = read(low).zip(read(high)).filter(|(low, high)| low <= high);
        range.map(|(low, high)| Self { low, high }).ok_or_else(|| {
            format!("the value `{text}` in the column `witness` is neither a number above 0 nor a range such as `1 to 2`")
        })
    }
}

/// A published value and the measured one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// The metric.
    pub metric: Metric,
    /// The published value, in the metric's unit.
    pub published: f64,
    /// The measured value; `None` if it is unknown.
    pub measured: Option<f64>,
}

impl Compared {
    /// The largest relative error with which a value counts as confirmed, if it is not judged by the factor of a table.
    pub const MET: f64 = 0.05;

    /// Returns the difference of the measured value from the published one, as a fraction of the published value;
    /// positive if the measured value is larger.
    pub fn relative_error(&self) -> Option<f64> {
        // A published 0 has no relative error.
        (self.published > 0.0).then_some(self.measured? / self.published - 1.0)
    }

    /// Returns whether the relative error is at most [`MET`](Self::MET), for values that are not judged by the factor
    /// of a table; false if the error is unknown.
    pub fn is_met(&self) -> bool {
        self.relative_error().is_some_and(|error| error.abs() <= Self::MET)
    }

    /// Returns the ratio of the larger value to the smaller one, at least 1; `None` if either value is unknown or not
    /// above 0.
    pub fn factor(&self) -> Option<f64> {
        let ratio = self.measured? / self.published;
        (ratio > 0.0 && ratio.is_finite()).then(|| ratio.max(1.0 / ratio))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values_of_tables_are_left_out_of_the_plain_ones() {
        let table = PaperTable {
            title: "Table 3".into(),
            factor: 1.5,
            runs: None,
            why: "other radios".into(),
            witness: String::new(),
        };
        let mut published = Published::value(Metric::Throughput, 9.0, "p");
        published.extend(Published {
            tables: [(Metric::Jain, table)].into(),
            ..Published::value(Metric::Jain, 0.9, "p")
        });
        assert_eq!(published.plain().collect::<Vec<_>>(), [Metric::Throughput]);
    }

    #[test]
    fn a_value_of_a_witness_is_a_number_above_zero_or_a_range() {
        let range: Witness = "7.1 to 8.3".parse().unwrap();
        for (value, nearest) in [(1.0, 7.1), (8.0, 8.0), (9.0, 8.3)] {
            assert!((range.nearest(value) - nearest).abs() < 1e-12, "{value}");
        }
        assert_eq!(
            (range.words().as_str(), "5".parse::<Witness>().unwrap().words().as_str()),
            ("7.10–8.30", "5.00")
        );
        for wrong in ["", "high", "0", "2 to 1", "1 to inf", "-1 to 1"] {
            assert!(wrong.parse::<Witness>().unwrap_err().contains("neither a number"), "{wrong}");
        }
    }

    #[test]
    fn the_factor_between_two_values_is_symmetric_and_unknown_if_one_is_zero() {
        let factor = |published, measured| Compared { metric: Metric::Jain, published, measured }.factor();
        assert_eq!((factor(2.0, Some(4.0)), factor(4.0, Some(2.0))), (Some(2.0), Some(2.0)));
        for (published, measured) in [(0.0, Some(1.0)), (1.0, Some(0.0)), (0.0, Some(0.0)), (1.0, None)] {
            assert_eq!(factor(published, measured), None);
        }
    }
}
