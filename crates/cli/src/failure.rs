//! The failures of commands, and their exit codes.

use std::fmt;
use std::io;
use std::path::Path;

use coapace_scenario::ScenarioError;

/// Exit code of a command that was interrupted: 128 and the number of SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// The cause of a command's failure.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line cannot be understood: exit code 2.
    Usage(String),
    /// An input, such as a file, cannot be used: exit code 1.
    Input(String),
    /// Reading or writing failed: exit code 1.
    Io(String, io::Error),
    /// No answer arrived: exit code 1.
    Network(String),
    /// The answer is an error response: exit code 3.
    Refused(String),
    /// Ctrl-C came before the end: exit code 130.
    Interrupted(String),
    /// A program that was run for the user, such as COMMAND of `emulate`, ended with this exit code, and has reported the
    /// reason itself.
    Ended(u8),
}

impl Failure {
    /// Returns the failure of a file or a directory that cannot be written.
    pub(crate) fn cannot_write(path: &Path, error: io::Error) -> Self {
        Self::Io(format!("cannot write {}", path.display()), error)
    }

    /// Appends words to the message of a network failure or an interruption.
    #[must_use]
    pub(crate) fn and(self, words: &str) -> Self {
        match self {
            Self::Network(message) => Self::Network(message + words),
            Self::Interrupted(message) => Self::Interrupted(message + words),
            other => other,
        }
    }

    /// Returns the exit code of the program.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Input(_) | Self::Io(..) | Self::Network(_) => 1,
            Self::Usage(_) => 2,
            Self::Refused(_) => 3,
            Self::Interrupted(_) => INTERRUPTED,
            Self::Ended(code) => *code,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message)
            | Self::Input(message)
            | Self::Network(message)
            | Self::Refused(message)
            | Self::Interrupted(message) => f.write_str(message),
            Self::Ended(code) => write!(f, "the program ended with {code}"),
            Self::Io(what, error) => write!(f, "{what}: {error}"),
        }
    }
}

impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Self {
        if error.is_usage() { Self::Usage(error.to_string()) } else { Self::Input(error.to_string()) }
    }
}

/// A failure to write to standard output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io("standard output".to_owned(), error)
    }
}
