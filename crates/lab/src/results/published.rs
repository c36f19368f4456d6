//! Published figures and orders of a cell.

use std::collections::BTreeMap;

use super::{Metric, Order};

/// The result of a publication for a cell: figures, or how a figure of this mechanism stands to that of another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Published {
    /// By metric, in its unit.
    pub figures: BTreeMap<Metric, f64>,
    /// The tables that figures are of, by metric, where these say how near they are to be met.
    pub tables: BTreeMap<Metric, PaperTable>,
    /// The places of this mechanism before others under the same conditions.
    pub orders: Vec<Order>,
    /// Where it is printed: work, table or figure.
    pub source: String,
}

impl Published {
    /// One figure.
    pub fn figure(metric: Metric, value: f64, source: impl Into<String>) -> Self {
        Self { figures: BTreeMap::from([(metric, value)]), source: source.into(), ..Self::default() }
    }

    /// One figure that is given; `None` if it is not.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        self.figures.get(&metric).copied()
    }

    /// Returns the figures that no table says more of: they are met within so many per cent.
    pub fn plain(&self) -> impl Iterator<Item = Metric> {
        self.figures.keys().copied().filter(|metric| !self.tables.contains_key(metric))
    }

    /// Adds what `other` says of the same cell, once.
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

/// A table of a paper, as near as its figures are asked to be.
#[derive(Clone, Debug, PartialEq)]
pub struct PaperTable {
    /// Its number and what it is about.
    pub title: String,
    /// A figure is within where neither of published and measured is more than so many times the other; at least 1.
    pub factor: f64,
    /// The difference from the paper, in a line; empty where nothing is said.
    pub why: String,
}

/// A published figure and the measured one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// The metric.
    pub metric: Metric,
    /// The published value, in the metric's unit.
    pub published: f64,
    /// The measured one; `None` where it is not known.
    pub measured: Option<f64>,
}

impl Compared {
    /// Returns how far the measured value is from the published one, as a fraction of the latter; positive where it is larger.
    pub fn relative_error(&self) -> Option<f64> {
        (self.published > 0.0).then_some(self.measured? / self.published - 1.0)
    }
    /// Returns how many times the smaller of both the larger is, at least 1; `None` where either is unknown or not above 0.
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
        let table = PaperTable { title: "Table 3".into(), factor: 1.5, why: "other radios".into() };
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
