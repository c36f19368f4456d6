//! The quota of `coapace serve --writable`: bytes and files, of all clients together and of each.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use coapace_net::{Code, Rejection};

use super::writer::WritingClient;
use crate::arguments::SharedBound;

/// The least time between two counts of all files, which find the files that other programs have removed. A count reads
/// every directory.
const RECOUNT: Duration = Duration::from_mins(1);

/// A number of files, and the sum of their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

impl Usage {
    /// Returns this usage after a file of `gone` bytes was removed and a file of `added` bytes was added; `None` for no
    /// such file.
    fn after(self, gone: Option<u64>, added: Option<u64>) -> Self {
        let count = |file: Option<u64>| u64::from(file.is_some());
        Self {
            // Other programs may have removed files that were counted, so this may fall below 0.
            files: (self.files + count(added)).saturating_sub(count(gone)),
            bytes: (self.bytes + added.unwrap_or(0)).saturating_sub(gone.unwrap_or(0)),
        }
    }
}

/// The files below the served directory, which a quota counts.
pub(super) trait Files {
    /// Counts all files.
    fn count(&self) -> Usage;

    /// Returns whether there is a file at a path.
    fn has(&self, path: &Path) -> bool;
}

/// The quota of a directory and its present use.
#[derive(Debug)]
pub(super) struct Quota {
    files: SharedBound,
    bytes: SharedBound,
    taken: Mutex<UsedRoom>,
}

/// The used part of a quota. Its size is limited: each client in it has written at least one file, and the number of
/// files is limited.
#[derive(Debug)]
struct UsedRoom {
    all: Usage,
    /// The files that clients have written since the start, with their writers and sizes.
    written: HashMap<PathBuf, (WritingClient, u64)>,
    by: HashMap<WritingClient, Usage>,
    counted: Instant,
}

impl Quota {
    /// Returns a quota with limits on files and bytes, for a directory that has the files counted in `all`.
    pub(super) fn new(files: SharedBound, bytes: SharedBound, all: Usage) -> Self {
        let taken = UsedRoom { all, written: HashMap::new(), by: HashMap::new(), counted: Instant::now() };
        Self { files, bytes, taken: taken.into() }
    }

    fn taken(&self) -> MutexGuard<'_, UsedRoom> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the usage by all files, and its limits.
    pub(super) fn usage(&self) -> (Usage, Usage) {
        (self.taken().all, Usage { files: self.files.total, bytes: self.bytes.total })
    }

    /// Checks that a client may write `bytes` at a path, where a file of `before` bytes may exist. If the quota is used up, the
    /// files are counted again, unless that was done lately. A file that does not grow is always admitted.
    ///
    /// # Errors
    /// 4.13 with the limit that is reached. It has no Size1, because a smaller block would not help.
    pub(super) fn admit(
        &self,
        writer: &WritingClient,
        path: &Path,
        before: Option<u64>,
        bytes: u64,
        files: &impl Files,
    ) -> Result<(), Rejection> {
        let mut taken = self.taken();
        // Others may have removed files meanwhile. Counting is slow, so it is done only before a refusal.
        let refused = match self.refusal(&taken, writer, path, before, bytes) {
            Some(_) if taken.counted.elapsed() >= RECOUNT => {
                taken.recount(files);
                self.refusal(&taken, writer, path, before, bytes)
            }
            refused => refused,
        };
        let refuse = |why| Rejection::new(Code::REQUEST_ENTITY_TOO_LARGE).because(why);
        refused.map_or(Ok(()), |why| Err(refuse(why)))
    }

    /// Returns the limit that the write would exceed, in words; `None` if it fits.
    fn refusal(
        &self,
        taken: &UsedRoom,
        writer: &WritingClient,
        path: &Path,
        before: Option<u64>,
        bytes: u64,
    ) -> Option<String> {
        // A file that another client wrote becomes this client's, and then counts in full.
        let own = taken.written.get(path).filter(|(owner, _)| owner == writer).map(|&(_, size)| size);
        let by = taken.by.get(writer).copied().unwrap_or_default();
        let (all, own_after) = (taken.all.after(before, Some(bytes)), by.after(own, Some(bytes)));
        // A usage that does not grow is admitted, even above its bound.
        let full = |now: u64, then: u64, bound: u64| then > now && then > bound;
        if full(taken.all.bytes, all.bytes, self.bytes.total) {
            return Some(format!("no room: all files together may have {} bytes", self.bytes.total));
        }
        if full(taken.all.files, all.files, self.files.total) {
            return Some(format!("no room: there may be {} files", self.files.total));
        }
        if full(by.bytes, own_after.bytes, self.bytes.client) {
            return Some(format!("no room: the files of one client may have {} bytes", self.bytes.client));
        }
        if full(by.files, own_after.files, self.files.client) {
            return Some(format!("no room: one client may have {} files", self.files.client));
        }
        None
    }

