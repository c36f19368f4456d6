//! The directory that a sweep writes into.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use coapace_lab::directory;
use coapace_lab::lock::held;

use super::manifest::SweepManifest;
use super::part::{DRAFT, keys, settle};
use super::{Columns, Key, Plan, Shard, Unit};

/// The error message if another process writes into the directory.
const HELD: &str = "another sweep writes into it: wait for its end, or give every process a shard of its own, such as 1/2 and 2/2";

/// A directory with the parts of a sweep. It is open for one process alone, or for one process for each shard.
#[derive(Debug)]
pub struct SweepDirectory {
    path: PathBuf,
    shard: Option<Shard>,
    columns: Columns,
    known: HashSet<Key>,
    /// The lock files. They stay open, because closing a file releases its lock.
    _locks: Vec<File>,
}

impl SweepDirectory {
    /// Opens or creates a directory for a plan, or for a shard of it. Temporary files of killed processes are removed.
    ///
    /// # Errors
    /// Errors of the directory, and one line if another process writes into it, or if it belongs to another scenario or
    /// version.
    pub fn open(path: &Path, plan: &Plan, shard: Option<Shard>) -> io::Result<Self> {
        directory::create(path)?;
        // Before anything is removed: another process may still write its temporary files.
        let locks = lock(path, shard)?;
        let draft = draft(shard);
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(&draft) {
                fs::remove_file(entry.path())?;
            }
        }
        // Removing repeated rows while other shards write could remove a part that they count on.
        let known = if shard.is_none() { settle(path)? } else { keys(path)? };
        let SweepManifest { columns, .. } = SweepManifest::begin(path, plan, !known.is_empty(), &draft)?;
        Ok(Self { path: path.to_owned(), shard, columns, known, _locks: locks })
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the columns of all parts of the dataset.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Returns the number of runs of the plan, or, in a directory opened for a shard, of this shard.
    pub fn units(&self, plan: &Plan) -> usize {
        plan.units().iter().filter(|unit| self.is_here(unit)).count()
    }

    /// Returns those runs of the plan, or of the shard, that were missing when the directory was opened.
    pub fn missing(&self, plan: &Plan) -> Vec<Unit> {
        let units = plan.units().iter().filter(|unit| self.is_here(unit) && !self.known.contains(&unit.key));
        units.copied().collect()
    }

    /// Removes duplicate rows of runs that are in several parts, which processes of an abandoned sweep may have
    /// written. Does nothing in a directory opened for a shard.
    ///
    /// # Errors
    /// Errors of the directory.
    pub fn settle(&self) -> io::Result<()> {
        // Other shards are being written.
        if self.shard.is_none() { settle(&self.path).map(drop) } else { Ok(()) }
    }

    /// Returns the prefix of the names of this process's temporary files.
    pub(super) fn draft(&self) -> String {
        draft(self.shard)
    }

    fn is_here(&self, unit: &Unit) -> bool {
        self.shard.is_none_or(|shard| shard.has(unit.key))
    }
}

fn draft(shard: Option<Shard>) -> String {
    shard.map_or_else(|| DRAFT.to_owned(), |shard| format!("{DRAFT}{}-", shard.word()))
}

/// Locks the directory for this process alone, or for one shard beside the processes of other shards. Returns the lock
/// files.
fn lock(path: &Path, shard: Option<Shard>) -> io::Result<Vec<File>> {
    let open = |name: String| File::options().create(true).append(true).open(path.join(name));
    let all = open(".lock".to_owned())?;
    let Some(shard) = shard else {
        held(&all.try_lock(), HELD)?;
        return Ok(vec![all]);
    };
    // Shared with other shards, so that a sweep of the whole directory finds it taken.
    held(&all.try_lock_shared(), HELD)?;
    let own = open(format!(".lock-{}", shard.word()))?;
    held(&own.try_lock(), HELD)?;
    Ok(vec![all, own])
}
