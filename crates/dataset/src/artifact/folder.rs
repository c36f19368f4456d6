//! The folder of an artefact while it is written.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use coapace_lab::directory;

use super::sums::{self, hex};
use super::{MANIFEST, METADATA, Manifest, SUMS, ro_crate};

/// A folder that takes the files of an artefact. It is whole after [`finish`](Self::finish), and not before.
#[derive(Debug)]
pub struct Folder {
    /// The path; `None` if nothing is written.
    root: Option<PathBuf>,
    files: Vec<ArtefactFile>,
}

/// A file of an artefact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtefactFile {
    /// The path in the folder, with `/` between its parts.
    pub path: String,
    /// The SHA-256, in 64 hexadecimal digits.
    pub sha256: String,
    /// The length in bytes.
    pub bytes: usize,
}

impl Folder {
    /// Creates a folder, or takes one that is there and empty.
    ///
    /// # Errors
    /// Fails as the system does, or if the folder has files.
    pub fn create(root: &Path) -> io::Result<Self> {
        directory::create(root)?;
        if fs::read_dir(root)?.next().transpose()?.is_some() {
            return Err(io::Error::new(io::ErrorKind::DirectoryNotEmpty, "it has files; name a new folder"));
        }
        Ok(Self { root: Some(root.to_owned()), files: Vec::new() })
    }

    /// Makes a folder that writes nothing and keeps the hashes of its files, for a comparison with an artefact.
    pub fn unwritten() -> Self {
        Self { root: None, files: Vec::new() }
    }

    /// Returns the path of the folder; `None` if nothing is written.
    pub fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// Writes a file. `path` is relative and has `/` between its parts.
    ///
    /// # Errors
    /// Fails as the system does.
    pub fn add(&mut self, path: &str, content: &[u8]) -> io::Result<()> {
        if let Some(root) = &self.root {
            let place = root.join(path);
            if let Some(parent) = place.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(place, content)?;
        }
        self.files.push(ArtefactFile { path: path.to_owned(), sha256: hex(content), bytes: content.len() });
        Ok(())
    }

    /// Writes the manifest, the metadata, and the hashes of all files, which are returned. The artefact is whole after this.
    ///
    /// # Errors
    /// Fails as the system does.
    pub fn finish(mut self, manifest: &Manifest) -> io::Result<Vec<ArtefactFile>> {
        let text = serde_json::to_string_pretty(manifest)? + "\n";
        self.add(MANIFEST, text.as_bytes())?;
        let text = serde_json::to_string_pretty(&ro_crate::metadata(manifest, &self.files))? + "\n";
        self.add(METADATA, text.as_bytes())?;
        if let Some(root) = &self.root {
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
    fn a_whole_artefact_is_verified_and_a_changed_byte_and_a_missing_file_are_told() {
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
        let told = [Damage::Changed("results/runs.csv".to_owned()), Damage::Missing("README.md".to_owned())];
        assert_eq!(verify(&root).unwrap(), told);
    }

    #[test]
    fn files_that_were_made_again_are_compared_with_those_of_the_folder_whatever_their_recorded_hashes() {
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
        let told: Vec<_> = differing_files(&root, &again).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "page.md is not the one that is made again",
                "results/runs.csv is made again, and is missing",
                "extra.csv is recorded, and not made again"
            ]
        );
    }

    #[test]
    fn a_line_of_the_hashes_that_leads_out_of_the_folder_is_refused() {
        let root = tempfile::tempdir().unwrap();
        for line in ["../secret", "/etc/passwd", "", "a/../../b"] {
            fs::write(root.path().join(SUMS), format!("{}  {line}\n", "ab".repeat(32))).unwrap();
            let error = verify(root.path()).unwrap_err();
            assert!(error.to_string().contains("line 1"), "{line}: {error}");
        }
    }
}
