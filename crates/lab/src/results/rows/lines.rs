//! The formats of rows.

/// The format of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// Comma-separated values with a header.
    Csv,
    /// A JSON object a line.
    Json,
}
