//! The command line.

mod device;
mod serve;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use coapace_lab::results::Lines;

pub(crate) use device::{
    AnyRequest, Content, Discover, Load, Observe, Ping, Request, Show, Terms, Transmission,
};
pub(crate) use serve::Serve;

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
  Who takes how much from whom at one bottleneck:
    coapace coexist --report coexistence.html
  A published thesis beside what is measured here:
    coapace reproduce raitahila2019 --quick
  Whether a published order of mechanisms holds, and where another one stands:
    coapace reproduce meng2017 -m fasor --report meng2017.html
  What there is to compare:
    coapace list mechanisms
  One mechanism, step by step:
    coapace trace cocoa:preset=libcoap-2019 < script.csv
  Ask a device, with FASOR in place of RFC 7252's timer:
    coapace get coap://[::1]/clock --cc fasor --stats
  Be one:
    coapace serve --resource /greeting=Hello

Exit codes: 0 done, or answered 2.xx; 1 no answer, or what was given cannot be
used; 2 wrong usage; 3 answered with another code, such as 4.04; 130
interrupted: run, reproduce and coexist say and write what they have")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// Print results only: no progress, no remarks
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,

    /// Threads to run on [default: one per core]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a scenario with one or more mechanisms
    Run(Run),
    /// Put every two mechanisms at one bottleneck, half the clients each: who takes how much from whom
    Coexist(Coexist),
    /// Run the experiments of a paper and print what was published beside what is measured
    Reproduce(Reproduce),
    /// Replay a script of events through one mechanism: CSV from standard input to standard output
    #[command(after_help = "Input columns: at_ms,event,draw,answered,exchange
  event     start, timeout, ack, reset or giveup
  draw      the random number of this step, in [0,1); empty is 0
  answered  the transmission that an ack answers, 0 for the first; empty if nothing tells
  exchange  a name where exchanges overlap; empty, or no column, for one at a time
Output columns: at_ms,event,timeout_ms,rto_ms,next_ms
  next_ms   the time until the next confirmable message may depart; empty if it is not paced

