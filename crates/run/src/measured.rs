//! The measurements of one run.

mod delays;
mod film;
mod flow;
mod mesh;
mod run_result;
mod series;
mod settling;
mod statistics;
mod timeouts;
mod transfer;

pub use delays::Delays;
pub use film::{Film, FilmMaker, FilmMoment, FilmNode, FilmRole, Journey, JourneyStep};
pub use flow::FlowResult;
pub use mesh::MeshResult;
pub use run_result::{EcnResult, Population, PopulationTransfers, RunResult};
pub use series::Series;
pub use settling::Settling;
pub use statistics::{Estimate, jain_index, quantile, ratio, student_t};
pub(crate) use timeouts::ArmedTimeouts;
pub use timeouts::Timeouts;
pub(crate) use transfer::Moved;
pub use transfer::TransferResult;
