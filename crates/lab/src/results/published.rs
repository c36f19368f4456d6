//! What a publication says of a cell.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Metric, Order};

/// What a publication measured for a cell: figures, or that a figure of this mechanism is above that of another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// By metric, in its unit.
    #[serde(flatten)]
    pub figures: BTreeMap<Metric, f64>,
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

    /// Adds what `other` says of the same cell, once.
    pub fn extend(&mut self, other: Self) {
        self.figures.extend(other.figures);
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
}
