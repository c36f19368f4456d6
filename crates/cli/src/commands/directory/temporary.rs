//! Files in the making: written beside what they are to replace, and put in its place as a whole.

use std::fs::{File, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cap_std::fs::{Dir, Metadata, MetadataExt as _, OpenOptions, OpenOptionsExt as _};
use nix::fcntl::{Flock, FlockArg};
use nix::libc::O_NONBLOCK;

/// Beginning of the names of files in the making; 16 hexadecimal digits follow. No request can name a file whose name begins
/// with a dot.
const PREFIX: &str = ".coapace-";

/// Names that are tried. That one is taken is next to impossible.
const ATTEMPTS: usize = 8;

/// A file in the making. It is removed when this is dropped, unless it has found its place.
///
/// It is locked (flock(2)) as long as it is written. The system lifts the lock when the writer ends, however it ends, and
/// by this [`sweep`] tells what a killed writer has left from what another server writes at this moment.
pub(super) struct Temporary<'a> {
    top: &'a Dir,
    path: PathBuf,
    file: Flock<File>,
    placed: bool,
}

impl<'a> Temporary<'a> {
    /// Writes `bytes` beside `path`, through to the disk.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn write(top: &'a Dir, path: &Path, bytes: &[u8]) -> io::Result<Self> {
        let mut temporary = Self::create(top, path)?;
        temporary.file.write_all(bytes)?;
        temporary.file.set_modified(stamp())?;
        temporary.file.sync_all()?;
        Ok(temporary)
    }

    /// Creates an empty file with a name that nobody can foresee, and locks it.
    fn create(top: &'a Dir, path: &Path) -> io::Result<Self> {
        for _ in 0..ATTEMPTS {
            let beside = path.with_file_name(format!("{PREFIX}{:016x}", random()));
            let file = match top.open_with(&beside, OpenOptions::new().write(true).create_new(true)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                file => file?.into_std(),
            };
            // Between these two lines a server that starts may have taken it for a remnant, and removed it.
            let locked = Flock::lock(file, FlockArg::LockExclusiveNonblock);
            match locked {
                Ok(file) if file.metadata()?.nlink() > 0 => {
                    return Ok(Self { top, path: beside, file, placed: false });
                }
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
    /// Those of the system.
    pub(super) fn metadata(&self) -> io::Result<Metadata> {
        Metadata::from_file(&self.file)
    }

    /// Puts it in the place of the file at `path`, with that one's mode and owner.
    ///
    /// # Errors
    /// [`PermissionDenied`](io::ErrorKind::PermissionDenied) if it cannot be given to that owner, and those of the system.
    pub(super) fn replace(self, path: &Path, before: &Metadata) -> io::Result<()> {
        let own = self.file.metadata()?;
        let (user, group) = (before.uid(), before.gid());
        if (own.uid(), own.gid()) != (user, group) {
            fchown(&*self.file, Some(user), Some(group))?;
        }
        // Writing into a file takes its set-user-ID bit away; replacing it does so too.
        self.file.set_permissions(Permissions::from_mode(before.mode() & 0o777))?;
        self.rename(path)
    }

    /// Puts it at `path`, whatever is there.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn rename(mut self, path: &Path) -> io::Result<()> {
        self.top.rename(&self.path, self.top, path)?;
        self.placed = true;
        Ok(())
    }

    /// Puts it at `path`, where nothing is.
    ///
    /// # Errors
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists) if something is, though another process has put it there a moment
    /// ago, and those of the system.
    pub(super) fn link(self, path: &Path) -> io::Result<()> {
        match self.top.hard_link(&self.path, self.top, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            // Some file systems have no links. There other processes may come between.
            Err(_) => self.rename(path),
            Ok(()) => Ok(()),
        }
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.placed {
            let _ = self.top.remove_file(&self.path);
        }
    }
}

/// Removes the files in the making that killed writers have left in a directory and below. A file that is still written is
/// locked, and stays.
pub(super) fn sweep(top: &Dir) {
    let mut ahead = vec![PathBuf::from(".")];
    while let Some(path) = ahead.pop() {
        let Ok(entries) = top.read_dir(&path) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => ahead.push(path.join(name)),
                Ok(kind) if kind.is_file() && name.to_str().is_some_and(is_temporary) => {
                    let _ = remove_unlocked(top, &path.join(name));
                }
                _ => {}
            }
        }
    }
}

/// Returns whether a name is that of a file in the making.
fn is_temporary(name: &str) -> bool {
    let digits = name.strip_prefix(PREFIX);
    digits.is_some_and(|digits| digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

fn remove_unlocked(top: &Dir, path: &Path) -> io::Result<()> {
    let file = top.open_with(path, OpenOptions::new().read(true).custom_flags(O_NONBLOCK))?.into_std();
    let _locked = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| error)?;
    top.remove_file(path)
}

/// Returns a number that nobody can foresee: the system draws the keys of a hasher.
fn random() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    RandomState::new().hash_one(COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Returns the present time, or a nanosecond after the last that was returned if that is later: no two files of this process
/// have the same. The system's own time of modification is the same for everything that is written within a tick of its
/// clock, some milliseconds, and two versions of a file could not be told apart by it.
fn stamp() -> SystemTime {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX / 2);
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(now.max(last + 1)));
    UNIX_EPOCH + Duration::from_nanos(now.max(last.unwrap_or_default() + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_in_the_making_are_known_and_no_others() {
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
    fn a_new_name_is_not_taken_from_another_process_that_was_faster() {
        let folder = std::env::temp_dir().join(format!("coapace-link-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let top = Dir::open_ambient_dir(&folder, cap_std::ambient_authority()).expect("a folder");
        let write = || Temporary::write(&top, Path::new("new"), b"ours").expect("it is written");
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
    fn no_two_files_have_the_same_time() {
        let stamps: Vec<_> = (0..10_000).map(|_| stamp()).collect();
        assert!(stamps.is_sorted_by(|one, next| one < next));
    }
}
