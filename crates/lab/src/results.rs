//! What a run measured, pooled over seeds, and written down: CSV, JSON lines, a table for the terminal.
//!
//! A [`RunResult`] is one seed of one [`Cell`]; a [`CellResult`] pools the seeds. Every row that is written names the
//! commit, the seed (or the range of seeds), the scenario's hash and the trace's hash, so it can be made again.

mod cell;
mod cell_result;
pub mod conditions;
mod confidence;
mod contest;
mod delays;
mod fairness;
mod film;
mod flow;
mod mesh;
mod metric;
pub mod number;
mod order;
mod paper_table;
mod paper_tables;
mod population;
mod published;
mod quantiles;
mod ratio;
mod reference;
mod rows;
mod run;
mod series;
mod settling;
pub(crate) mod sheet;
mod table;
mod timeouts;

mod verdict;
mod verdicts;

pub use cell::Cell;
pub use cell_result::{CellResult, FlowSummary, Summary};
pub use confidence::Estimate;
pub use contest::Contest;
pub use delays::Delays;
pub use fairness::jain_index;
pub use film::{Film, FilmMaker, FilmMoment, FilmNode, FilmRole, Journey, JourneyStep};
pub use flow::FlowResult;
pub use mesh::MeshResult;
pub use metric::{Better, Metric};
pub use order::{Chain, Link, Order, Relation};
pub use paper_table::{Judged, Nearness, PaperTable, judged, nearness};
pub use population::{Population, PopulationSummary};
pub use published::{Compared, Published};
pub use quantiles::{Quantiles, quantile};
pub use ratio::Ratio;
pub use reference::reference;
pub use rows::{Lines, Rows, write_rows};
pub use run::RunResult;
pub use series::Series;
pub use settling::Settling;
pub use table::terminal_table;
pub use timeouts::Timeouts;

pub use verdict::{Verdict, tally, verdicts};
pub use verdicts::write_verdicts;
