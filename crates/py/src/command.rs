//! The command `coapace` within Python.

use std::ffi::OsString;

use pyo3::prelude::*;

/// The version of the package.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Runs the command line `coapace` with these words, the first of which is the name of the command, and returns its exit code.
/// A process can call this once.
#[pyfunction]
pub(crate) fn command(py: Python<'_>, words: Vec<OsString>) -> u8 {
    // The command may run for hours, and needs no interpreter.
    py.detach(|| coapace::run(words, &[]))
}
