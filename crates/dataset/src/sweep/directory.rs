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

/// The error of a directory that another process writes into.
const HELD: &str = "another sweep writes into it: wait for its end, or give every process a shard of its own, such as 1/2 and 2/2";

/// A directory with the parts of a sweep, open for one process, or for one process of each shard.
#[derive(Debug)]
pub struct SweepDirectory {
    path: PathBuf,
    shard: Option<Shard>,
    columns: Columns,
    known: HashSet<Key>,
    /// The files that are locked as long as they are open.
    _locks: Vec<File>,
}

impl SweepDirectory {
    /// Opens or creates a directory for a plan, or for a shard of it. Temporary files of a process that was killed are removed.
    ///
    /// # Errors
    /// Fails as the directory does, and with a line if another process writes into it, or it is of another scenario or version.
    pub fn open(path: &Path, plan: &Plan, shard: Option<Shard>) -> io::Result<Self> {
        directory::create(path)?;
        let locks = lock(path, shard)?;
        let draft = draft(shard);
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(&draft) {
                fs::remove_file(entry.path())?;
            }
        }
        let known = if shard.is_none() { settle(path)? } else { keys(path)? };
        let SweepManifest { columns, .. } = SweepManifest::begin(path, plan, !known.is_empty(), &draft)?;
        Ok(Self { path: path.to_owned(), shard, columns, known, _locks: locks })
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the columns of all parts.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Returns the units of the plan, or of its shard.
    pub fn units(&self, plan: &Plan) -> usize {
        plan.units().iter().filter(|unit| self.is_here(unit)).count()
    }

    /// Returns the units of the plan, or of its shard, that no part had when the directory was opened.
    pub fn missing(&self, plan: &Plan) -> Vec<Unit> {
        let units = plan.units().iter().filter(|unit| self.is_here(unit) && !self.known.contains(&unit.key));
        units.copied().collect()
    }

    /// Removes repeated rows of units that several parts have. Processes of an abandoned sweep may have written them.
    ///
    /// # Errors
    /// Fails as the directory does.
    pub fn settle(&self) -> io::Result<()> {
        // Other shards are being written.
        if self.shard.is_none() { settle(&self.path).map(drop) } else { Ok(()) }
    }

    /// Returns the begin of the names of temporary files.
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

/// Locks the directory for this process alone, or with a shard together with the processes of other shards.
fn lock(path: &Path, shard: Option<Shard>) -> io::Result<Vec<File>> {
    let open = |name: String| File::options().create(true).append(true).open(path.join(name));
    let all = open(".lock".to_owned())?;
    let Some(shard) = shard else {
        held(&all.try_lock(), HELD)?;
        return Ok(vec![all]);
    };
    held(&all.try_lock_shared(), HELD)?;
    let own = open(format!(".lock-{}", shard.word()))?;
    held(&own.try_lock(), HELD)?;
    Ok(vec![all, own])
}
