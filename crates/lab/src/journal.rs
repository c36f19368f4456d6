//! Journals: files that store measurements, a line for each, so that a killed program can continue.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::lock;

/// The error if a journal is open in another process.
const HELD: &str = "this journal is in use: wait until the other process has ended, or name another file";

/// A file of JSON lines to which lines are appended. It is locked by this process while it is open.
#[derive(Debug)]
pub struct JournalFile(File);

impl JournalFile {
    /// Opens or creates the file at `path`, and passes its lines to `take`. An incomplete last line is removed, because the
    /// program was killed while it wrote it.
    ///
    /// # Errors
    /// Errors of the file or of `take`; `foreign` if the path is not a file, or if a line does not belong to a journal; one
    /// line if the journal is open in another process. The file is not changed then.
    pub fn open<L: DeserializeOwned>(
        path: &Path,
        foreign: &str,
        mut take: impl FnMut(L) -> io::Result<()>,
    ) -> io::Result<Self> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        // A device, such as /dev/full, has no end.
        if !file.metadata()?.is_file() {
            return Err(io::Error::other(foreign));
        }
        // Locked before it is read: another process might be in the middle of a line, which would be cut off below.
        lock::held(&file.try_lock(), HELD)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let mut whole = 0;
        for line in text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
            take(serde_json::from_slice(line).map_err(|_| io::Error::other(foreign))?)?;
            whole += line.len();
        }
        // No whole line: it may be any file, and cutting it would destroy it.
        if whole == 0 && !text.is_empty() {
            return Err(io::Error::other(foreign));
        }
        file.set_len(whole as u64)?;
        Ok(Self(file))
    }

    /// Appends a line.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn write(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        // One write, so that a program that is killed leaves at most one line cut off.
        self.0.write_all(&text)
    }
}
