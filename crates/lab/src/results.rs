//! Results of runs, pooled over seeds.
//!
//! A [`RunResult`](coapace_run::measured::RunResult) is one seed of one [`Cell`]. A [`CellResult`] pools the seeds. A
//! [`Metric`] is a quantity of either. [`papers`](crate::papers) compares results with published ones, and
//! [`output`](crate::output) writes them; this module uses neither.

mod bound;
pub(crate) mod cell;
pub mod conditions;
pub(crate) mod contest;
mod measures;
mod metric;
mod ratio;
#[cfg(test)]
pub(crate) mod samples;
mod significance;
pub(crate) mod summary;

pub use bound::{BOUNDS, Bound, bound_of, bounds};
pub use cell::{Cell, CellResult, Mode, headline};
pub(crate) use contest::NEAR;
pub use contest::{Contest, Placing};
pub use measures::{Better, Metric};
pub use ratio::PairedRatio;
pub(crate) use ratio::compared_value;
pub use significance::LEVEL;
pub use summary::{CellSummary, FlowSummary, PopulationSummary, TransferValues};
