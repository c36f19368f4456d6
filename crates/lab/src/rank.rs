//! Rankings: every mechanism over a suite of cells, measured by the ratio of its figures to the best of each cell.
//!
//! * A [`Suite`] is a list of cells. Each has a scenario, a number of seeds, and the metrics that count for it.
//! * A [`Yardstick`] is the best figure of one metric in one cell, among the published mechanisms that dither.
//! * The *ratio* of a mechanism is how many times worse its figure is than the yardstick: 1 is as good, 2 is twice as slow, or
//!   half of the throughput. It may be below 1 for a mechanism that is not a yardstick itself.
//! * A [`Standing`] is the ratios of one mechanism over all cells: the worst, the geometric mean, and how many are near 1.
//! * A [`Ranking`] is the standings of all mechanisms, the smallest worst ratio first.
//! * [`Hindsight`] is the best choice of a mechanism for each cell. The *regret* of a mechanism is its distance from it.
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
pub use ranking::{RankedCell, RankedFigure, Ranking, Standing, Worst};
pub(crate) use rows::COLUMNS;
pub use section::Section;
pub use suite::{Suite, SuiteCell, headline_metrics};
pub use table::times;
pub use yardstick::{Yardstick, of_run};
