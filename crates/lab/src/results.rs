//! Measurements of runs, pooled over seeds and written as CSV, as JSON lines, or as a table for the terminal.
//!
//! A [`RunResult`] is one seed of one [`Cell`]. A [`CellResult`] pools the seeds. Every row that is written has the commit,
//! the seed or the range of seeds, the scenario's hash and the trace's hash, so the results can be made again.

mod bound;
mod cell;
mod conclusion;
pub mod conditions;
mod contest;
mod delays;
mod film;
mod flow;
mod measures;
mod mesh;
mod metric;
mod nearness;
pub mod number;
mod order;
mod outcome;
mod published;
mod ratio;
mod reference;
mod rows;
mod run_result;
mod series;
mod settling;
pub(crate) mod sheet;
mod significance;
mod statistics;
mod summary;
mod table;
mod timeouts;
mod transfer;
mod verdict;

pub use bound::{BOUNDS, Bound, Holds, bound_of, bounds};
pub use cell::{Cell, CellResult, Mode, headline, worst_first};
pub(crate) use conclusion::NEAR;
pub use conclusion::{Conclusion, gave_up};
pub use contest::{Contest, Placing};
pub use delays::Delays;
pub use film::{Film, FilmMaker, FilmMoment, FilmNode, FilmRole, Journey, JourneyStep};
pub use flow::FlowResult;
pub use measures::{Better, Metric};
pub use mesh::MeshResult;
pub use nearness::{Judged, Nearness, judged, nearness};
pub use order::{Allowance, Chain, Order, Ranked, Relation};
pub use outcome::Outcome;
pub use published::{Compared, PaperTable, Published};
pub use ratio::Ratio;
pub use reference::reference;
pub use rows::orders::order_rows;
pub use rows::{Rows, write_rows};
pub use run_result::{EcnResult, Population, RunResult};
pub use series::Series;
pub use settling::Settling;
pub use sheet::{Lines, Sheet, Value};
pub use significance::LEVEL;
pub(crate) use statistics::ratio;
pub use statistics::{Estimate, jain_index, quantile};
pub use summary::{FlowSummary, PopulationSummary, Summary};
pub use table::{Look, terminal_table, wrapped};
pub use timeouts::Timeouts;
pub use transfer::TransferResult;
pub use verdict::{Verdict, rules, tally, verdicts};
pub(crate) use verdict::{count, tally_by_claim};
