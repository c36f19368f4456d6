//! The text of a file.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Returns the text of a file, at most one byte more than `most`.
///
/// # Errors
/// Errors of the operating system, as its message.
pub(crate) fn read(path: &Path, most: usize) -> Result<String, String> {
    let mut text = String::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    // The byte above the limit shows the caller that the file is too long.
    file.take(most as u64 + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    Ok(text)
}
