//! The folder of an artefact that is being written.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use coapace_lab::directory;

use super::sums::{self, hex};
use super::{MANIFEST, METADATA, Manifest, SUMS, ro_crate};

/// A folder for the files of an artefact. It is complete only after [`finish`](Self::finish).
#[derive(Debug)]
pub struct Folder {
    /// The path of the folder; `None` if files are only hashed, and not written.
    root: Option<PathBuf>,
    files: Vec<ArtefactFile>,
}

/// A file of an artefact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtefactFile {
    /// The path of the file in the folder, with `/` between its parts.
    pub path: String,
    /// The SHA-256, in 64 hexadecimal digits.
    pub sha256: String,
    /// The length in bytes.
    pub bytes: usize,
}

impl Folder {
    /// Creates a folder, or uses an empty one.
    ///
    /// # Errors
    /// Errors of the file system, or a folder that contains files.
    pub fn create(root: &Path) -> io::Result<Self> {
        directory::create(root)?;
        // Files of an earlier artefact would stay beside the new ones, without hashes.
        if fs::read_dir(root)?.next().transpose()?.is_some() {
            return Err(io::Error::new(io::ErrorKind::DirectoryNotEmpty, "it has files; name a new folder"));
        }
        Ok(Self { root: Some(root.to_owned()), files: Vec::new() })
    }

    /// Makes a folder that hashes its files but does not write them, for a comparison with an artefact.
    pub fn unwritten() -> Self {
        Self { root: None, files: Vec::new() }
    }

    /// Returns the path of the folder; `None` if files are only hashed, and not written.
    pub fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// Writes a file, and adds its hash to the list. `path` is relative and has `/` between its parts.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn add(&mut self, path: &str, content: &[u8]) -> io::Result<()> {
        if let Some(root) = &self.root {
            let place = root.join(path);
            if let Some(parent) = place.parent() {
                // Scenarios lie in a folder of their own: `scenarios/NAME.toml`.
                fs::create_dir_all(parent)?;
            }
            fs::write(place, content)?;
        }
        // A folder without a path needs the hashes, too: they are all that a comparison reads.
        self.files.push(ArtefactFile { path: path.to_owned(), sha256: hex(content), bytes: content.len() });
        Ok(())
    }

    /// Writes the manifest, the metadata, and the list of hashes. The artefact is then complete. Returns all files with
    /// their hashes, except the list itself.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn finish(mut self, manifest: &Manifest) -> io::Result<Vec<ArtefactFile>> {
        let text = serde_json::to_string_pretty(manifest)? + "\n";
        self.add(MANIFEST, text.as_bytes())?;
        // After the manifest, which the metadata has to list. The metadata does not list itself.
        let text = serde_json::to_string_pretty(&ro_crate::metadata(manifest, &self.files))? + "\n";
        self.add(METADATA, text.as_bytes())?;
        if let Some(root) = &self.root {
            // Written last, so a folder without it was not finished. It has no hash of itself.
            fs::write(root.join(SUMS), sums::written(&self.files))?;
        }
        Ok(self.files)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Damage, differing_files, verify};
    use super::*;
    use crate::artifact::manifest::tests::{manifest, results};

    #[test]
    fn verification_of_an_artefact_reports_a_changed_byte_and_a_missing_file() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("a/b");
        let mut folder = Folder::create(&root).unwrap();
        folder.add("results/runs.csv", b"seed\n1\n").unwrap();
        folder.add("README.md", b"Repeat it.\n").unwrap();
        assert_eq!(verify(&root).unwrap_err().kind(), io::ErrorKind::NotFound, "it is not whole yet");
        folder.finish(&manifest(&results())).unwrap();
        assert_eq!(verify(&root).unwrap(), []);
        assert_eq!(Folder::create(&root).unwrap_err().kind(), io::ErrorKind::DirectoryNotEmpty);

        fs::write(root.join("results/runs.csv"), b"seed\n2\n").unwrap();
        fs::remove_file(root.join("README.md")).unwrap();
        let damages =
            [Damage::Changed("results/runs.csv".to_owned()), Damage::Missing("README.md".to_owned())];
        assert_eq!(verify(&root).unwrap(), damages);
    }

    #[test]
    fn regenerated_files_are_compared_with_the_artefacts_files_and_not_with_its_hashes() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("a");
        let fill = |mut folder: Folder| {
            folder.add("page.md", b"1 of 2 met\n").unwrap();
            folder.add("results/runs.csv", b"seed\n1\n").unwrap();
            folder.finish(&manifest(&results())).unwrap()
        };
        fill(Folder::create(&root).unwrap());
        let again = fill(Folder::unwritten());
        assert_eq!(differing_files(&root, &again).unwrap(), []);

        fs::write(root.join("page.md"), b"2 of 2 met\n").unwrap();
        fs::remove_file(root.join("results/runs.csv")).unwrap();
        fs::write(root.join("extra.csv"), b"x").unwrap();
        let sums = format!("{}  page.md\n{}  extra.csv\n", hex(b"2 of 2 met\n"), hex(b"x"));
        fs::write(root.join(SUMS), sums).unwrap();
        assert_eq!(verify(&root).unwrap(), [], "the hashes were written again");
        let lines: Vec<_> = differing_files(&root, &again).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "page.md differs from the repeated file",
                "results/runs.csv is missing, and the repetition makes it",
                "extra.csv is recorded, and the repetition does not make it"
            ]
        );
    }

    #[test]
    fn a_path_in_sha256sums_that_leads_out_of_the_artefact_is_refused() {
        let root = tempfile::tempdir().unwrap();
        for line in ["../secret", "/etc/passwd", "", "a/../../b"] {
            fs::write(root.path().join(SUMS), format!("{}  {line}\n", "ab".repeat(32))).unwrap();
            let error = verify(root.path()).unwrap_err();
            assert!(error.to_string().contains("line 1"), "{line}: {error}");
        }
    }
}
