//! Artefacts: a folder with the scenarios, results and hashes of an experiment, so that a reviewer can repeat it.
//!
//! A [`Folder`] receives the files. At its end it writes three files about them: `manifest.json` (a [`Manifest`], which
//! a repetition reads), `ro-crate-metadata.json` (a description for archives, RO-Crate 1.1), and `SHA256SUMS`. The file
//! `SHA256SUMS` is written last, so a folder without it is incomplete. [`verify`] compares every file with its hash.
//! [`Manifest::differing_runs`], [`differing_values`] and [`differing_files`] compare the artefact with a repetition.

mod differences;
mod folder;
mod manifest;
mod ro_crate;
mod sums;

pub use differences::{DifferingRun, DifferingValue, differing_values};
pub use folder::{ArtefactFile, Folder};
pub use manifest::{Manifest, ManifestCell, ProgramVersion, ReproductionRequest};
pub use sums::{Damage, DifferingFile, differing_files, verify};

pub use crate::results::rows;

/// The file name of the manifest, which a repetition reads.
pub const MANIFEST: &str = "manifest.json";

/// The file name of the description required by RO-Crate 1.1.
pub const METADATA: &str = "ro-crate-metadata.json";

/// The file name of the list with the SHA-256 of every other file.
pub const SUMS: &str = "SHA256SUMS";
