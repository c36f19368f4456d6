//! The command line.

mod advise;
mod bound;
mod client_keys;
mod device;
#[cfg(target_os = "linux")]
mod emulate;
mod examine;
mod figures;
#[cfg(target_os = "linux")]
mod live;
mod relay;
mod reproduce;
mod run;
mod seeds;
mod serve;
mod transmission;
mod trust;

use std::fmt::Write;
use std::path::PathBuf;

use coapace_lab::search::networks::Networks;
use coapace_lab::search::space::Varied;
use coapace_lab::search::terms::Terms as SearchTerms;

use clap::{Arg, Args, Command as Grammar, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use coapace_lab::results::Lines;

pub(crate) use advise::{Advise, CaptureSide};
pub(crate) use bound::Bound;
pub(crate) use client_keys::ClientKeys;
pub(crate) use device::{
    AnyRequest, Content, Discover, Gathering, Load, Observe, Ping, Request, Show, Terms,
};
#[cfg(target_os = "linux")]
pub(crate) use emulate::Emulate;
pub(crate) use examine::{Examine, Verdicts};
pub(crate) use figures::Figures;
#[cfg(target_os = "linux")]
pub(crate) use live::LiveOptions;
pub(crate) use relay::Relay;
pub(crate) use reproduce::Reproduce;
pub(crate) use run::Run;
use seeds::seed;
pub(crate) use seeds::{Seeds, seeds};
pub(crate) use serve::Serve;
pub(crate) use transmission::Transmission;
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
  Which mechanism should I use in my network, and which one without thinking?
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

    /// Print results only: no progress, no remarks
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) threads: Threads,
}

/// The threads of commands that make many runs.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Threads {
    /// Threads to run on [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
}

/// The commands under their headings.
const HEADINGS: [(&str, &[&str]); 4] = [
    ("Laboratory", &["run", "rank", "reproduce", "search", "trace", "list"]),
    ("Client", &["get", "put", "post", "delete", "request", "observe", "discover", "ping", "load"]),
    ("Services", &["serve", "relay", "emulate"]),
    ("Diagnosis", &["examine", "advise"]),
];

impl Arguments {
    /// Reads the command line of this process.
    ///
    /// # Errors
    /// Fails if it cannot be understood, or asks for the help or the version.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        Self::from_arg_matches(&Self::grammar().try_get_matches()?)
    }

    /// Returns the grammar of the command line, with the commands of its help under headings.
    pub(crate) fn grammar() -> Grammar {
        let grammar = taking_negative_numbers(Self::command());
        let mut commands = String::new();
        for (heading, names) in HEADINGS {
            let _ = writeln!(commands, "{heading}:");
            for name in names {
                if let Some(about) = grammar.find_subcommand(name).and_then(Grammar::get_about) {
                    let _ = writeln!(commands, "  {name:<10} {about}");
                }
            }
            commands.push('\n');
        }
        grammar.help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{commands}Options:\n{{options}}{{after-help}}"
        ))
    }

    /// Returns the number of threads for runs; 0 means one per core.
    pub(crate) fn jobs(&self) -> usize {
        let own = match &self.command {
            Some(Command::Run(run)) => run.threads.jobs,
            Some(Command::Rank(rank)) => rank.threads.jobs,
            Some(Command::Reproduce(reproduce)) => reproduce.threads.jobs,
            Some(Command::Search(search)) => search.threads.jobs,
            Some(Command::Load(load)) => load.threads.jobs,
            _ => None,
        };
        own.or(self.threads.jobs).map_or(0, usize::from)
    }
}

/// Lets every option take a negative number as its value, so that the error of `-B -1` is about the time and not about an
/// option `-1`.
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
    /// Run a scenario with one or more mechanisms
    #[command(after_help = run::EXAMPLES_RUN)]
    Run(Run),
    /// Say which mechanism to use over many conditions
    #[command(
        after_help = "A suite is a TOML file with `title` and `[[entries]]`, each with a `scenario` or a `paper`, and with `set` (knobs and keys; lists make a grid), `seeds` and `metrics` if they are not the scenario's: see docs/rank.md.

