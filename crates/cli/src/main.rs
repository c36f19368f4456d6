//! The command `coapace`: arguments and printing only.

mod arguments;
mod commands;
mod progress;

use std::fmt;
use std::io;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use arguments::{Arguments, Command};

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What was asked for cannot be understood: exit code 2.
    Usage(String),
    /// What was given to work on cannot be used: exit code 1.
    Input(String),
    /// Reading or writing failed: exit code 1.
    Io(String, io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) | Self::Input(message) => f.write_str(message),
            Self::Io(what, error) => write!(f, "{what}: {error}"),
        }
    }
}

/// Writing to standard output failed.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io("standard output".to_owned(), error)
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads has seen enough: `coapace … | head`.
        Err(Failure::Io(_, error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("coapace: {failure}");
            ExitCode::from(if matches!(failure, Failure::Usage(_)) { 2 } else { 1 })
        }
    }
}

fn dispatch(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        None => commands::compare(arguments),
        Some(Command::Run(run)) => commands::run(arguments, run),
        Some(Command::Reproduce(reproduce)) => commands::reproduce(arguments, reproduce),
        Some(Command::Trace { mechanism }) => commands::trace(mechanism),
        Some(Command::List { what }) => Ok(commands::list(*what, &mut io::stdout().lock())?),
        Some(Command::Bench) => commands::bench(arguments),
        Some(Command::Completions { shell }) => {
            clap_complete::generate(*shell, &mut Arguments::command(), "coapace", &mut io::stdout());
            Ok(())
        }
    }
}
