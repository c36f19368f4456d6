//! Results as tables: Arrow in memory, Parquet in files.
//!
//! A [`Table`] has named columns of one type each. [`cells`], [`runs`] and [`clients`] make the tables of some results;
//! [`write_parquet`] writes one to a file. A [`sweep`] writes many runs into a directory of such files, and goes on where it was
//! stopped.

mod file;
mod results;
pub mod sweep;
mod table;
mod values;

pub use file::{read_parquet, write_parquet};
pub use results::{cells, clients, runs};
pub use table::Table;
pub use values::{Kind, Values};
