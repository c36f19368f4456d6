//! Replaces `artifact.rs` if the command is built without the feature `parquet`, and so without artefacts.

use coapace_lab::experiment::Trial;
use coapace_lab::papers::{Paper, PaperSource};
use coapace_report::Report;

use super::output::Conducted;
use crate::Failure;
use crate::arguments::{Arguments, Reproduce};

/// A type without values, because no artefact can exist.
pub(super) enum Artifact {}

impl Artifact {
    #[allow(clippy::unnecessary_wraps, reason = "it is called like the one that can fail")]
    pub(super) fn asked(_: &Reproduce) -> Result<Option<Self>, Failure> {
        Ok(None)
    }

    pub(super) fn add_results(&mut self, _: &Paper, _: &[Trial], _: &Conducted) -> Result<(), Failure> {
        match *self {}
    }

    pub(super) fn complete(
        self,
        _: &Arguments,
        _: &Reproduce,
        _: &PaperSource,
        _: &Report,
        _: &Conducted,
    ) -> Result<(), Failure> {
        match self {}
    }
}