    /// Counts a file of `bytes` bytes that a client has written at a path, in place of a file of `before` bytes, if
    /// there was one.
    pub(super) fn written(&self, writer: WritingClient, path: &Path, before: Option<u64>, bytes: u64) {
        let mut taken = self.taken();
        taken.all = taken.all.after(before, Some(bytes));
        // The file may have had another owner, or a different size.
        taken.disown(path);
        let by = taken.by.entry(writer.clone()).or_default();
        *by = by.after(None, Some(bytes));
        taken.written.insert(path.to_owned(), (writer, bytes));
    }

    /// Subtracts a removed file of `before` bytes; `None` if there was no file.
    pub(super) fn removed(&self, path: &Path, before: Option<u64>) {
        let mut taken = self.taken();
        taken.all = taken.all.after(before, None);
        taken.disown(path);
    }
}

impl UsedRoom {
    /// Subtracts a file from the usage of the client that wrote it. Does nothing for a file that no client wrote.
    fn disown(&mut self, path: &Path) {
        // Files from before the start, and of other programs, belong to no client.
        let Some((writer, size)) = self.written.remove(path) else { return };
        if let Some(usage) = self.by.get_mut(&writer) {
            *usage = usage.after(Some(size), None);
            // Without this, clients that have no files would stay in the table for ever.
            if usage.files == 0 {
                self.by.remove(&writer);
            }
        }
    }

    /// Counts all files again, and subtracts files that are gone from the usage of their clients.
    fn recount(&mut self, files: &impl Files) {
        (self.all, self.counted) = (files.count(), Instant::now());
        let gone: Vec<_> = self.written.keys().filter(|path| !files.has(path)).cloned().collect();
        for path in gone {
            self.disown(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn client(last: u8) -> WritingClient {
        WritingClient::Network(IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)))
    }

    fn quota(files: (u64, u64), bytes: (u64, u64)) -> Quota {
        let bound = |(total, client)| SharedBound { total, client };
        Quota::new(bound(files), bound(bytes), Usage::default())
    }

    /// A test directory with one file, `left`, of 1 byte.
    struct Left;

    impl Files for Left {
        fn count(&self) -> Usage {
            Usage { files: 1, bytes: 1 }
        }

        fn has(&self, path: &Path) -> bool {
            path == Path::new("left")
        }
    }

    fn put(quota: &Quota, writer: &WritingClient, path: &str, before: Option<u64>, bytes: u64) -> bool {
        let path = Path::new(path);
        let admitted = quota.admit(writer, path, before, bytes, &Left).is_ok();
        if admitted {
            quota.written(writer.clone(), path, before, bytes);
        }
        admitted
    }

    #[test]
    fn a_client_cannot_store_more_than_its_share_of_the_directory() {
        let quota = quota((100, 10), (1_000, 300));
        assert!(put(&quota, &client(1), "a", None, 200));
        assert!(!put(&quota, &client(1), "b", None, 101));
        assert!(put(&quota, &client(2), "b", None, 300));
        assert!(put(&quota, &client(1), "c", None, 100));
        assert!(put(&quota, &client(1), "a", Some(200), 150), "its own file counts once");
        assert!(!put(&quota, &client(1), "a", Some(150), 201));
        quota.removed(Path::new("a"), Some(150));
        assert!(put(&quota, &client(1), "d", None, 200));
        assert_eq!(quota.usage().0, Usage { files: 3, bytes: 600 });
    }

    #[test]
    fn the_number_of_files_is_bounded_and_a_file_counts_for_its_last_writer() {
        let quota = quota((3, 2), (1_000, 1_000));
        assert!(put(&quota, &client(1), "a", None, 0) && put(&quota, &client(1), "b", None, 0));
        assert!(!put(&quota, &client(1), "c", None, 0));
        assert!(put(&quota, &client(2), "a", Some(0), 0));
        assert!(put(&quota, &client(1), "c", None, 0));
        assert!(!put(&quota, &client(3), "d", None, 0), "there are three");
        assert!(put(&quota, &client(2), "b", Some(0), 0), "no file is new");
        assert_eq!(quota.taken().by.len(), 2);
    }

    #[test]
    fn a_full_directory_still_takes_files_that_do_not_grow() {
        let all = SharedBound { total: 10, client: 10 };
        let quota = Quota::new(all, all, Usage { files: 20, bytes: 500 });
        assert!(!put(&quota, &client(1), "new", None, 1));
        assert!(put(&quota, &client(1), "old", Some(8), 7));
    }

    #[test]
    fn files_removed_by_other_programs_free_space_at_the_next_count() {
        let quota = quota((3, 2), (100, 100));
        assert!(["left", "gone"].iter().all(|path| put(&quota, &client(1), path, None, 1)));
        assert!(!put(&quota, &client(1), "new", None, 1), "counted a moment ago");
        quota.taken().counted -= RECOUNT;
        assert!(put(&quota, &client(1), "new", None, 1));
        assert_eq!(quota.usage().0, Usage { files: 2, bytes: 2 });
        assert!(!put(&quota, &client(1), "another", None, 1));
    }
}
