//! `SHA256SUMS`, in the format of `sha256sum --check`.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Component, Path};

use sha2::{Digest, Sha256};

use super::{ArtefactFile, SUMS};

/// A file of an artefact, named by its path, that was changed or removed after it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The file does not exist.
    Missing(String),
    /// The content of the file does not have the recorded hash.
    Changed(String),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => write!(f, "{path} is missing"),
            Self::Changed(path) => write!(f, "{path} is not as it was written"),
        }
    }
}

/// A file of an artefact, named by its path, that differs from the regenerated one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DifferingFile {
    /// The contents differ.
    Other(String),
    /// The file was regenerated but is not in the folder.
    Missing(String),
    /// The file is in `SHA256SUMS` but was not regenerated.
    Foreign(String),
}

impl DifferingFile {
    /// Returns the path of the file in the folder.
    pub fn path(&self) -> &str {
        match self {
            Self::Other(path) | Self::Missing(path) | Self::Foreign(path) => path,
        }
    }
}

impl fmt::Display for DifferingFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(path) => write!(f, "{path} differs from the repeated file"),
            Self::Missing(path) => write!(f, "{path} is missing, and the repetition makes it"),
            Self::Foreign(path) => write!(f, "{path} is recorded, and the repetition does not make it"),
        }
    }
}

/// Compares the files of the artefact in `root` with the regenerated files `again`, not with the hashes in `SHA256SUMS`.
/// Returns the files that differ.
///
/// # Errors
/// Errors of the file system.
pub fn differing_files(root: &Path, again: &[ArtefactFile]) -> io::Result<Vec<DifferingFile>> {
    let mut differing = Vec::new();
    for file in again {
        match of_file(&root.join(&file.path)) {
            Ok(hash) if hash == file.sha256 => {}
            Ok(_) => differing.push(DifferingFile::Other(file.path.clone())),
            // A missing file is one of the differences. Any other error leaves the comparison undecided.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                differing.push(DifferingFile::Missing(file.path.clone()));
            }
            Err(error) => return Err(error),
        }
    }
    // A file that is not made again is only in the list.
    let text = fs::read_to_string(root.join(SUMS))?;
    let recorded = text.lines().filter_map(|line| Some(line.split_once("  ")?.1));
    let is_foreign = |path: &&str| again.iter().all(|file| file.path != *path);
    differing.extend(recorded.filter(is_foreign).map(|path| DifferingFile::Foreign(path.to_owned())));
    Ok(differing)
}

/// Compares every file of the artefact in `root` with its recorded hash. Returns the files that differ, in the sequence
/// of `SHA256SUMS`. Files that are not listed there are ignored.
///
/// # Errors
/// Errors of the file system, and a `SHA256SUMS` that is missing or has an invalid line.
pub fn verify(root: &Path) -> io::Result<Vec<Damage>> {
    let text = fs::read_to_string(root.join(SUMS))?;
    let mut damages = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        // The list may come from anybody, so a path must not lead out of the folder.
        let Some((recorded, path)) = line.split_once("  ").filter(|(_, path)| is_inside(path)) else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("line {number} has no hash with a file in this folder"),
            ));
        };
        match of_file(&root.join(path)) {
            Ok(hash) if hash == recorded => {}
            Ok(_) => damages.push(Damage::Changed(path.to_owned())),
            // The check goes on, so that one call lists all damage.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                damages.push(Damage::Missing(path.to_owned()));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(damages)
}

/// Returns the text of `SHA256SUMS` for these files.
pub(super) fn written(files: &[ArtefactFile]) -> String {
    files.iter().flat_map(|file| [&file.sha256, "  ", &file.path, "\n"]).collect()
}

/// Returns the SHA-256 of bytes in hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

fn of_file(path: &Path) -> io::Result<String> {
    // Reading a pipe would wait for its writer.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other(format!("{} is not a file", path.display())));
    }
    let mut hash = Sha256::new();
    // Read in pieces, so that the memory does not depend on the length of the file.
    io::copy(&mut fs::File::open(path)?, &mut hash)?;
    Ok(format!("{:x}", hash.finalize()))
}

/// Returns whether a relative path stays within its folder.
fn is_inside(path: &str) -> bool {
    // `Normal` excludes `..`, a leading `/`, and the prefix of a drive.
    !path.is_empty() && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}