Examples:
  Which one for my network?
    coapace rank my.toml
  Every mechanism in every cell of five papers, with a heat map:
    coapace rank published --report rank.html
  Two candidates and what they are measured by, on other seeds:
    coapace rank lossy -m fasor-token -m cocoa -m default --seeds 101-120"
    )]
    Rank(Rank),
    /// Run the experiments of a paper beside what it published
    #[command(after_help = reproduce::EXAMPLES_REPRODUCE)]
    Reproduce(Reproduce),
    /// Search for parameters of a mechanism on networks drawn at random
    #[command(
        after_help = "Without --vary, compares the mechanisms with the best published one on each scenario.

Examples:
  How near is FASOR to the best on 72 networks that nobody chose?
    coapace search fasor fasor-token
  Which K and which dither would serve better?
    coapace search fasor-token --vary min_rto=10ms..1s --vary initial_k='1|2|4' --journal fasor.jsonl"
    )]
    Search(Search),
    /// Replay a script of events through one mechanism
    ///
    /// Reads CSV from standard input, and writes CSV to standard output.
    #[command(after_help = "Input columns: at_ms,event,draw,answered,exchange
  event     start, timeout, ack, reset or giveup
  draw      the random number of this step, in [0,1); empty is 0
  answered  the transmission that an ack answers, 0 for the first; empty if unknown
  exchange  a name, needed where exchanges overlap; else empty, or no column
Output columns: at_ms,event,timeout_ms,rto_ms,next_ms
  next_ms   the time until the next confirmable message may depart; empty if it is not paced

Example:
  printf 'at_ms,event,draw,answered\\n0,start,0.5,\\n700,ack,,\\n' | coapace trace fasor")]
    Trace {
        /// The mechanism, as NAME or NAME:parameter=value,…
        mechanism: String,
    },
    /// List or describe mechanisms, scenarios or papers
    List {
        /// The kind of things to list
        what: Listed,
        /// The mechanism, scenario or paper to describe in full
        name: Option<String>,
    },
    /// Read a capture: what its network did, and what to use there
    ///
    /// Says what a capture of CoAP shows of its network, and what each mechanism would have done there.
    #[command(after_help = advise::EXAMPLES_ADVISE)]
    Advise(Advise),
    /// Read a resource
    #[command(after_help = device::EXAMPLES_GET)]
    Get(Request),
    /// Write a resource
    #[command(after_help = device::EXAMPLES_PUT)]
    Put(Request),
    /// Send a payload for a resource to process
    #[command(after_help = device::EXIT_CODES)]
    Post(Request),
    /// Remove a resource
    #[command(after_help = device::EXIT_CODES)]
    Delete(Request),
    /// Make a request with any method: fetch, patch, ipatch (RFC 8132)
    #[command(after_help = device::EXIT_CODES)]
    Request(AnyRequest),
    /// Print a resource now and whenever it changes (RFC 7641)
    #[command(after_help = device::EXAMPLES_OBSERVE)]
    Observe(Observe),
    /// List the resources of a server (RFC 6690)
    #[command(after_help = device::EXAMPLES_DISCOVER)]
    Discover(Discover),
    /// Check whether a server answers an empty message (RFC 7252 §4.3)
    #[command(after_help = device::EXIT_CODES)]
    Ping(Ping),
    /// Answer requests until interrupted
    #[command(after_help = serve::EXAMPLES_SERVE)]
    Serve(Serve),
    /// Run a mechanism for clients or servers that cannot
    ///
    /// The relay lies between clients and a server, or in front of a server.
    #[command(after_help = relay::EXAMPLES_RELAY)]
    Relay(Relay),
    /// Carry packets of real programs through a scenario's network
    #[cfg(target_os = "linux")]
    #[command(after_help = emulate::EXAMPLES_EMULATE)]
    Emulate(Emulate),
    /// Put a server under load, and report how much it handles
    #[command(after_help = device::EXAMPLES_LOAD)]
    Load(Load),
    /// Judge a CoAP client or server of any make by the RFCs
    #[command(after_help = examine::EXAMPLES_EXAMINE)]
    Examine(Examine),
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

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// A mechanism, as NAME or NAME:parameter=value,…; with --vary, one that is not a mix
    #[arg(required = true)]
    pub(crate) mechanism: Vec<String>,

    /// A parameter to vary: a list of values, or a range of eight equal ratios; repeatable
    #[arg(long, value_name = "PARAM=A|B|… or PARAM=LOW..HIGH", value_parser = Varied::parse)]
    pub(crate) vary: Vec<Varied>,

    /// The networks that are drawn: mixed (links, and a few small meshes) or meshes (larger and harsher ones, with flows)
    #[arg(long, value_name = "KIND", value_parser = Networks::parse, default_value_t = Networks::default())]
    pub(crate) networks: Networks,

    /// The seed of the scenarios that are drawn
    #[arg(long, value_name = "N", default_value_t = SearchTerms::GENERATOR_SEED, value_parser = seed)]
    pub(crate) generator_seed: u64,

    /// The scenarios that are drawn, 9 to 10,000; with mixed networks, half as many more show how a mechanism shares with `default`
    #[arg(long, value_name = "N", default_value_t = SearchTerms::SCENARIOS)]
    pub(crate) scenarios: u32,

    /// Brackets of successive halving, of about 40 evaluations each
    #[arg(long, value_name = "N", default_value_t = SearchTerms::BRACKETS)]
    pub(crate) brackets: u32,

    /// The seed of the search
    #[arg(long, value_name = "N", default_value_t = SearchTerms::SEED, value_parser = seed)]
    pub(crate) seed: u64,

    /// Keep what is measured in this file, and go on from what it has
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,

    /// Print a line for each scenario
    #[arg(long)]
    pub(crate) each: bool,

    #[command(flatten)]
    pub(crate) threads: Threads,
}

