//! Arguments of `coapace run`.

use std::path::PathBuf;

use clap::Args;

#[cfg(target_os = "linux")]
use super::LiveOptions;
use super::{Figures, Format, Seeds, key_value, seeds};

/// The conditions, mechanisms and seeds of runs.
#[derive(Debug, Args)]
pub(crate) struct Experiment {
    /// A built-in scenario (coapace list scenarios) or a TOML file (docs/scenarios.md)
    pub(crate) scenario: String,

    /// Change a value of the scenario: one of its knobs (coapace list scenarios), or any key by its path;
    /// repeatable. Several values with commas between them, such as clients=10,50,100, make a grid: every
    /// combination is run. Put a comma that belongs to a value in quotes or brackets
    #[arg(long, value_name = "KEY=VALUE[,VALUE...]", value_parser = key_value)]
    pub(crate) set: Vec<(String, String)>,

    /// A mechanism to run, as NAME or NAME:parameter=value,…; tcp is CoAP over TCP. NAME+NAME or NAME*3+NAME mixes
    /// clients with different mechanisms. Repeatable [default: the scenario's]
    #[arg(long, short, value_name = "NAME")]
    pub(crate) mechanism: Vec<String>,

    /// Repetitions: N takes the seeds 1 to N, N-M the seeds N to M [default: the scenario's number]
    #[arg(long, value_name = "N|N-M", allow_hyphen_values = true, value_parser = seeds)]
    pub(crate) seeds: Option<Seeds>,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) experiment: Experiment,

    /// The output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    /// Print one row for each run, not one for each mechanism (csv and json)
    #[arg(long)]
    pub(crate) each: bool,

    /// Write an HTML report
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) figures: Figures,

    /// Write an animation of the first mechanism's first run as a GIF (scenarios with a mesh)
    #[arg(long, value_name = "FILE")]
    pub(crate) film: Option<PathBuf>,

    /// Write the packets of the first run as pcapng, for Wireshark
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,

    /// Write every event of the first run as CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,

    #[cfg(target_os = "linux")]
    #[command(flatten)]
    pub(crate) live: LiveOptions,
}
