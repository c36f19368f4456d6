//! The command line.

mod bound;
mod client_keys;
mod device;
#[cfg(emulation)]
mod emulate;
#[cfg(feature = "lab")]
mod laboratory;
mod playground;
#[cfg(feature = "tls")]
mod relay;
mod serve;
mod transmission;
mod trust;

use std::ffi::OsString;
use std::fmt::Write;
use std::path::PathBuf;

use clap::{Arg, Args, Command as Grammar, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
#[cfg(feature = "lab")]
use coapace_lab::output::RowFormat;

pub(crate) use bound::SharedBound;
pub(crate) use client_keys::ClientKeys;
pub(crate) use device::{
    AnyRequest, Discover, Gathering, Load, ObserveArguments, Ping, RequestArguments, RequestContent,
    RequestOptions, Show,
};
#[cfg(emulation)]
pub(crate) use emulate::Emulate;
#[cfg(feature = "lab")]
pub(crate) use laboratory::*;
pub(crate) use playground::Playground;
#[cfg(feature = "tls")]
pub(crate) use relay::RelayArguments;
pub(crate) use serve::Serve;
pub(crate) use transmission::TransmissionArguments;
pub(crate) use trust::Trust;

/// Congestion control for CoAP: talk to devices, compare mechanisms, reproduce published experiments.
///
/// Without a command, compares all mechanisms on an NB-IoT-like link with 100 clients, prints a table and writes
/// coapace-report.html.
#[derive(Debug, Parser)]
#[command(version = concat!(env!("CARGO_PKG_VERSION"), " (", env!("COAPACE_COMMIT"), ")"))]
#[command(after_help = "Examples:
  Compare all mechanisms and write coapace-report.html:
    coapace
  Two mechanisms under heavy load, with a buffer that is never full:
    coapace run nb-iot --set clients=400 -m default -m fasor
  A grid of conditions:
    coapace run nb-iot --set clients=10,50,100 --set errors=none,high
  A lossy link, as CSV:
    coapace run nb-iot --set errors=high --seeds 40 --format csv > lossy.csv
  Two mechanisms on real sockets, in real time, beside the simulation:
    coapace run nb-iot --live -m default -m cocoa --seeds 1
  Let every two mechanisms share one bottleneck:
    coapace run coexistence --pairs --report coexistence.html
  Which mechanism should I use in my network, and which one in most networks?
    coapace rank my.toml
    coapace rank published
  Repeat the experiments of a thesis and compare the results:
    coapace reproduce raitahila2019 --quick
  Check a published order of mechanisms, and add another mechanism:
    coapace reproduce meng2017 -m fasor --report meng2017.html
  Write an artefact for reviewers, and check that its runs can be repeated:
    coapace reproduce raitahila2019 --quick --artifact raitahila
    coapace reproduce --check raitahila
  List the mechanisms:
    coapace list mechanisms
  One mechanism, step by step:
    coapace trace cocoa:preset=libcoap-2019 < script.csv
  Read from a device, with FASOR in place of RFC 7252's timer:
    coapace get coap://[::1]/clock --cc fasor --stats
  Serve a resource:
    coapace serve --resource /greeting=Hello

Exit codes: 0 done, or answered 2.xx; 1 no answer, or the input cannot be used;
2 wrong usage; 3 answered with another code, such as 4.04, or reproduce --check
found a difference; 130 interrupted: run, reproduce and load then print and
write the results so far

coapace completions SHELL prints a completion script, and coapace man DIR writes
manual pages.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// Print only results: no progress, no remarks
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) threads: Threads,
}

/// The number of threads of commands that make many runs.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Threads {
    /// Threads to run on [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
}

/// The headings in the list of commands of the help, each with its commands.
// Hidden commands (completions, man) are under no heading.
const HEADINGS: [(&str, &[&str]); 4] = [
    ("Laboratory", &["run", "rank", "reproduce", "search", "trace", "list", "new", "check", "playground"]),
    ("Client", &["get", "put", "post", "delete", "request", "observe", "discover", "ping", "load"]),
    ("Services", &["serve", "relay", "emulate"]),
    ("Diagnosis", &["examine", "advise"]),
];

impl Arguments {
    /// Parses a command line, which begins with the name of the command.
    ///
    /// # Errors
    /// An invalid command line, or a request for the help or the version.
    pub(crate) fn read(words: &[OsString]) -> Result<Self, clap::Error> {
        Self::from_arg_matches(&Self::grammar().try_get_matches_from(words)?)
    }

    /// Returns the grammar of the command line for clap, with the commands of its help under headings.
    pub(crate) fn grammar() -> Grammar {
        let grammar = taking_negative_numbers(Self::command());
        // The longer texts are about the laboratory.
        #[cfg(not(feature = "lab"))]
        let grammar = grammar.long_about(None).after_help(device::EXIT_CODES);
        let mut commands = String::new();
        for (heading, names) in HEADINGS {
            // Without a feature some commands are missing, and all of a heading may be.
            let found =
                names.iter().filter_map(|name| Some((name, grammar.find_subcommand(name)?.get_about()?)));
            let lines =
                // `playground`, the longest name, has 10 characters.
                found.map(|(name, about)| format!("  {name:<10} {about}\n")).collect::<Vec<_>>().concat();
            if !lines.is_empty() {
                // Writing to a string does not fail.
                let _ = write!(commands, "{heading}:\n{lines}\n");
            }
        }
        // clap's own template has no headings between commands.
        grammar.help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{commands}Options:\n{{options}}{{after-help}}"
        ))
    }

    /// Returns the number of threads for runs; 0 means one per core.
    pub(crate) fn jobs(&self) -> usize {
        let own = match &self.command {
            #[cfg(feature = "lab")]
            Some(Command::Laboratory(laboratory)) => laboratory.jobs(),
            Some(Command::Load(load)) => load.threads.jobs,
            _ => None,
        };
        // `--jobs` may be before or after the command; the one after it is nearer, so it wins.
        own.or(self.threads.jobs).map_or(0, usize::from)
    }
}

