//! The version of what makes runs.

/// The version of the package, and a hash of the sources that shape a run. Equal versions make equal runs of equal scenarios,
/// mechanisms and seeds. Tables have it in their column `commit`, because a package is no commit.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("COAPACE_SOURCES"));
