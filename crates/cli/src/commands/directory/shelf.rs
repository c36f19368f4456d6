//! A cache of parts of files that were read a moment ago, because a transfer in blocks reads the same file many times.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

/// The age at which a cached part is read again, so that a client sees a new version of a file soon.
const FRESH: Duration = Duration::from_millis(100);

/// The maximum number of files with a cached part, each of up to 64 KiB.
const PLACES: usize = 16;

/// A version of a file, by its ETag and size.
#[derive(Clone, Copy)]
pub(super) struct Version {
    /// The ETag.
    pub(super) tag: [u8; 8],
    /// The length of the file in bytes.
    pub(super) size: usize,
}

/// Some bytes of one version of a file.
#[derive(Clone)]
pub(super) struct FilePart {
    pub(super) version: Version,
    /// The offset of the part in the file, in bytes.
    pub(super) start: usize,
    pub(super) bytes: Bytes,
}

impl FilePart {
    /// Returns whether the part contains the bytes of `range`, as far as the file has them.
    pub(super) fn has(&self, range: &Range<usize>) -> bool {
        // The sum cannot overflow: `bytes` was read at `start` of a file of at most 8 MiB.
        range.start >= self.start && range.end.min(self.version.size) <= self.start + self.bytes.len()
    }

    /// Returns the bytes of this range that the part has.
    pub(super) fn slice(&self, range: &Range<usize>) -> Bytes {
        let [from, to] =
            // Both ends are clamped: `range` may have no end, and the file may end inside it.
            [range.start, range.end].map(|at| at.saturating_sub(self.start).min(self.bytes.len()));
        self.bytes.slice(from..to.max(from))
    }
}

/// The cached parts of files.
#[derive(Default)]
pub(super) struct Shelf(Mutex<Parts>);

#[derive(Default)]
struct Parts {
    /// The cached parts with their paths and the times when they were read, the most recent first.
    all: VecDeque<(PathBuf, Instant, FilePart)>,
    /// The number of writes to files so far.
    changes: u64,
}

impl Shelf {
    fn lock(&self) -> MutexGuard<'_, Parts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of writes to files so far. A reader gets it before it opens a file, and passes it to
    /// [`put`](Self::put).
    pub(super) fn changes(&self) -> u64 {
        self.lock().changes
    }

    /// Returns the cached part of a file, if it was read less than [`FRESH`] ago.
    pub(super) fn fresh(&self, path: &Path) -> Option<FilePart> {
        let parts = self.lock();
        let (_, read, part) = parts.all.iter().find(|(of, ..)| of == path)?;
        (read.elapsed() < FRESH).then(|| part.clone())
    }

    /// Caches a part of a file in place of an earlier one, unless a file was written after `changes` was read.
    pub(super) fn put(&self, path: &Path, part: FilePart, changes: u64) {
        let mut parts = self.lock();
        // The part may be of the version before the change, which nobody should read any more.
        if parts.changes != changes {
            return;
        }
        parts.all.retain(|(of, ..)| of != path);
        // The oldest part leaves, because the newest is in front.
        parts.all.truncate(PLACES - 1);
        parts.all.push_front((path.to_owned(), Instant::now(), part));
    }

    /// Counts a write to a file or its removal, and removes the cached part of the file.
    pub(super) fn remove(&self, path: &Path) {
        let mut parts = self.lock();
        // A reader that opened the old file before this line will not cache it any more.
        parts.changes += 1;
        parts.all.retain(|(of, ..)| of != path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(start: usize, len: usize, size: usize) -> FilePart {
        FilePart { version: Version { tag: [7; 8], size }, start, bytes: vec![0; len].into() }
    }

    #[test]
    fn a_cached_part_of_a_file_answers_within_its_bytes_and_beyond_the_end_of_the_file() {
        let (shelf, path) = (Shelf::default(), Path::new("a"));
        shelf.put(path, part(1_024, 4_096, 6_000), 0);
        let has = |range| shelf.fresh(path).is_some_and(|part| part.has(&range));
        assert!(has(1_024..2_048) && has(4_096..5_120));
        assert!(!has(0..1_024) && !has(5_120..6_144), "no block is cut");
        shelf.put(path, part(5_120, 880, 6_000), 0);
        assert!(has(5_120..6_144) && has(9_216..10_240), "it ends with the file");
        assert!(!has(1_024..2_048), "a file has one part");
        let len = |range| shelf.fresh(path).map(|part| part.slice(&range).len());
        assert_eq!([len(5_120..6_144), len(9_216..10_240)], [Some(880), Some(0)]);
        shelf.remove(path);
        assert!(!has(5_120..6_144) && shelf.fresh(path).is_none());
    }

    #[test]
    fn a_cached_part_is_dropped_when_the_file_changes() {
        let (shelf, path) = (Shelf::default(), Path::new("a"));
        let before = shelf.changes();
        shelf.remove(path);
        shelf.put(path, part(0, 1, 1), before);
        assert!(shelf.fresh(path).is_none(), "it was read before the change");
        shelf.put(path, part(0, 1, 1), shelf.changes());
        assert!(shelf.fresh(path).is_some());
    }

    #[test]
    fn the_cache_keeps_the_files_read_last_and_none_for_long() {
        let shelf = Shelf::default();
        let name = |number: usize| PathBuf::from(number.to_string());
        for number in 0..=PLACES {
            shelf.put(&name(number), part(0, 1, 1), 0);
        }
        assert!(shelf.fresh(&name(0)).is_none() && shelf.fresh(&name(1)).is_some());
        for (_, read, _) in &mut shelf.lock().all {
            *read = read.checked_sub(FRESH).expect("the machine runs for longer");
        }
        assert!((0..=PLACES).all(|number| shelf.fresh(&name(number)).is_none()));
    }
}
