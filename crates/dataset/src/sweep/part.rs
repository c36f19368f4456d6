//! Parts: files with the rows of some units.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::Builder;

use super::columns::Row;
use super::{Columns, Key};
use crate::file::{read_parquet_rows, read_parquet_text};
use crate::write_parquet;

/// The begin of the names of temporary files.
pub(super) const DRAFT: &str = ".part-";

/// Returns the name of the part with these units: the hash of their keys, in ascending order.
pub(super) fn name(keys: impl IntoIterator<Item = Key>) -> String {
    let mut keys: Vec<Key> = keys.into_iter().collect();
    keys.sort_unstable();
    format!("part-{}.parquet", Key::combine(keys))
}

/// Writes a part, and returns the number of its rows. Equal rows give a file of equal name and bytes.
///
/// # Errors
/// Fails as the directory does.
pub(super) fn write(
    directory: &Path,
    draft: &str,
    columns: &Columns,
    mut rows: Vec<Row>,
) -> io::Result<usize> {
    rows.sort_by_key(|row| row.key);
    let (count, name) = (rows.len(), name(rows.iter().map(|row| row.key)));
    let table = columns.table(rows)?;
    put(directory, draft, &name, |out| write_parquet(&table, out))?;
    Ok(count)
}

/// Writes a file beside its place, and moves it there when it is whole and on the disk.
///
/// # Errors
/// Fails as the directory does.
pub(super) fn put(
    directory: &Path,
    draft: &str,
    name: &str,
    write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> io::Result<()> {
    let mut builder = Builder::new();
    builder.prefix(draft).suffix(".tmp");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let file = builder.tempfile_in(directory)?;
    let mut out = BufWriter::new(file.as_file());
    write(&mut out)?;
    out.flush()?;
    drop(out);
    file.as_file().sync_all()?;
    file.persist(directory.join(name)).map_err(|failed| failed.error)?;
    // The directory keeps the new name, so it is synchronised as well. Not every system can do that.
    let _ = File::open(directory).and_then(|directory| directory.sync_all());
    Ok(())
}

/// Returns the keys of all units that the parts in a directory have.
///
/// # Errors
/// Fails as the directory does, or if a part is not a whole Parquet file.
pub fn keys(directory: &Path) -> io::Result<HashSet<Key>> {
    let mut keys = HashSet::new();
    for path in parts(directory)? {
        keys.extend(keys_of(&path)?);
    }
    Ok(keys)
}

/// Returns the keys like [`keys`]. If a unit is in more than one part, keeps one of its rows and removes the others.
///
/// This happens if a process writes a part after its sweep was given up and begun again. Only one process may call this at a time.
///
/// # Errors
/// Fails as the directory does, or if a part is not a whole Parquet file.
pub(super) fn settle(directory: &Path) -> io::Result<HashSet<Key>> {
    let mut known = HashSet::new();
    for path in parts(directory)? {
        let keys = keys_of(&path)?;
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
        fs::remove_file(&path)?;
    }
    Ok(known)
}

/// Returns the parts in a directory, in the order of their names.
fn parts(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut parts = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| name.starts_with("part-") && name.ends_with(".parquet")) {
            parts.push(entry.path());
        }
    }
    parts.sort();
    Ok(parts)
}

fn keys_of(path: &Path) -> io::Result<Vec<Key>> {
    let broken = |why: &str| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        io::Error::other(format!(
            "{name} is no part of a sweep ({why}): remove it, and its runs are made again"
        ))
    };
    let keys = read_parquet_text(path, "key").map_err(|error| broken(&error.to_string()))?;
    keys.iter().map(|key| key.parse().map_err(|_| broken("a key is none"))).collect()
}
