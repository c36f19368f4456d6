//! Results as tables: Arrow in memory, Parquet in files.
//!
//! A [`Table`] has named columns of one type each. [`cells`], [`runs`] and [`clients`] make the tables of some results;
//! [`write_parquet`] writes one to a file. An [`artifact`] is a folder with all that repeats an experiment.

pub mod artifact;
mod file;
mod results;
mod table;
mod values;

pub use file::{read_parquet, write_parquet};
pub use results::{cells, clients, runs};
pub use table::Table;
pub use values::Values;
