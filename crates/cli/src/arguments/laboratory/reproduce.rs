//! Arguments of `coapace reproduce`.

use std::path::PathBuf;

use clap::Args;

#[cfg(emulation)]
use super::LiveOptions;
use super::{FigureArguments, OutputFormat, Seeds, Threads, seeds};

pub(super) const EXAMPLES_REPRODUCE: &str = "Examples:
  A minute of the experiments of a thesis:
    coapace reproduce raitahila2019 --quick
  An artefact for reviewers, and its check:
    coapace reproduce raitahila2019 --quick --artifact raitahila
    coapace reproduce --check raitahila

--check compares every file with its hash, then every run with the recorded
one, then every value, and then every file with the one that is made again,
byte for byte. It takes the command line, the program and the moment of writing
as recorded. It names an edited ro-crate-metadata.json, to which authors and a
licence may be added, and does not compare it.

Exit codes of --check: 0 identical; 3 a file, a run or a value differs; 1 the
folder lacks a part of an artefact; 130 interrupted";

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // Each is a flag of the command line.
pub(crate) struct Reproduce {
    /// The paper (coapace list papers)
    #[cfg_attr(feature = "parquet", arg(value_name = "PAPER", required_unless_present = "check"))]
    #[cfg_attr(not(feature = "parquet"), arg(value_name = "PAPER", required = true))]
    pub(crate) paper: Option<String>,

    /// Check the artefact in this directory: repeat its runs, regenerate its files, and report differences
    #[cfg(feature = "parquet")]
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = [
            "paper", "quick", "mechanism", "seeds", "format", "each", "orders", "report", "sensitivity", "markdown", "figures",
            "artifact",
        ]
    )]
    pub(crate) check: Option<PathBuf>,

    /// Take about a minute on two cores: few repetitions, and shorter runs if the paper's are long
    #[arg(long, conflicts_with = "seeds")]
    pub(crate) quick: bool,

    /// A mechanism to run in addition to the paper's, under all its conditions; repeatable
    #[arg(long, short, value_name = "NAME")]
    pub(crate) mechanism: Vec<String>,

    /// Repetitions under every condition: N uses the seeds 1 to N, N-M the seeds N to M [default: from the paper's file: the
    /// published number, or more so that fewer rankings are inconclusive]
    #[arg(long, value_name = "N|N-M", allow_hyphen_values = true, value_parser = seeds)]
    pub(crate) seeds: Option<Seeds>,

    /// The output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    pub(crate) format: OutputFormat,

    /// Print one row for each run instead of one for each mechanism under each condition (csv and json)
    #[arg(long)]
    pub(crate) each: bool,

    /// Print one row for each published ranking and ratio, the worst first, instead of one for each mechanism (csv and json)
    #[arg(long)]
    pub(crate) orders: bool,

    /// Write an HTML report
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Vary the conditions that the paper does not state, one at a time and in pairs, and count the published values and
    /// rankings that each variant confirms. Takes as long as reproducing the paper many times; combine it with --quick or
    /// --seeds
    #[arg(long, conflicts_with_all = ["mechanism", "each", "orders", "figures", "markdown"])]
    #[cfg_attr(feature = "parquet", arg(conflicts_with = "artifact"))]
    #[cfg_attr(emulation, arg(conflicts_with = "live"))]
    pub(crate) sensitivity: bool,

    /// Write a page of Markdown with every published value and ranking beside our results
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) figures: FigureArguments,

    /// Write all that a reviewer needs into this new or empty directory: scenarios, results as Parquet and CSV, the report, and
    /// the hashes with which `--check` decides whether runs are identical (docs/artifact.md)
    #[cfg(feature = "parquet")]
    #[arg(long, value_name = "DIR")]
    #[cfg_attr(emulation, arg(conflicts_with = "live"))]
    pub(crate) artifact: Option<PathBuf>,

    #[cfg(emulation)]
    #[command(flatten)]
    pub(crate) live: LiveOptions,

    #[command(flatten)]
    pub(crate) threads: Threads,
}
