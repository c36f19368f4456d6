//! The reason why a live run failed.

use std::io;

use crate::emulation::EmulationError;

/// The reason why a live run could not be made or completed, in one line.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The scenario or the mechanism cannot run live, for this reason.
    #[error("{0}")]
    Unfit(String),
    /// The operating system refused something.
    #[error("cannot {what}: {error}")]
    Io {
        /// The operation, such as `open a socket`.
        what: &'static str,
        /// The error of the system.
        error: io::Error,
    },
    /// The network could not be emulated.
    #[error(transparent)]
    Emulation(#[from] EmulationError),
    /// The server or client of another stack cannot be used, for this reason.
    #[error("{0}")]
    Peer(String),
    /// The run took longer than it was allowed.
    #[error(
        "{label}, seed {seed}: given up after {after_s:.0} s with {exchanges} exchanges done; does the server answer?"
    )]
    Unfinished {
        /// The mechanism.
        label: String,
        /// The seed.
        seed: u64,
        /// The time that the run was allowed, in seconds.
        after_s: f64,
        /// The exchanges that were completed or given up.
        exchanges: u64,
    },
    /// The run was interrupted.
    #[error("interrupted")]
    Stopped,
}

impl LiveError {
    /// Returns a function that converts an error of the system to a [`LiveError::Io`] with the
    /// operation `what`.
    pub(super) fn io(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self::Io { what, error }
    }
}
