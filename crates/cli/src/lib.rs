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
mod http;
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

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::sync::OnceLock;

pub use coapace_control as control;
use coapace_control::Entry;
use coapace_scenario::naming;

use arguments::Arguments;
pub(crate) use failure::Failure;
use shown::complain;

/// The commit that this binary was built from.
pub(crate) const COMMIT: &str = env!("COAPACE_COMMIT");

/// The words of the command line; the first is the name of the command.
static WORDS: OnceLock<Vec<OsString>> = OnceLock::new();

/// Runs the command with the arguments of this process. The mechanisms in `own` can be used by name like the built-in
/// ones. Returns the exit code, which is 2 if the name of a mechanism in `own` is taken or malformed.
pub fn main_with(own: &'static [Entry]) -> ExitCode {
    ExitCode::from(run(std::env::args_os(), own))
}

/// Runs the command with these words, the name of the command first, like [`main_with`]. A process can run it once. Returns the
/// exit code.
pub fn run(words: impl IntoIterator<Item = OsString>, own: &'static [Entry]) -> u8 {
    process::note_start();
    if let Err(problem) = naming::add(own) {
        complain(&problem);
        return 2;
    }
    let words = WORDS.get_or_init(|| words.into_iter().collect());
    // The mechanisms come first, because help and errors list them.
    let arguments = match Arguments::read(words) {
        Ok(arguments) => arguments,
        Err(error) => return explain(&error),
    };
    end(commands::dispatch(&arguments))
}

/// Returns the words of the command line after the name of the command.
pub(crate) fn words() -> &'static [OsString] {
    WORDS.get().and_then(|words| words.get(1..)).unwrap_or_default()
}

/// Reports the failure of a command, and returns its exit code.
fn end(ended: Result<(), Failure>) -> u8 {
    match ended {
        Ok(()) => 0,
        // The reader of a pipe has seen enough, like in `coapace … | head`.
        Err(Failure::Io(_, error)) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        // The program has reported its failure itself.
        Err(Failure::Ended(code)) => code,
        Err(failure) => {
            complain(&failure.to_string());
            failure.exit_code()
        }
    }
}

/// Prints help and version like clap does, and a usage error in one line.
fn explain(error: &clap::Error) -> u8 {
    if !error.use_stderr() {
        // Help and version go to standard output, where a reader such as `head` may close the pipe.
        return end(error.print().map_err(Failure::from));
    }
    let text = error.to_string();
    // The first paragraph names the fault. The next suggest corrections, which --help explains better.
    let message = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    complain(&format!("{message}; see coapace --help"));
    2
}