#[derive(Debug, Args)]
pub(crate) struct Rank {
    /// Suites (published, bottleneck, mesh, lossy), built-in scenarios, or TOML files of either
    #[arg(value_name = "SUITE|SCENARIO", default_value = "published")]
    pub(crate) suite: Vec<String>,

    /// A mechanism to compare, as NAME or NAME:parameter=value,…; repeatable. At least one has to be published and
    /// dithered: the others are measured by it [default: all but tcp]
    #[arg(long, short, value_name = "NAME")]
    pub(crate) mechanism: Vec<String>,

    /// Change a value of every scenario: one of its knobs, or any key by its path; repeatable. Several values with commas
    /// between them make a grid
    #[arg(long, value_name = "KEY=VALUE[,VALUE...]", value_parser = key_value)]
    pub(crate) set: Vec<(String, String)>,

    /// Repetitions in every cell: N takes the seeds 1 to N, N-M the seeds N to M [default: the suite's or the scenario's]
    #[arg(long, value_name = "N|N-M", allow_hyphen_values = true, value_parser = seeds)]
    pub(crate) seeds: Option<Seeds>,

    /// The output format; csv and json have a row for each figure of each mechanism in each cell
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    /// Write an HTML report with a heat map of cells and mechanisms
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) threads: Threads,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Listed {
    /// Congestion control mechanisms, with parameters and presets
    Mechanisms,
    /// Built-in scenarios, with their knobs
    Scenarios,
    /// Papers whose experiments can be reproduced
    Papers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns, for people
    Table,
    /// Comma-separated values with a header
    Csv,
    /// One JSON object a line
    Json,
}

impl Format {
    /// Returns the format of rows for programs; `None` for the table.
    pub(crate) fn lines(self) -> Option<Lines> {
        match self {
            Self::Table => None,
            Self::Csv => Some(Lines::Csv),
            Self::Json => Some(Lines::Json),
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
        assert_eq!(listed.len(), 20);
        visible.sort_unstable();
        listed.sort_unstable();
        assert_eq!(visible, listed);
        let help = Arguments::grammar().render_help().to_string();
        let commands = help.lines().skip_while(|line| *line != "Laboratory:");
        let widest = commands.take_while(|line| *line != "Options:").map(|line| line.chars().count()).max();
        assert!(widest <= Some(80) && widest > Some(60), "{help}");
    }
}
