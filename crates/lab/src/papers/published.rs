//! Published figures and orders of a cell.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Order;
use crate::results::{CellSummary, Metric};

/// The results that a paper published for a cell: figures, and relations to the figures of other mechanisms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The published figures, each in the unit of its metric.
    pub figures: BTreeMap<Metric, f64>,
    /// The tables of the figures that come from a table with a factor.
    pub tables: BTreeMap<Metric, PaperTable>,
    /// The relations of this mechanism to others under the same conditions.
    pub orders: Vec<Order>,
    /// The place where it is printed: work, table or figure.
    pub source: String,
}

impl Published {
    /// Makes the results of a single figure.
    pub fn figure(metric: Metric, value: f64, source: impl Into<String>) -> Self {
        Self { figures: BTreeMap::from([(metric, value)]), source: source.into(), ..Self::default() }
    }

    /// Returns the published figure of a metric, if there is one.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        self.figures.get(&metric).copied()
    }

    /// Returns the metrics of figures without a table. They count as met within a fixed percentage.
    pub fn plain(&self) -> impl Iterator<Item = Metric> {
        self.figures.keys().copied().filter(|metric| !self.tables.contains_key(metric))
    }

    /// Returns every figure beside that of the pooled runs.
    pub(crate) fn compared(&self, summary: &CellSummary) -> impl Iterator<Item = Compared> {
        let beside = |(&metric, &published)| Compared { metric, published, measured: summary.value(metric) };
        self.figures.iter().map(beside)
    }

    /// Returns the worst relative error of the pooled runs. An unknown figure is worse than any other.
    pub(crate) fn relative_error(&self, summary: &CellSummary) -> Option<f64> {
        let worse =
            |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| if b.abs() > a.abs() { b } else { a });
        self.compared(summary).map(|figure| figure.relative_error()).reduce(worse).flatten()
    }

    /// Adds the results of `other` for the same cell. Equal results stay once.
    pub fn extend(&mut self, other: Self) {
        self.figures.extend(other.figures);
        self.tables.extend(other.tables);
        for order in other.orders {
            if !self.orders.contains(&order) {
                self.orders.push(order);
            }
        }
    }
}

/// A table of a paper, and the factor that judges its figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PaperTable {
    /// The number and the subject.
    pub title: String,
    /// A figure is within if neither the published nor the measured one is more than so many times the other; at least 1.
    pub factor: f64,
    /// The number of runs of which a published figure is the mean, if it is known.
    pub runs: Option<u32>,
    /// The difference of the experiment from the paper, in a line; empty if none is known.
    pub why: String,
}

/// A published figure and the measured one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// The metric.
    pub metric: Metric,
    /// The published value, in the metric's unit.
    pub published: f64,
    /// The measured value; `None` if it is not known.
    pub measured: Option<f64>,
}

impl Compared {
    /// The largest relative error of a figure that is met, if its table has no factor.
    pub const MET: f64 = 0.05;

    /// Returns the distance of the measured value from the published one, as a fraction of the latter; positive if it is
    /// larger.
    pub fn relative_error(&self) -> Option<f64> {
        (self.published > 0.0).then_some(self.measured? / self.published - 1.0)
    }

    /// Returns whether the measured value is near enough where no table has a factor.
    pub fn is_met(&self) -> bool {
        self.relative_error().is_some_and(|error| error.abs() <= Self::MET)
    }

    /// Returns the ratio of the larger to the smaller of both, at least 1; `None` if either is unknown or not above 0.
    pub fn factor(&self) -> Option<f64> {
        let ratio = self.measured? / self.published;
        (ratio > 0.0 && ratio.is_finite()).then(|| ratio.max(1.0 / ratio))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_tables_are_not_plain() {
        let table =
            PaperTable { title: "Table 3".into(), factor: 1.5, runs: None, why: "other radios".into() };
        let mut published = Published::figure(Metric::Throughput, 9.0, "p");
        published.extend(Published {
            tables: [(Metric::Jain, table)].into(),
            ..Published::figure(Metric::Jain, 0.9, "p")
        });
        assert_eq!(published.plain().collect::<Vec<_>>(), [Metric::Throughput]);
    }

    #[test]
    fn a_factor_is_the_same_either_way_and_unknown_where_there_is_no_ratio() {
        let factor = |published, measured| Compared { metric: Metric::Jain, published, measured }.factor();
        assert_eq!((factor(2.0, Some(4.0)), factor(4.0, Some(2.0))), (Some(2.0), Some(2.0)));
        for (published, measured) in [(0.0, Some(1.0)), (1.0, Some(0.0)), (0.0, Some(0.0)), (1.0, None)] {
            assert_eq!(factor(published, measured), None);
        }
    }
}
