#![doc = include_str!("../README.md")]

mod arguments;
mod beside;
mod capture;
mod certificates;
mod commands;
mod credentials;
mod draft;
mod exporter;
mod failure;
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

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
pub use coapace_control as control;
use coapace_control::Entry;
use coapace_net::Code;
use coapace_scenario::naming;

use arguments::{Arguments, Command};
pub(crate) use failure::Failure;
use shown::complain;

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
        Some(Command::Get(get)) => commands::request(arguments, Code::GET, get),
        Some(Command::Put(put)) => commands::request(arguments, Code::PUT, put),
        Some(Command::Post(post)) => commands::request(arguments, Code::POST, post),
        Some(Command::Delete(delete)) => commands::request(arguments, Code::DELETE, delete),
        Some(Command::Fetch(fetch)) => commands::request(arguments, Code::FETCH, fetch),
        Some(Command::Patch(patch)) => commands::request(arguments, Code::PATCH, patch),
        Some(Command::Ipatch(ipatch)) => commands::request(arguments, Code::IPATCH, ipatch),
        Some(Command::Request(any)) => commands::request(arguments, any.method, &any.request),
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
