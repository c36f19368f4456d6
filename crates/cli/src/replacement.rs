//! A file that is replaced as a whole, and only once new content is complete.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file to be written. The existing file at its path stays unchanged until [`replace`](Self::replace) is called.
pub(crate) struct FileReplacement {
    path: PathBuf,
    /// The open file: a regular file only after `replace`, a pipe or a device from the beginning.
    file: Option<File>,
    /// The bytes written before `replace`.
    pending: Vec<u8>,
}

impl FileReplacement {
    /// Checks that `path` can be written, without a change to it.
    ///
    /// # Errors
    /// Errors of the system.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        // A symbolic link stays: the file it leads to is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let there = OpenOptions::new().append(true).open(&path);
        let file = match there {
            // Opening to append proves the permission and changes nothing.
            Ok(file) if file.metadata()?.is_file() => None,
            Ok(pipe) => Some(pipe),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Creating a file is the only sure test that the directory can be written.
                let (_, beside) = create(&path)?;
                fs::remove_file(beside)?;
                None
            }
            Err(error) => return Err(error),
        };
        Ok(Self { path, file, pending: Vec::new() })
    }

    /// Replaces the file at the path by a new one with everything written so far. Later writes go directly into the new file.
    ///
    /// # Errors
    /// Errors of the system. The old file then stays unchanged.
    pub(crate) fn replace(&mut self) -> io::Result<()> {
        // A pipe or a device was opened at the start, and a file that was replaced is open already.
        if self.file.is_some() {
            return Ok(());
        }
        let (mut file, beside) = match create(&self.path) {
            // No file can be created in this directory, so the file itself is overwritten.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let mut file = File::create(&self.path)?;
                file.write_all(&std::mem::take(&mut self.pending))?;
                self.file = Some(file);
                return Ok(());
            }
            created => created?,
        };
        // The content is on the disk before the name leads to it, so a power cut leaves the old file or the new one.
        let written = self.fill(&mut file).and_then(|()| fs::rename(&beside, &self.path));
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        written?;
        self.file = Some(file);
        self.pending = Vec::new();
        Ok(())
    }

    fn fill(&self, file: &mut File) -> io::Result<()> {
        // The new file gets the mode of the old one before it gets the content, which others might otherwise read.
        if let Ok(before) = fs::metadata(&self.path) {
            file.set_permissions(before.permissions())?;
        }
        file.write_all(&self.pending)?;
        file.sync_all()
    }
}

impl Write for FileReplacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.file {
            Some(file) => file.write(bytes),
            None => self.pending.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), File::flush)
    }
}

/// Creates an empty file in the directory of `path`, and returns it with its path.
fn create(path: &Path) -> io::Result<(File, PathBuf)> {
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?.to_string_lossy();
    // The name is unpredictable, so another user cannot occupy it in a shared directory such as /tmp.
    let beside = path.with_file_name(format!(".{name}.{:08x}", RandomState::new().hash_one(0) as u32));
    Ok((OpenOptions::new().write(true).create_new(true).open(&beside)?, beside))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the file names in the directory of this test.
    fn names(folder: &Path) -> Vec<String> {
        let entries =
            fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_stays_unchanged_until_it_is_replaced_as_a_whole() {
        let folder = std::env::temp_dir().join(format!("coapace-beside-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let (path, link) = (folder.join("file"), folder.join("link"));
        fs::write(&path, "before").expect("a file");
        std::os::unix::fs::symlink("file", &link).expect("a link");
        let content = || fs::read_to_string(&path).expect("a file");
        let mut beside = FileReplacement::open(&link).expect("it can be written");
        beside.write_all(b"one").expect("it is kept");
        assert_eq!((content().as_str(), names(&folder).len()), ("before", 2));
        beside.replace().expect("it is replaced");
        assert_eq!(content(), "one");
        beside.write_all(b" two").expect("it is written");
        assert_eq!((content().as_str(), names(&folder)), ("one two", vec!["file".into(), "link".into()]));
        assert!(
            FileReplacement::open(&folder).is_err()
                && FileReplacement::open(&folder.join("no/file")).is_err()
        );
        let _ = FileReplacement::open(&folder.join("new")).expect("it can be written");
        assert_eq!(names(&folder).len(), 2, "nothing is left of the attempt");
        fs::remove_dir_all(&folder).expect("it is removed");
    }
}
