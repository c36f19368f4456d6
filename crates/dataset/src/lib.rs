//! Results as tables: Arrow in memory, Parquet in files.
//!
//! A [`Table`] has named columns of one type each. [`cells`], [`runs`], [`clients`] and [`series`] make the tables of results;
//! other functions make the tables of published values, pairs and rankings. [`frames()`] makes the table of every packet of one
//! run. [`write_parquet`] writes a table to a file. An [`artifact`] is a folder with everything needed to repeat an experiment.
//! [`pack_table`] and [`pack_results`] make bytes for another process. The module [`search`] makes the tables of a search. A
//! [`sweep`] writes many runs into a directory of Parquet files, and can be continued after an interruption.

pub mod artifact;
mod file;
mod frames;
mod results;
pub mod search;
pub mod sweep;
mod table;
mod travel;
mod values;
mod version;

pub use file::{read_parquet, write_parquet};
pub use frames::{Frames, frames};
pub use results::{cells, clients, hindsight, orders, pairs, ratios, runs, series, standings, values};
pub use table::Table;
pub use travel::{pack_results, pack_table, unpack_results, unpack_table};
pub use values::{ColumnKind, Values};
pub use version::{VERSION, check_version};
