//! Files that appear at their path only when they are complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tempfile::{Builder, NamedTempFile};

use crate::Failure;

/// The paths of all temporary files so far. Some may have been moved or removed.
static OPEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A file that is written beside its final path and moved there when it is complete. A pipe or a device, such as `/dev/stdout`,
/// is written to directly.
#[derive(Debug)]
pub(crate) struct Draft {
    named: PathBuf,
    target: DraftTarget,
}

#[derive(Debug)]
enum DraftTarget {
    /// The temporary file, and the final path.
    Beside(NamedTempFile, PathBuf),
    Direct(File),
}

impl Draft {
    /// Opens a draft of the file at this path. This happens before the runs, so that an error costs no time.
    pub(crate) fn create(named: &Path) -> Result<Self, Failure> {
        Self::open(named).map_err(|error| Failure::cannot_write(named, error))
    }

    fn open(named: &Path) -> io::Result<Self> {
        // A symbolic link stays: the file it leads to is replaced.
        let place = named.canonicalize().unwrap_or_else(|_| named.to_owned());
        let existing = fs::metadata(&place).ok();
        // The reader of a pipe waits at the pipe itself, so a pipe is not replaced. A directory fails in `open`.
        if existing.as_ref().is_some_and(|existing| !existing.is_file()) {
            let file = OpenOptions::new().write(true).open(&place)?;
            return Ok(Self { named: named.to_owned(), target: DraftTarget::Direct(file) });
        }
        if existing.is_some() {
            // A file that may not be written must not be replaced either.
            OpenOptions::new().append(true).open(&place)?;
        }
        // The umask of the process reduces this mode, as for any new file.
        let permissions = existing.map_or_else(|| fs::Permissions::from_mode(0o666), |it| it.permissions());
        let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // A path such as `..` names no file.
        if place.file_name().is_none() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // Errors about the directory name it, and not the temporary file.
        fs::metadata(folder)?;
        let mut options = OpenOptions::new();
        // `create_new` follows no symbolic link that another user put at the temporary name.
        options.write(true).create_new(true).mode(permissions.mode());
        let file =
            Builder::new().prefix(".coapace-").suffix(".part").make_in(folder, |path| options.open(path))?;
        // The second Ctrl-C ends the process without destructors, so the file has to be known elsewhere.
        if let Ok(mut open) = OPEN.lock() {
            open.push(file.path().to_owned());
        }
        Ok(Self { named: named.to_owned(), target: DraftTarget::Beside(file, place) })
    }

    /// Returns the path as the user typed it.
    pub(crate) fn name(&self) -> String {
        self.named.display().to_string()
    }

    /// Returns the failure of a file that cannot be written.
    pub(crate) fn cannot_write(&self, error: io::Error) -> Failure {
        Failure::cannot_write(&self.named, error)
    }

    /// Returns another handle to write to. Its buffer has to be flushed before the file is moved.
    pub(crate) fn writer(&self) -> Result<BufWriter<File>, Failure> {
        let file = match &self.target {
            DraftTarget::Beside(file, _) => file.as_file(),
            DraftTarget::Direct(file) => file,
        };
        file.try_clone().map(BufWriter::new).map_err(|error| self.cannot_write(error))
    }

    /// Writes the whole content with `write` and moves the file to its path; see [`put`](Self::put).
    pub(crate) fn write(
        self,
        is_complete: bool,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<PathBuf, Failure> {
        let mut file = self.writer()?;
        let written = write(&mut file).and_then(|()| file.flush());
        written.map_err(|error| self.cannot_write(error))?;
        self.put(is_complete)
    }

    /// Moves the file to its path and returns that path. If the content is incomplete and a file exists at the path,
    /// the existing file stays, and the new one is moved to `NAME.incomplete.EXT`.
    pub(crate) fn put(self, is_complete: bool) -> Result<PathBuf, Failure> {
        let Self { named, target } = self;
        let DraftTarget::Beside(file, place) = target else { return Ok(named) };
        let (place, named) = if is_complete || !place.exists() {
            (place, named)
        } else {
            // `named` may be a symbolic link to `place`, so both paths change.
            (incomplete(&place), incomplete(&named))
        };
        match file.persist(place) {
            Ok(_) => Ok(named),
            Err(failed) => Err(Failure::cannot_write(&named, failed.error)),
        }
    }
}

/// Refuses two arguments that name the same file, even by different paths: the second output would overwrite the first.
pub(crate) fn need_a_file_each(arguments: &str, files: &[Option<&Path>]) -> Result<(), Failure> {
    let places: Vec<_> = files.iter().flatten().map(|file| place(file)).collect();
    if places.iter().enumerate().any(|(at, place)| places[..at].contains(place)) {
        return Err(Failure::Usage(format!("{arguments} need different files")));
    }
    Ok(())
}

/// Returns the path of a file with symbolic links resolved. The file need not exist.
fn place(file: &Path) -> PathBuf {
    let there = file.canonicalize().ok();
    // A file that does not exist yet is named by its directory, in which links can be resolved.
    let beside =
        || Some(std::path::absolute(file).ok()?.parent()?.canonicalize().ok()?.join(file.file_name()?));
    there.or_else(beside).unwrap_or_else(|| file.to_owned())
}

/// Removes every temporary file before the process ends at once.
pub(crate) fn remove_all() {
    if let Ok(open) = OPEN.lock() {
        open.iter().for_each(|path| drop(fs::remove_file(path)));
    }
}

fn incomplete(path: &Path) -> PathBuf {
    match path.extension() {
        Some(extension) => path.with_extension(format!("incomplete.{}", extension.to_string_lossy())),
        None => path.with_extension("incomplete"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a folder")
    }

    fn put(path: &Path, text: &str, is_complete: bool) -> PathBuf {
        let draft = Draft::create(path).expect("a draft");
        draft.write(is_complete, |out| out.write_all(text.as_bytes())).expect("it is written")
    }

    #[test]
    fn only_a_complete_draft_replaces_the_file() {
        let folder = folder();
        let path = folder.path().join("report.html");
        assert_eq!(put(&path, "half", false), path, "there is nothing to replace");
        assert_eq!(put(&path, "whole", true), path);
        let beside = put(&path, "half", false);
        assert_eq!(beside, folder.path().join("report.incomplete.html"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        assert_eq!(fs::read_to_string(beside).unwrap(), "half");
        drop(Draft::create(&path).expect("a draft"));
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            2,
            "a draft that is given up leaves nothing"
        );
    }

    #[test]
    fn replacing_a_file_keeps_its_mode_and_its_symbolic_link() {
        let folder = folder();
        let (path, link) = (folder.path().join("a"), folder.path().join("b"));
        put(&path, "one", true);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        put(&link, "two", true);
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn output_to_a_device_is_written_in_place() {
        assert_eq!(put(Path::new("/dev/null"), "x", true), Path::new("/dev/null"));
        assert!(Draft::create(folder().path()).is_err(), "a folder");
        assert!(Draft::create(Path::new("/nowhere/at/all")).is_err());
    }
}
