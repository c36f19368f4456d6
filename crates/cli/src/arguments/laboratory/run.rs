//! Arguments of `coapace run`.

use std::path::PathBuf;

use clap::Args;

#[cfg(emulation)]
use super::LiveOptions;
use super::{FigureArguments, OutputFormat, Seeds, Threads, key_value, seeds};
#[cfg(feature = "parquet")]
use coapace_dataset::sweep::Shard;

pub(super) const EXAMPLES_RUN: &str = "Examples:
  A grid of conditions:
    coapace run nb-iot --set clients=10,50,100 --set errors=none,high
  Who takes how much, if every two mechanisms share one bottleneck?
    coapace run coexistence --pairs
  Two mechanisms under three conditions, 40 seeds each, into Parquet files with
  a row for each run. The same command goes on after an interruption, and a
  larger one adds to the directory (docs/sweeps.md):
    coapace run nb-iot --set clients=10,50,100 -m default -m cocoa --seeds 40 \\
      --to results
  Half of these runs on each of two machines that share a directory:
    coapace run nb-iot … --to results --shard 1/2
    coapace run nb-iot … --to results --shard 2/2";

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// A built-in scenario (coapace list scenarios) or a TOML file (docs/scenarios.md)
    pub(crate) scenario: String,

    /// Change a value of the scenario: one of its knobs (coapace list scenarios), or any key by its path; repeatable. Several
    /// values separated by commas, such as clients=10,50,100, make a grid: every combination is run. Put a comma that belongs
    /// to a value in quotes or brackets
    #[arg(long, value_name = "KEY=VALUE[,VALUE...]", value_parser = key_value)]
    pub(crate) set: Vec<(String, String)>,

    /// A mechanism to run, as NAME or NAME:parameter=value,…; tcp is CoAP over TCP. NAME+NAME or NAME*3+NAME mixes clients with
    /// different mechanisms. Repeatable [default: the scenario's; with --pairs all but tcp, or all bulk mechanisms if every
    /// client makes a transfer]
    #[arg(long, short, value_name = "NAME")]
    pub(crate) mechanism: Vec<String>,

    /// Repetitions: N uses the seeds 1 to N, N-M the seeds N to M [default: the scenario's number]
    #[arg(long, value_name = "N|N-M", allow_hyphen_values = true, value_parser = seeds)]
    pub(crate) seeds: Option<Seeds>,

    /// Let every two mechanisms share the network, half the clients each, or half the clients with transfers (docs/bulk.md)
    #[arg(long, conflicts_with_all = ["each", "film", "pcap", "trace"])]
    #[cfg_attr(feature = "parquet", arg(conflicts_with = "to"))]
    #[cfg_attr(emulation, arg(conflicts_with = "live"))]
    pub(crate) pairs: bool,

    /// Write a row for each run into Parquet files in this directory. Runs that are already there are not repeated
    #[cfg(feature = "parquet")]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["format", "each", "report", "figures", "film", "pcap", "trace"])]
    #[cfg_attr(emulation, arg(conflicts_with = "live"))]
    pub(crate) to: Option<PathBuf>,

    /// With --to, make only a part of the runs: 2/8 is the second of eight parts. Each process makes another part, in the same
    /// directory or in its own, whose files are copied together later
    #[cfg(feature = "parquet")]
    #[arg(long, value_name = "I/N", allow_hyphen_values = true, requires = "to")]
    pub(crate) shard: Option<Shard>,

    /// The output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    pub(crate) format: OutputFormat,

    /// Print one row for each run instead of one for each mechanism (csv and json)
    #[arg(long)]
    pub(crate) each: bool,

    /// Write an HTML report
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) figures: FigureArguments,

    /// Write an animation of the first mechanism's first run as a GIF (scenarios with a mesh)
    #[arg(long, value_name = "FILE")]
    pub(crate) film: Option<PathBuf>,

    /// Write the packets of the first run as pcapng, for Wireshark
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,

    /// Write every event of the first run as CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,

    #[cfg(emulation)]
    #[command(flatten)]
    pub(crate) live: LiveOptions,

    #[command(flatten)]
    pub(crate) threads: Threads,
}
