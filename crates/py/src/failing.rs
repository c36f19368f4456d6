//! Errors of files and of pickles as Python exceptions.

use std::io;
use std::path::Path;

use coapace_dataset::check_version;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

/// Returns the exception for an error of a file. If the system refused the file, it is an `OSError` of the fitting
/// kind, such as `FileNotFoundError`. If the content of the file is wrong, it is a `ValueError`.
pub(crate) fn refused_by_system(what: &str, path: &Path, error: &io::Error) -> PyErr {
    let Some(number) = error.raw_os_error() else {
        return PyValueError::new_err(format!("{}: {error}", path.display()));
    };
    let reason = error.to_string();
    // Rust appends the number, which Python shows by itself.
    let reason = reason.split(" (os error").next().unwrap_or_default();
    // With three arguments, Python picks the right kind.
    PyOSError::new_err((number, format!("{what}: {reason}"), path.as_os_str().to_owned()))
}

/// Checks that a pickle was made by this version.
///
/// # Errors
/// Raises `ValueError` with a line that says what to do.
pub(crate) fn checked(version: &str) -> PyResult<()> {
    check_version("pickle", version).map_err(PyValueError::new_err)
}
