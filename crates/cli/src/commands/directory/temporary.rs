//! Temporary files: written beside the file that they will replace, and then renamed.

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cap_std::fs::{Dir, Metadata, MetadataExt as _, OpenOptions, OpenOptionsExt as _};
use nix::fcntl::{Flock, FlockArg};
use nix::libc::O_NONBLOCK;

/// The prefix of temporary names; 16 hexadecimal digits follow. Requests cannot name such files, because names that
/// begin with a dot are refused.
const PREFIX: &str = ".coapace-";

/// The number of names that are tried. A collision is next to impossible.
const ATTEMPTS: usize = 8;

/// A temporary file. Dropping it removes the file, unless it was renamed or linked to its final path.
///
/// The file is locked (flock(2)) while it is written. The system releases the lock when the writer ends, even if it is killed.
/// So [`sweep`] can tell the remains of a killed writer from a file that another server writes at this moment.
pub(super) struct TemporaryFile<'a> {
    top: &'a Dir,
    path: PathBuf,
    file: Flock<File>,
    placed: bool,
}

impl<'a> TemporaryFile<'a> {
    /// Writes `bytes` to a temporary file beside `path`, and waits until they are on the disk.
    ///
    /// # Errors
    /// Errors of the system.
    pub(super) fn write(top: &'a Dir, path: &Path, bytes: &[u8]) -> io::Result<Self> {
        let mut temporary = Self::create(top, path)?;
        temporary.file.write_all(bytes)?;
        // The ETag contains the time of modification, so two versions must not share it.
        temporary.file.set_modified(stamp())?;
        // The bytes reach the disk before the name does: after a power cut the file is old or new, and never empty.
        temporary.file.sync_all()?;
        Ok(temporary)
    }

