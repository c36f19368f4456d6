//! The version of the code that determines runs.

/// The version of the package, and a hash of the sources that affect a run. Equal versions make equal runs of equal scenarios,
/// mechanisms and seeds. The column `commit` of tables contains it, because a package has no commit.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("COAPACE_SOURCES"));

/// Checks that `work`, such as a sweep, comes from a process of this version, so that runs are equal.
///
/// # Errors
/// Returns one line with the remedy.
pub fn check_version(work: &str, version: &str) -> Result<(), String> {
    if version == VERSION {
        return Ok(());
    }
    Err(format!(
        "the {work} was made with coapace {version}, and this process has {VERSION}: install the same version everywhere"
    ))
}
