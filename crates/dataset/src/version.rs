//! The version of the code that makes runs.

/// The version of the package, and a hash of the sources that shape a run. Equal versions make equal runs of equal scenarios,
/// mechanisms and seeds. The column `commit` of tables has it, because a package has no commit.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("COAPACE_SOURCES"));

/// Checks that `work`, such as a sweep, comes from a process of this version, which makes equal runs.
///
/// # Errors
/// Returns one line that says what to do.
pub fn check_version(work: &str, version: &str) -> Result<(), String> {
    if version == VERSION {
        return Ok(());
    }
    Err(format!(
        "the {work} is of coapace {version}, and this process has {VERSION}: install the same version everywhere"
    ))
}
