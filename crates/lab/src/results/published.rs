//! What a publication says of a cell.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Metric, Order, PaperTable};

/// What a publication measured for a cell: figures, or how a figure of this mechanism stands to that of another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// By metric, in its unit.
    #[serde(flatten)]
    pub figures: BTreeMap<Metric, f64>,
    /// The tables that figures are of, by metric, where these say how near they are to be met.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tables: BTreeMap<Metric, PaperTable>,
    /// The places of this mechanism before others under the same conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
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

    /// The figures that no table says more of: they are met within so many per cent.
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

    /// The figures in one field, `metric=value` separated by semicolons.
    pub fn figures_field(&self) -> String {
        let pairs: Vec<_> = self
            .figures
            .iter()
            .map(|(metric, value)| format!("{metric}={}", super::number::field(Some(*value))))
            .collect();
        pairs.join(";")
    }
}

/// A published figure and the measured one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// What is measured.
    pub metric: Metric,
    /// The published value, in the metric's unit.
    pub published: f64,
    /// The measured one; `None` where it is not known.
    pub measured: Option<f64>,
}

impl Compared {
    /// How far the measured value is from the published one, as a fraction of the latter; positive where it is larger.
    pub fn relative_error(&self) -> Option<f64> {
        (self.published > 0.0).then_some(self.measured? / self.published - 1.0)
    }
    /// How many times the smaller of both the larger is, at least 1; `None` where either is unknown or not above 0.
    pub fn factor(&self) -> Option<f64> {
        let ratio = self.measured? / self.published;
        (ratio > 0.0 && ratio.is_finite()).then(|| ratio.max(1.0 / ratio))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Relation;
    use super::*;

    #[test]
    fn what_was_published_parses_back_with_its_tables_and_ratios() {
        let table = PaperTable { title: "Table 3".into(), factor: 1.5, why: "other radios".into() };
        let order = Order {
            metric: Metric::Jain,
            relation: Relation::Times,
            times: Some(0.6875),
            than: "default".into(),
            why: "other timers".into(),
        };
        let mut published = Published::figure(Metric::Throughput, 9.0, "p");
        published.extend(Published {
            tables: [(Metric::Jain, table)].into(),
            orders: vec![order],
            ..Published::figure(Metric::Jain, 0.9, "p")
        });
        assert_eq!(published.plain().collect::<Vec<_>>(), [Metric::Throughput]);
        let json = serde_json::to_string(&published).unwrap();
        assert_eq!(serde_json::from_str::<Published>(&json).unwrap(), published, "{json}");
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
