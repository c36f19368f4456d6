//! Files that keep measurements, a line for each, so that a program that was killed can go on.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::lock;

/// The error of a journal that is open elsewhere.
const HELD: &str = "this journal is in use: wait until what writes it has ended, or name another file";

/// A file of lines of JSON to which lines are added. It is locked for this process while it is open.
#[derive(Debug)]
pub struct JournalFile(File);

impl JournalFile {
    /// Opens or creates the file at `path`, and passes its lines to `take`. A last line without its end is cut off: it was being
    /// written when the program was killed.
    ///
    /// # Errors
    /// Fails with the error of the file or of `take`. Fails with `foreign` if the path is not a file, or if a line does not
    /// belong to a journal, and with one line if the journal is open elsewhere. The file is then unchanged.
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
        lock::held(&file.try_lock(), HELD)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let mut whole = 0;
        for line in text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
            take(serde_json::from_slice(line).map_err(|_| io::Error::other(foreign))?)?;
            whole += line.len();
        }
        if whole == 0 && !text.is_empty() {
            return Err(io::Error::other(foreign));
        }
        file.set_len(whole as u64)?;
        Ok(Self(file))
    }

    /// Adds a line.
    ///
    /// # Errors
    /// Fails as the file does.
    pub fn write(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        // One write, so that a program that is killed leaves at most one line cut off.
        self.0.write_all(&text)
    }
}
