#![doc = include_str!("../README.md")]

mod arguments;
mod beside;
mod capture;
mod certificates;
mod commands;
mod credentials;
mod draft;
mod exporter;
mod interrupt;
mod keys;
mod latencies;
mod logging;
mod lossy;
mod message;
mod process;
mod progress;
mod readable;
mod shown;

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use coap_numbers::code;
pub use coapace_control as control;
use coapace_control::Entry;
use coapace_lab::naming;
use coapace_lab::scenario::ScenarioError;

use arguments::{Arguments, Command};

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments are invalid: exit code 2.
    Usage(String),
    /// The input cannot be used: exit code 1.
    Input(String),
    /// Reading or writing failed: exit code 1.
    Io(String, io::Error),
    /// There is no answer: exit code 1.
    Network(String),
    /// The answer has a code other than 2.xx: exit code 3.
    Refused(String),
    /// Ctrl-C came before the end: exit code 130.
    Interrupted(String),
}

impl Failure {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Input(_) | Self::Io(..) | Self::Network(_) => 1,
            Self::Usage(_) => 2,
            Self::Refused(_) => 3,
            Self::Interrupted(_) => interrupt::EXIT_CODE,
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
            Self::Io(what, error) => write!(f, "{what}: {error}"),
        }
    }
}

impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Self {
        if error.is_usage() { Self::Usage(error.to_string()) } else { Self::Input(error.to_string()) }
    }
}

/// Converts an error of writing to standard output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io("standard output".to_owned(), error)
    }
}

/// Runs the command with the arguments of this process. The mechanisms in `own` can be named like the built-in
/// ones. Returns the exit code, which is 2 if one of their names is taken.
pub fn main_with(own: &'static [Entry]) -> ExitCode {
    process::note_start();
    if let Err(problem) = naming::add(own) {
        complain(&problem);
        return ExitCode::from(2);
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return explain(&error),
    };
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of a pipe has seen enough, like in `coapace … | head`.
        Err(Failure::Io(_, error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            complain(&failure.to_string());
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Prints one line to standard error. If that fails, the exit code has to suffice.
fn complain(message: &str) {
    shown::tell(&format!("coapace: {message}"));
}

/// Prints help and version like clap does, and a mistake in one line.
fn explain(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        return if error.print().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let text = error.to_string();
    // The first paragraph says what is wrong. The next suggest corrections, which --help explains better.
    let told = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    complain(&format!("{told}; see coapace --help"));
    ExitCode::from(2)
}

fn dispatch(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        None => commands::compare(arguments),
        Some(Command::Run(run)) => commands::run(arguments, run),
        Some(Command::Coexist(coexist)) => commands::coexist(arguments, coexist),
        Some(Command::Reproduce(reproduce)) => commands::reproduce(arguments, reproduce),
        Some(Command::Trace { mechanism }) => commands::trace(mechanism),
        Some(Command::List { what, name }) => {
            commands::list(*what, name.as_deref(), &mut io::stdout().lock())
        }
        Some(Command::Bench) => commands::bench(arguments),
        Some(Command::Get(get)) => commands::request(arguments, code::GET, get),
        Some(Command::Put(put)) => commands::request(arguments, code::PUT, put),
        Some(Command::Post(post)) => commands::request(arguments, code::POST, post),
        Some(Command::Delete(delete)) => commands::request(arguments, code::DELETE, delete),
        Some(Command::Fetch(fetch)) => commands::request(arguments, code::FETCH, fetch),
        Some(Command::Patch(patch)) => commands::request(arguments, code::PATCH, patch),
        Some(Command::Ipatch(ipatch)) => commands::request(arguments, code::IPATCH, ipatch),
        Some(Command::Request(any)) => commands::request(arguments, any.method.0, &any.request),
        Some(Command::Observe(observe)) => commands::observe(arguments, observe),
        Some(Command::Discover(discover)) => commands::discover(arguments, discover),
        Some(Command::Ping(ping)) => commands::ping(arguments, ping),
        Some(Command::Serve(serve)) => commands::serve(arguments, serve),
        Some(Command::Load(load)) => commands::load(arguments, load),
        Some(Command::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Arguments::command(), "coapace", &mut script);
            Ok(io::stdout().lock().write_all(&script)?)
        }
    }
}
