//! Directories that results are written into.

use std::fs;
use std::io;
use std::path::Path;

/// Creates a directory and its parents. An existing directory stays as it is.
///
/// # Errors
/// Fails with the error of the system. A file in its place is [`NotADirectory`](io::ErrorKind::NotADirectory).
pub fn create(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => io::ErrorKind::NotADirectory.into(),
        _ => error,
    })
}
