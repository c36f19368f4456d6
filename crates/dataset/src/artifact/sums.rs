//! `SHA256SUMS`, which `sha256sum --check` reads as well.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Component, Path};

use sha2::{Digest, Sha256};

use super::{ArtefactFile, SUMS};

/// A file that differs from the one that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The file is not there.
    Missing(String),
    /// The file has another content.
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

/// A file that differs from the one that was made again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DifferingFile {
    /// The file has another content.
    Other(String),
    /// The file was made again and is not in the folder.
    Missing(String),
    /// The file is in `SHA256SUMS` and was not made again.
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
            Self::Other(path) => write!(f, "{path} is not the one that is made again"),
            Self::Missing(path) => write!(f, "{path} is made again, and is missing"),
            Self::Foreign(path) => write!(f, "{path} is recorded, and not made again"),
        }
    }
}

/// Compares the files of the artefact in `root` with the files that were made `again`, whatever hashes `SHA256SUMS` has. Returns
/// the files that differ.
///
/// # Errors
/// Fails as the system does.
pub fn differing_files(root: &Path, again: &[ArtefactFile]) -> io::Result<Vec<DifferingFile>> {
    let mut differing = Vec::new();
    for file in again {
        match of_file(&root.join(&file.path)) {
            Ok(hash) if hash == file.sha256 => {}
            Ok(_) => differing.push(DifferingFile::Other(file.path.clone())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                differing.push(DifferingFile::Missing(file.path.clone()));
            }
            Err(error) => return Err(error),
        }
    }
    let text = fs::read_to_string(root.join(SUMS))?;
    let recorded = text.lines().filter_map(|line| Some(line.split_once("  ")?.1));
    let is_foreign = |path: &&str| again.iter().all(|file| file.path != *path);
    differing.extend(recorded.filter(is_foreign).map(|path| DifferingFile::Foreign(path.to_owned())));
    Ok(differing)
}

/// Compares every file of the artefact in `root` with its hash. Returns the files that differ, in the order of `SHA256SUMS`. Files
/// without a hash are left aside.
///
/// # Errors
/// Fails if `SHA256SUMS` is missing or has a line without a hash and a file in the folder, and as the system does.
pub fn verify(root: &Path) -> io::Result<Vec<Damage>> {
    let text = fs::read_to_string(root.join(SUMS))?;
    let mut damages = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let Some((recorded, path)) = line.split_once("  ").filter(|(_, path)| is_inside(path)) else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("line {number} is no hash with a file in this folder"),
            ));
        };
        match of_file(&root.join(path)) {
            Ok(hash) if hash == recorded => {}
            Ok(_) => damages.push(Damage::Changed(path.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                damages.push(Damage::Missing(path.to_owned()));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(damages)
}

/// Returns the text of `SHA256SUMS`.
pub(super) fn written(files: &[ArtefactFile]) -> String {
    files.iter().flat_map(|file| [&file.sha256, "  ", &file.path, "\n"]).collect()
}

/// Returns the SHA-256 of bytes in hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

fn of_file(path: &Path) -> io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other(format!("{} is no file", path.display())));
    }
    let mut hash = Sha256::new();
    io::copy(&mut fs::File::open(path)?, &mut hash)?;
    Ok(format!("{:x}", hash.finalize()))
}

/// Returns whether a relative path stays within its folder.
fn is_inside(path: &str) -> bool {
    !path.is_empty() && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}