/// Lets every option take a negative number as its value, so that the error of `-B -1` names the time instead of an option
/// `-1`.
fn taking_negative_numbers(grammar: Grammar) -> Grammar {
    let is_option = |argument: &Arg| !argument.is_positional() && argument.get_action().takes_values();
    let taking = |argument: Arg| {
        let takes = is_option(&argument) && !argument.is_allow_hyphen_values_set();
        if takes { argument.allow_negative_numbers(true) } else { argument }
    };
    grammar.mut_args(taking).mut_subcommands(taking_negative_numbers)
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[cfg(feature = "lab")]
    #[command(flatten)]
    Laboratory(Laboratory),
    /// List or describe mechanisms, scenarios or papers
    List {
        /// The kind of things to list
        what: Listed,
        /// The mechanism, scenario or paper to describe in full
        name: Option<String>,
        /// Print the TOML file of a scenario unchanged
        #[arg(long)]
        toml: bool,
        /// Print the keys of scenario files as a JSON Schema, for editors
        #[arg(long, conflicts_with_all = ["toml", "name"])]
        schema: bool,
    },
    /// Write a scenario file as a starting point
    #[command(after_help = "Examples:
  A network of your own, with a comment beside each key:
    coapace new my-network && coapace check my-network.toml
  One that resembles a built-in scenario:
    coapace new my-mesh --from mesh-grid")]
    New {
        /// The name of the file, without .toml
        name: PathBuf,
        /// Copy this scenario: a built-in one, or a file
        #[arg(long, value_name = "SCENARIO")]
        from: Option<String>,
    },
    /// Check scenario files: every key, every choice, and one run
    Check {
        /// The files
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Read a resource
    #[command(after_help = device::EXAMPLES_GET)]
    Get(RequestArguments),
    /// Write a resource
    #[command(after_help = device::EXAMPLES_PUT)]
    Put(RequestArguments),
    /// Send a payload for a resource to process
    #[command(after_help = device::EXIT_CODES)]
    Post(RequestArguments),
    /// Remove a resource
    #[command(after_help = device::EXIT_CODES)]
    Delete(RequestArguments),
    /// Make a request with any method: fetch, patch, ipatch (RFC 8132)
    #[command(after_help = device::EXIT_CODES)]
    Request(AnyRequest),
    /// Print a resource now and whenever it changes (RFC 7641)
    #[command(after_help = device::EXAMPLES_OBSERVE)]
    Observe(ObserveArguments),
    /// List the resources of a server (RFC 6690)
    #[command(after_help = device::EXAMPLES_DISCOVER)]
    Discover(Discover),
    /// Check whether a server answers an empty message (RFC 7252 §4.3)
    #[command(after_help = device::EXIT_CODES)]
    Ping(Ping),
    /// Serve the playground, a page that runs the laboratory in a browser
    #[command(after_help = playground::EXAMPLES_PLAYGROUND)]
    Playground(Playground),
    /// Answer requests until interrupted
    #[command(after_help = serve::EXAMPLES_SERVE)]
    Serve(Serve),
    /// Put a relay with a mechanism before clients or servers without one
    ///
    /// The relay is placed between clients and a server, or beside a server.
    #[cfg(feature = "tls")]
    #[command(after_help = relay::EXAMPLES_RELAY)]
    Relay(RelayArguments),
    /// Carry packets of real programs through the network of a scenario
    #[cfg(emulation)]
    #[command(after_help = emulate::EXAMPLES_EMULATE)]
    Emulate(Emulate),
    /// Put a server under load, and report its throughput and latencies
    #[command(after_help = device::EXAMPLES_LOAD)]
    Load(Load),
    /// Print a completion script for a shell
    #[command(hide = true)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write manual pages: coapace.1, and one for each command
    #[command(hide = true)]
    Man {
        /// The directory to write into, which must exist
        directory: PathBuf,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Listed {
    /// Congestion control mechanisms, with parameters and presets
    Mechanisms,
    /// Built-in scenarios, with their knobs
    Scenarios,
    /// Papers whose experiments can be reproduced
    #[cfg(feature = "lab")]
    Papers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Aligned columns, for people
    Table,
    /// Comma-separated values with a header
    Csv,
    /// A JSON object on each line
    Json,
}

#[cfg(feature = "lab")]
impl OutputFormat {
    /// Returns the format of rows for csv and json; `None` for the table.
    pub(crate) fn lines(self) -> Option<RowFormat> {
        match self {
            Self::Table => None,
            Self::Csv => Some(RowFormat::Csv),
            Self::Json => Some(RowFormat::Json),
        }
    }
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_visible_command_is_under_one_heading_and_the_list_fits_80_columns() {
        let grammar = Arguments::grammar();
        let visible = grammar.get_subcommands().filter(|command| !command.is_hide_set());
        let mut visible: Vec<_> = visible.map(Grammar::get_name).collect();
        let mut listed = HEADINGS.map(|(_, names)| names).concat();
        assert_eq!(listed.len(), 23);
        visible.sort_unstable();
        listed.sort_unstable();
        assert_eq!(visible, listed);
        let help = Arguments::grammar().render_help().to_string();
        let commands = help.lines().skip_while(|line| *line != "Laboratory:");
        let widest = commands.take_while(|line| *line != "Options:").map(|line| line.chars().count()).max();
        assert!(widest <= Some(80) && widest > Some(60), "{help}");
    }
}
