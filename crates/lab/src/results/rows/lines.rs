//! How rows are written.

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// Comma-separated values with a header.
    Csv,
    /// An object a line.
    Json,
}
