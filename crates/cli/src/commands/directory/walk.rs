//! All files below a directory.

use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, Metadata};

use super::quota::{Files, Usage};

/// Calls `each` with the path of every regular file below a directory. Symbolic links are not followed.
pub(super) fn files(top: &Dir, mut each: impl FnMut(&Path)) {
    let mut ahead = vec![PathBuf::from(".")];
    while let Some(path) = ahead.pop() {
        // A directory may vanish during the walk.
        let Ok(entries) = top.read_dir(&path) else { continue };
        for entry in entries.flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => ahead.push(path.join(entry.file_name())),
                Ok(kind) if kind.is_file() => each(&path.join(entry.file_name())),
                _ => {}
            }
        }
    }
}

impl Files for Dir {
    fn count(&self) -> Usage {
        let mut usage = Usage::default();
        files(self, |path| {
            if let Ok(metadata) = self.symlink_metadata(path) {
                usage.files += 1;
                usage.bytes += metadata.len();
            }
        });
        usage
    }

    fn has(&self, path: &Path) -> bool {
        self.symlink_metadata(path).is_ok_and(|metadata: Metadata| metadata.is_file())
    }
}
