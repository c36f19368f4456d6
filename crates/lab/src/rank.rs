//! Rankings: every mechanism over a suite of cells, by the ratio of its values to the best of each cell.
//!
//! * A [`Suite`] is a list of cells. Each has a scenario, a number of seeds, and the metrics that count for it.
//! * A [`Yardstick`] is the baseline: the best value of one metric in one cell, among the published mechanisms with random
//!   timeouts.
//! * The *ratio* of a mechanism is how many times worse its value is than the baseline: 1 is as good, 2 is twice as slow, or
//!   half of the throughput. It may be below 1 for a mechanism that cannot be the baseline itself.
//! * A [`Standing`] has the ratios of one mechanism over all cells: the worst, the geometric mean, and how many are near 1.
//! * A [`Ranking`] has the standings of all mechanisms, the smallest worst ratio first.
//! * [`Hindsight`] is the oracle: the best choice of a mechanism for each cell. The *regret* of a mechanism is its distance
//!   from the oracle.
//!
//! Seeds are paired: a seed gives all mechanisms of a cell the same losses and delays.

mod advice;
mod hindsight;
mod ranking;
mod rows;
mod section;
mod suite;
mod table;
mod yardstick;

pub use hindsight::{Hindsight, HindsightChoice};
pub use ranking::{RankedCell, RankedMetric, Ranking, Standing, Worst};
pub(crate) use rows::COLUMNS;
pub use section::Section;
pub use suite::{Suite, SuiteCell, headline_metrics};
pub use table::times;
pub use yardstick::{Yardstick, of_run};
