//! Parts of a dataset: files with the rows of some runs.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::Builder;

use super::columns::Row;
use super::{Columns, Key};
use crate::file::{read_parquet_rows, read_parquet_text};
use crate::write_parquet;

/// The prefix of the names of temporary files.
pub(super) const DRAFT: &str = ".part-";

/// Returns the file name of the part with these runs, which contains the hash of their sorted keys.
pub(super) fn name(keys: impl IntoIterator<Item = Key>) -> String {
    let mut keys: Vec<Key> = keys.into_iter().collect();
    keys.sort_unstable();
    format!("part-{}.parquet", Key::combine(keys))
}

/// Writes the rows as a part, and returns their number. Equal rows give a file with the same name and bytes.
///
/// # Errors
/// Errors of the directory.
pub(super) fn write(
    directory: &Path,
    draft: &str,
    columns: &Columns,
    mut rows: Vec<Row>,
) -> io::Result<usize> {
    // Threads finish in any order, and equal rows have to give equal bytes.
    rows.sort_by_key(|row| row.key);
    let (count, name) = (rows.len(), name(rows.iter().map(|row| row.key)));
    let table = columns.table(rows)?;
    put(directory, draft, &name, |out| write_parquet(&table, out))?;
    Ok(count)
}

/// Writes a file as a temporary file, and gives it its `name` once it is complete and on the disk.
///
/// # Errors
/// Errors of the directory.
pub(super) fn put(
    directory: &Path,
    draft: &str,
    name: &str,
    write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> io::Result<()> {
    let mut builder = Builder::new();
    builder.prefix(draft).suffix(".tmp");
    #[cfg(unix)]
    // Temporary files are private by default, and parts are for all users whom the umask allows.
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let file = builder.tempfile_in(directory)?;
    let mut out = BufWriter::new(file.as_file());
    write(&mut out)?;
    // Flushed explicitly, because dropping a buffer ignores its errors.
    out.flush()?;
    drop(out);
    // On the disk before it has its name: a part of that name is taken for whole.
    file.as_file().sync_all()?;
    file.persist(directory.join(name)).map_err(|failed| failed.error)?;
    // The directory keeps the new name, so it is synchronised as well. Not every system can do that.
    let _ = File::open(directory).and_then(|directory| directory.sync_all());
    Ok(())
}

/// Returns the keys of all runs in the parts of a directory.
///
/// # Errors
/// Errors of the directory, or an incomplete Parquet file.
pub fn keys(directory: &Path) -> io::Result<HashSet<Key>> {
    let mut keys = HashSet::new();
    for path in parts(directory)? {
        keys.extend(keys_of(&path)?);
    }
    Ok(keys)
}

/// Returns the keys of all runs in the parts of a directory, like [`keys`]. If a run is in several parts, keeps one of
/// its rows and removes the others.
///
/// Duplicates arise if a process writes a part after its sweep was given up and started again. Only one process may call this
/// at a time.
///
/// # Errors
/// Errors of the directory, or an incomplete Parquet file.
pub(super) fn settle(directory: &Path) -> io::Result<HashSet<Key>> {
    let mut known = HashSet::new();
    for path in parts(directory)? {
        let keys = keys_of(&path)?;
        // The first part that has a run keeps it, in the order of the parts' names.
        let is_new: Vec<bool> = keys.iter().map(|key| known.insert(*key)).collect();
        if is_new.iter().all(|is_new| *is_new) {
            continue;
        }
        let kept = keys.iter().zip(&is_new).filter(|(_, is_new)| **is_new).map(|(key, _)| *key);
        let kept: Vec<Key> = kept.collect();
        let name = name(kept.iter().copied());
        if directory.join(&name).exists() {
            // A later part has just these rows: one half of a batch that was halved, for example.
            for key in &kept {
                known.remove(key);
            }
        } else if !kept.is_empty() {
            let table = read_parquet_rows(&path, &is_new)?;
            put(directory, DRAFT, &name, |out| write_parquet(&table, out))?;
        }
        // After the new part is there, so that a crash between repeats rows and loses none.
        fs::remove_file(&path)?;
    }
    Ok(known)
}

/// Returns the parts in a directory, sorted by name.
fn parts(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut parts = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| name.starts_with("part-") && name.ends_with(".parquet")) {
            parts.push(entry.path());
        }
    }
    // The system lists files in any order. Sorted, the same rows are kept everywhere.
    parts.sort();
    Ok(parts)
}

fn keys_of(path: &Path) -> io::Result<Vec<Key>> {
    let broken = |why: &str| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        io::Error::other(format!(
            "{name} is not a part of a sweep ({why}): remove it, and its runs are made again"
        ))
    };
    let keys = read_parquet_text(path, "key").map_err(|error| broken(&error.to_string()))?;
    keys.iter().map(|key| key.parse().map_err(|_| broken("a key is not hexadecimal"))).collect()
}
