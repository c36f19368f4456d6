//! Output of results for people and for programs: a table for the terminal, sentences, a page of Markdown, CSV and JSON lines.
//!
//! Every row has the commit, the seed or the range of seeds, the scenario's hash and the trace's hash, so the results can be
//! reproduced.

mod conclusion;
mod page;
mod reference;
mod rows;
pub(crate) mod sheet;
mod table;

pub use conclusion::{Conclusion, gave_up};
pub use reference::reference;
pub use rows::orders::order_rows;
pub use rows::{Rows, write_rows};
pub use sheet::{RowFormat, Sheet, SheetValue};
pub(crate) use table::aligned;
pub use table::{Look, terminal_table, wrapped};
