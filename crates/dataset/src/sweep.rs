//! Sweeps: every mechanism under many conditions with many seeds, in a directory of Parquet files that keeps finished runs.
//!
//! * A [`Unit`] is one run: a condition, a mechanism and a seed. Its [`Key`] is a hash of these and of the
//!   [`VERSION`](crate::VERSION).
//! * A [`Plan`] has the units of a sweep, sorted by key.
//! * A *part* is a file with the rows of some units. It gets its name when it is complete.
//! * A [`SweepDirectory`] has the parts, and `sweep.json`, which describes them. A sweep makes the units that no part contains.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//! use coapace_dataset::sweep::{self, Plan, SweepDirectory};
//! use coapace_lab::grid::conditions;
//! use coapace_scenario::Source;
//!
//! let conditions = conditions(&[("clients".into(), "2,3".into())]).unwrap();
//! let plan = Plan::new(Source::find("nb-iot").unwrap(), conditions, &["default".into()], Some((1, 2))).unwrap();
//! let folder = tempfile::tempdir().unwrap();
//! let directory = SweepDirectory::open(folder.path(), &plan, None).unwrap();
//! let missing = directory.missing(&plan);
//! assert_eq!(missing.len(), 4);
//! sweep::conduct(&plan.into(), &directory, missing, 1, &AtomicBool::new(false), || Ok(()), &mut |_| ()).unwrap();
//! assert_eq!(sweep::keys(folder.path()).unwrap().len(), 4);
//! ```

mod batch;
mod columns;
mod condition;
mod conduct;
mod directory;
mod key;
mod manifest;
mod part;
mod plan;
mod shard;

pub use batch::Batch;
pub use columns::Columns;
pub use conduct::conduct;
pub use directory::SweepDirectory;
pub use key::Key;
pub use part::keys;
pub use plan::{MOST_UNITS, Plan, Unit};
pub use shard::Shard;

pub use coapace_lab::grid::{PlanError, Setting};

/// A function that is called after each run. If it returns an error, the run is not kept, and the sweep ends. It is for
/// mechanisms that can fail; `|| Ok(())` keeps all runs.
pub type Check = fn() -> std::io::Result<()>;