Example:
  printf 'at_ms,event,draw,answered\\n0,start,0.5,\\n700,ack,,\\n' | coapace trace fasor")]
    Trace {
        /// The mechanism, as NAME or NAME:parameter=value,…
        mechanism: String,
    },
    /// List what can be named, or say all of one of them
    List {
        /// What to list
        what: Listed,
        /// One mechanism, scenario or paper alone, with all that is known of it
        name: Option<String>,
    },
    /// Measure this machine: controller calls, simulated exchanges and events per CPU second
    Bench,
    /// Read a resource
    #[command(after_help = device::EXAMPLES_GET)]
    Get(Request),
    /// Write a resource
    #[command(after_help = device::EXAMPLES_PUT)]
    Put(Request),
    /// Give a resource something to work on
    #[command(after_help = device::EXIT_CODES)]
    Post(Request),
    /// Remove a resource
    #[command(after_help = device::EXIT_CODES)]
    Delete(Request),
    /// Read what a payload describes of a resource (RFC 8132 §2)
    #[command(after_help = device::EXIT_CODES)]
    Fetch(Request),
    /// Change a resource in part (RFC 8132 §3)
    #[command(after_help = device::EXIT_CODES)]
    Patch(Request),
    /// Change a resource in part, with the same effect however often it is done (RFC 8132 §3)
    #[command(after_help = device::EXIT_CODES)]
    Ipatch(Request),
    /// Make a request of any method
    #[command(after_help = device::EXIT_CODES)]
    Request(AnyRequest),
    /// Print a resource, and again whenever it changes (RFC 7641)
    #[command(after_help = device::EXAMPLES_OBSERVE)]
    Observe(Observe),
    /// List what a server has (RFC 6690)
    #[command(after_help = device::EXAMPLES_DISCOVER)]
    Discover(Discover),
    /// Ask whether anybody is there, with an empty message (RFC 7252 §4.3)
    #[command(after_help = device::EXIT_CODES)]
    Ping(Ping),
    /// Answer requests, until interrupted
    #[command(after_help = serve::EXAMPLES_SERVE)]
    Serve(Serve),
    /// Put a server under load and say what it stands
    #[command(after_help = device::EXAMPLES_LOAD)]
    Load(Load),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// A built-in scenario (coapace list scenarios) or a TOML file (docs/scenarios.md)
    pub(crate) scenario: String,

    /// Change a value of the scenario: one of its knobs, or any key by its path; repeatable. With commas between
    /// values, clients=10,50,100, every combination of all keys is run; a comma that belongs to a value stands in
    /// quotes or brackets
    #[arg(long, value_name = "KEY=VALUE[,VALUE...]", value_parser = key_value)]
    pub(crate) set: Vec<(String, String)>,

    /// A mechanism to run, as NAME or NAME:parameter=value,…, or tcp for CoAP over TCP, or a mix of clients with
    /// different mechanisms, as NAME+NAME or NAME*3+NAME; repeatable [default: the scenario's]
    #[arg(long, short, value_name = "NAME")]
    pub(crate) mechanism: Vec<String>,

    /// Repetitions, with seeds 1 to N, or with seeds N to M [default: the scenario's number]
    #[arg(long, value_name = "N|N-M", value_parser = seeds)]
    pub(crate) seeds: Option<Seeds>,

    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    /// Print one row for each run instead of one for each mechanism (csv and json)
    #[arg(long)]
    pub(crate) each: bool,

    /// Write an HTML report
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Write every chart of the report into this directory as SVG, PDF and PNG, named after the chart
    #[arg(long, value_name = "DIR")]
    pub(crate) figures: Option<PathBuf>,

    /// Write the film of the first mechanism's first run as an animated GIF (scenarios with a mesh)
    #[arg(long, value_name = "FILE")]
    pub(crate) film: Option<PathBuf>,

    /// Write the packets of the first run as pcapng, for Wireshark
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,

    /// Write every event of the first run as CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Coexist {
    /// A built-in scenario (coapace list scenarios) or a TOML file (docs/scenarios.md)
    #[arg(default_value = "coexistence")]
    pub(crate) scenario: String,

    /// Change a value of the scenario: one of its knobs, or any key by its path; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<(String, String)>,

    /// A mechanism to pair with the others, as NAME or NAME:parameter=value,…; repeatable [default: all but tcp]
    #[arg(long, short, value_name = "NAME")]
    pub(crate) mechanism: Vec<String>,

    /// Repetitions of every pair, with seeds 1 to N, or with seeds N to M
    #[arg(long, value_name = "N|N-M", default_value = "3", value_parser = seeds)]
    pub(crate) seeds: Seeds,

    /// What to print: a matrix, or a row for each mechanism with each other
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    /// Write an HTML report with a heat map
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Write every chart of the report into this directory as SVG, PDF and PNG, named after the chart
    #[arg(long, value_name = "DIR")]
    pub(crate) figures: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Reproduce {
    /// The paper (coapace list papers)
    pub(crate) paper: String,

    /// About a minute on two cores: few repetitions, and shorter runs where the paper's are long
    #[arg(long, conflicts_with = "seeds")]
    pub(crate) quick: bool,

    /// A mechanism to run beside those of the paper, under all its conditions; repeatable
    #[arg(long, short, value_name = "NAME")]
    pub(crate) mechanism: Vec<String>,

    /// Repetitions under every condition, with seeds 1 to N, or with seeds N to M, instead of as many as were published
    #[arg(long, value_name = "N|N-M", value_parser = seeds)]
    pub(crate) seeds: Option<Seeds>,

    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    /// Print one row for each run instead of one for each mechanism under each condition (csv and json)
    #[arg(long)]
    pub(crate) each: bool,

    /// Print one row for each published order and ratio, the worst first, instead of one for each mechanism (csv and json)
    #[arg(long)]
    pub(crate) orders: bool,

    /// Write an HTML report
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Write every chart of the report into this directory as SVG, PDF and PNG, named after the chart
    #[arg(long, value_name = "DIR")]
    pub(crate) figures: Option<PathBuf>,
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
    /// Returns how rows for programs are written; `None` for the table.
    pub(crate) fn lines(self) -> Option<Lines> {
        match self {
            Self::Table => None,
            Self::Csv => Some(Lines::Csv),
            Self::Json => Some(Lines::Json),
        }
    }
}

/// Seeds that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seeds {
    pub(crate) first: u64,
    pub(crate) count: u32,
}

/// Reads how many seeds, from 1 on, or the first and the last.
fn seeds(text: &str) -> Result<Seeds, String> {
    let (first, last) = text.split_once('-').unwrap_or(("1", text));
    let number = |text: &str| text.trim().parse::<u32>().ok().filter(|&seed| seed > 0);
    let range = number(first).zip(number(last)).filter(|(first, last)| first <= last);
    let count = range.map(|(first, last)| (first, last - first + 1)).filter(|(_, count)| *count <= 100_000);
    let (first, count) = count.ok_or("expected a number from 1 to 100000, or a range such as 21-40")?;
    Ok(Seeds { first: first.into(), count })
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
    fn seeds_are_a_number_or_a_range() {
        assert_eq!(seeds("20"), Ok(Seeds { first: 1, count: 20 }));
        assert_eq!(seeds("21-40"), Ok(Seeds { first: 21, count: 20 }));
        assert_eq!(seeds("7-7"), Ok(Seeds { first: 7, count: 1 }));
        for text in ["0", "", "-1", "40-21", "0-3", "1-200000", "1-2-3", "x", "100001"] {
            assert!(seeds(text).is_err(), "{text}");
        }
    }
}
