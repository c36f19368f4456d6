//! Parts of files that were read a moment ago. A transfer in blocks opens its file once for many of them.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The age from which a part is read again, so that a client sees a new version of a file soon.
const FRESH: Duration = Duration::from_millis(100);

/// Files of which a part is kept, each of up to 64 KiB.
const PLACES: usize = 16;

/// Some bytes of one version of a file.
pub(super) struct Part {
    /// The ETag of the version.
    pub(super) tag: [u8; 8],
    /// The length of the file in bytes.
    pub(super) size: usize,
    /// The number of bytes before the part.
    pub(super) start: usize,
    pub(super) bytes: Vec<u8>,
}

impl Part {
    /// Returns whether the part has these bytes, as far as the file has them.
    fn has(&self, range: &Range<usize>) -> bool {
        range.start >= self.start && range.end.min(self.size) <= self.start + self.bytes.len()
    }
}

/// The parts, the one that was read last in front.
#[derive(Default)]
pub(super) struct Shelf(Mutex<VecDeque<(PathBuf, Instant, Arc<Part>)>>);

impl Shelf {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(PathBuf, Instant, Arc<Part>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fresh(&self, path: &Path) -> Option<Arc<Part>> {
        let parts = self.lock();
        let (_, read, part) = parts.iter().find(|(of, ..)| of == path)?;
        (read.elapsed() < FRESH).then(|| part.clone())
    }

    /// Returns the part of a file with these bytes, if it is there and fresh.
    pub(super) fn find(&self, path: &Path, range: &Range<usize>) -> Option<Arc<Part>> {
        self.fresh(path).filter(|part| part.has(range))
    }

    /// Returns whether a part of a file was read a moment ago, so that it pays to read more than one block.
    pub(super) fn is_being_read(&self, path: &Path) -> bool {
        self.fresh(path).is_some()
    }

    /// Keeps a part of a file in place of an earlier one.
    pub(super) fn put(&self, path: &Path, part: &Arc<Part>) {
        let mut parts = self.lock();
        parts.retain(|(of, ..)| of != path);
        parts.truncate(PLACES - 1);
        parts.push_front((path.to_owned(), Instant::now(), part.clone()));
    }

    /// Removes the part of a file, which is about to change.
    pub(super) fn remove(&self, path: &Path) {
        self.lock().retain(|(of, ..)| of != path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(start: usize, len: usize, size: usize) -> Arc<Part> {
        Arc::new(Part { tag: [7; 8], size, start, bytes: vec![0; len] })
    }

    #[test]
    fn a_part_answers_for_the_bytes_that_it_has_or_that_the_file_lacks() {
        let (shelf, path) = (Shelf::default(), Path::new("a"));
        shelf.put(path, &part(1_024, 4_096, 6_000));
        let has = |range| shelf.find(path, &range).is_some();
        assert!(has(1_024..2_048) && has(4_096..5_120));
        assert!(!has(0..1_024) && !has(5_120..6_144), "no block is cut");
        shelf.put(path, &part(5_120, 880, 6_000));
        assert!(has(5_120..6_144) && has(9_216..10_240), "it ends with the file");
        assert!(!has(1_024..2_048), "a file has one part");
        shelf.remove(path);
        assert!(!has(5_120..6_144) && !shelf.is_being_read(path));
    }

    #[test]
    fn the_files_that_were_read_last_are_kept_and_none_for_long() {
        let shelf = Shelf::default();
        let name = |number: usize| PathBuf::from(number.to_string());
        for number in 0..=PLACES {
            shelf.put(&name(number), &part(0, 1, 1));
        }
        assert!(!shelf.is_being_read(&name(0)) && shelf.is_being_read(&name(1)));
        for (_, read, _) in shelf.lock().iter_mut() {
            *read = read.checked_sub(FRESH).expect("the machine runs for longer");
        }
        assert!((0..=PLACES).all(|number| !shelf.is_being_read(&name(number))));
    }
}
