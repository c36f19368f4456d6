#![doc = include_str!("../README.md")]
// A command that is left out leaves helpers unused.
#![cfg_attr(
    not(all(feature = "parquet", feature = "tls", emulation)),
    allow(dead_code, clippy::unnecessary_literal_unwrap)
)]

mod activation;
mod addresses;
mod arguments;
mod capture;
mod certificates;
mod commands;
mod credentials;
mod draft;
mod expiry;
mod exporter;
mod failure;
mod interrupt;
mod keys;
mod latencies;
mod logging;
mod lossy;
mod message;
mod partial_file;
mod process;
mod progress;
mod readable;
mod replacement;
mod rights;
#[cfg(feature = "tls")]
mod secure {
    pub(crate) use coapace_net::{BadCertificate, Certificates, Dtls};
}
#[cfg(not(feature = "tls"))]
#[path = "insecure.rs"]
mod secure;
mod shown;
mod supervisor;

use std::io;
use std::process::ExitCode;

pub use coapace_control as control;
use coapace_control::Entry;
use coapace_scenario::naming;

use arguments::Arguments;
pub(crate) use failure::Failure;
use shown::complain;

/// The commit that this binary was built from.
pub(crate) const COMMIT: &str = env!("COAPACE_COMMIT");

/// Runs the command with the arguments of this process. The mechanisms in `own` can be named like the built-in
/// ones. Returns the exit code, which is 2 if one of their names is taken.
pub fn main_with(own: &'static [Entry]) -> ExitCode {
    process::note_start();
    if let Err(problem) = naming::add(own) {
        complain(&problem);
        return ExitCode::from(2);
    }
    let arguments = match Arguments::read() {
        Ok(arguments) => arguments,
        Err(error) => return explain(&error),
    };
    end(commands::dispatch(&arguments))
}

/// Reports the failure of a command, and returns its exit code.
fn end(ended: Result<(), Failure>) -> ExitCode {
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of a pipe has seen enough, like in `coapace … | head`.
        Err(Failure::Io(_, error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(Failure::Ended(code)) => ExitCode::from(code),
        Err(failure) => {
            complain(&failure.to_string());
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Prints help and version like clap does, and a mistake in one line.
fn explain(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        return end(error.print().map_err(Failure::from));
    }
    let text = error.to_string();
    // The first paragraph names the fault. The next suggest corrections, which --help explains better.
    let told = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    complain(&format!("{told}; see coapace --help"));
    ExitCode::from(2)
}