    /// Creates an empty file with an unpredictable name, and locks it.
    fn create(top: &'a Dir, path: &Path) -> io::Result<Self> {
        for _ in 0..ATTEMPTS {
            let beside = path.with_file_name(format!("{PREFIX}{:016x}", random()));
            let file = match top.open_with(&beside, OpenOptions::new().write(true).create_new(true)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                file => file?.into_std(),
            };
            // Between creation and lock, a starting server may have taken the file for remains and removed it.
            let locked = Flock::lock(file, FlockArg::LockExclusiveNonblock);
            match locked {
                Ok(file) if file.metadata()?.nlink() > 0 => {
                    return Ok(Self { top, path: beside, file, placed: false });
                }
                // The sweep has removed the file or is about to. Another name is tried.
                Ok(_) | Err((_, nix::Error::EWOULDBLOCK)) => {}
                Err((_, error)) => {
                    let _ = top.remove_file(&beside);
                    return Err(error.into());
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Returns the metadata of the file.
    ///
    /// # Errors
    /// Errors of the system.
    pub(super) fn metadata(&self) -> io::Result<Metadata> {
        Metadata::from_file(&self.file)
    }

    /// Replaces the file at `path`, and takes over its mode and owner.
    ///
    /// # Errors
    /// [`PermissionDenied`](io::ErrorKind::PermissionDenied) if the owner cannot be set, and errors of the system.
    pub(super) fn replace(self, path: &Path, before: &Metadata) -> io::Result<()> {
        let own = self.file.metadata()?;
        // A replacement is a new file, which would belong to this process.
        let (user, group) = (before.uid(), before.gid());
        if (own.uid(), own.gid()) != (user, group) {
            fchown(&*self.file, Some(user), Some(group))?;
        }
        // Writing to a file clears its set-user-ID bit; replacing it does so too.
        self.file.set_permissions(Permissions::from_mode(before.mode() & 0o777))?;
        self.rename(path)
    }

    /// Moves the file to `path`, and replaces an existing file.
    ///
    /// # Errors
    /// Errors of the system.
    pub(super) fn rename(mut self, path: &Path) -> io::Result<()> {
        self.top.rename(&self.path, self.top, path)?;
        self.placed = true;
        Ok(())
    }

    /// Moves the file to `path`, where no file may exist.
    ///
    /// # Errors
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists) if a file exists, even if another process has created it a moment ago,
    /// and errors of the system.
    pub(super) fn link(self, path: &Path) -> io::Result<()> {
        match self.top.hard_link(&self.path, self.top, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            // Some file systems have no hard links. There another process may come between check and move.
            Err(_) => self.rename(path),
            Ok(()) => Ok(()),
        }
    }
}

impl Drop for TemporaryFile<'_> {
    fn drop(&mut self) {
        if !self.placed {
            // If this fails, the sweep of the next start removes the file.
            let _ = self.top.remove_file(&self.path);
        }
    }
}

/// Removes the temporary files left by killed writers in a directory and below. A file that is being written is locked, and
/// stays.
pub(super) fn sweep(top: &Dir) {
    super::walk::files(top, |path| {
        if path.file_name().and_then(OsStr::to_str).is_some_and(is_temporary) {
            let _ = remove_unlocked(top, path);
        }
    });
}

/// Returns whether a name belongs to a temporary file.
fn is_temporary(name: &str) -> bool {
    let digits = name.strip_prefix(PREFIX);
    digits.is_some_and(|digits| digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

fn remove_unlocked(top: &Dir, path: &Path) -> io::Result<()> {
    // Another program may have put a pipe at such a name. Opening it must not block the start.
    let file = top.open_with(path, OpenOptions::new().read(true).custom_flags(O_NONBLOCK))?.into_std();
    // A server that writes this file at the moment holds the lock.
    let _locked = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| error)?;
    top.remove_file(path)
}

/// Returns an unpredictable number, made from the random keys that the system draws for a new hasher.
fn random() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    // The keys of a thread only count up from its first ones, so the hashed value differs, too.
    RandomState::new().hash_one(COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Returns the present time. If the last returned time is not earlier, returns a nanosecond after the last one, so that
/// no two files of this process have the same time. The system's own modification time advances in ticks of some
/// milliseconds, and could not distinguish two versions of a file.
fn stamp() -> SystemTime {
    static LAST: Mutex<u64> = Mutex::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Half of the range leaves room for the steps of 1 below.
    let now = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX / 2);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    *last = now.max(*last + 1);
    UNIX_EPOCH + Duration::from_nanos(*last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_temporary_files_are_recognised_as_such() {
        assert!(is_temporary(&format!("{PREFIX}{:016x}", random())));
        for name in [
            ".coapace-1234-0",
            ".coapace-",
            "coapace-0123456789abcdef",
            ".coapace-0123456789abcdeg",
            ".profile",
        ] {
            assert!(!is_temporary(name), "{name}");
        }
    }

    #[test]
    fn creating_a_file_does_not_overwrite_one_that_another_process_created_first() {
        let folder = std::env::temp_dir().join(format!("coapace-link-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let top = Dir::open_ambient_dir(&folder, cap_std::ambient_authority()).expect("a folder");
        let write = || TemporaryFile::write(&top, Path::new("new"), b"ours").expect("it is written");
        let late = write();
        top.write("new", "theirs").expect("it is written");
        assert_eq!(
            late.link(Path::new("new")).map_err(|error| error.kind()),
            Err(io::ErrorKind::AlreadyExists)
        );
        assert_eq!(top.read_to_string("new").expect("a file"), "theirs");
        write().link(Path::new("other")).expect("nothing is there");
        write().rename(Path::new("new")).expect("it is replaced");
        assert_eq!(top.read_to_string("new").expect("a file"), "ours");
        assert_eq!(top.entries().expect("a folder").count(), 2, "nothing is left over");
        std::fs::remove_dir_all(&folder).expect("it is removed");
    }

    #[test]
    fn no_two_written_files_have_the_same_modification_time() {
        let stamps: Vec<_> = (0..10_000).map(|_| stamp()).collect();
        assert!(stamps.is_sorted_by(|one, next| one < next));
    }
}
