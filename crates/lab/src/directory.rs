//! Directories for results.

use std::fs;
use std::io;
use std::path::Path;

/// Creates a directory and its parents. An existing directory stays as it is.
///
/// # Errors
/// Errors of the system. If a file has the name, [`NotADirectory`](io::ErrorKind::NotADirectory).
pub fn create(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path).map_err(|error| match error.kind() {
        // An existing directory is not an error, so a file has the name.
        io::ErrorKind::AlreadyExists => io::ErrorKind::NotADirectory.into(),
        _ => error,
    })
}
