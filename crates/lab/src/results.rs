//! Measurements of runs, pooled over seeds and written as CSV, as JSON lines, or as a table for the terminal.
//!
//! A [`RunResult`](coapace_run::measured::RunResult) is one seed of one [`Cell`]. A [`CellResult`] pools the seeds. Every row that is written has the commit,
//! the seed or the range of seeds, the scenario's hash and the trace's hash, so the results can be made again.

mod bound;
mod cell;
mod conclusion;
pub mod conditions;
mod contest;
mod measures;
mod metric;
mod nearness;
pub mod number;
mod order;
mod outcome;
mod published;
mod ratio;
mod reference;
mod rows;
#[cfg(test)]
mod samples;
pub(crate) mod sheet;
mod significance;
mod summary;
mod table;
mod verdict;

pub use bound::{BOUNDS, Bound, bound_of, bounds};
pub use cell::{Cell, CellResult, Mode, headline, worst_first};
pub(crate) use conclusion::NEAR;
pub use conclusion::{Conclusion, gave_up};
pub use contest::{Contest, Placing};
pub use measures::{Better, Metric};
pub use nearness::{Judged, Nearness, judged, nearness};
pub use order::{Chain, Order, Ranked, RatioAllowance, Relation};
pub use outcome::OrderOutcome;
pub use published::{Compared, PaperTable, Published};
pub use ratio::FigureRatio;
pub use reference::reference;
pub use rows::orders::order_rows;
pub use rows::{Rows, write_rows};
pub use sheet::{RowFormat, Sheet, SheetValue};
pub use significance::LEVEL;
pub use summary::{CellSummary, FlowSummary, PopulationSummary, TransferFigures};
pub(crate) use table::aligned;
pub use table::{Look, terminal_table, wrapped};
pub use verdict::{OrderVerdict, rules, tally, verdicts};
pub(crate) use verdict::{count, tally_by_claim};
