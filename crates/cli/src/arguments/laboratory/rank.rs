//! Arguments of `coapace rank`.

use std::path::PathBuf;

use clap::Args;

use super::{OutputFormat, Seeds, Threads, key_value, seeds};

pub(super) const EXAMPLES_RANK: &str = "A suite is a TOML file with `title` and `[[entries]]`, each with a `scenario` or a `paper`, and with `set` (knobs and keys; lists make a grid), `seeds` and `metrics` if they are not the scenario's: see docs/rank.md.

Examples:
  Which one for my network?
    coapace rank my.toml
  Every mechanism in every cell of five papers, with a heat map:
    coapace rank published --report rank.html
  Two candidates beside the default, on other seeds:
    coapace rank lossy -m fasor-token -m cocoa -m default --seeds 101-120";

#[derive(Debug, Args)]
pub(crate) struct Rank {
    /// Suites (published, bottleneck, mesh, lossy), built-in scenarios, or TOML files of either
    #[arg(value_name = "SUITE|SCENARIO", default_value = "published")]
    pub(crate) suite: Vec<String>,

    /// A mechanism to compare, as NAME or NAME:parameter=value,…; repeatable. At least one must be published and have random
    /// timeouts: the best of these is the baseline [default: all but tcp]
    #[arg(long, short, value_name = "NAME")]
    pub(crate) mechanism: Vec<String>,

    /// Change a value of every scenario: one of its knobs, or any key by its path; repeatable. Several values separated by
    /// commas make a grid
    #[arg(long, value_name = "KEY=VALUE[,VALUE...]", value_parser = key_value)]
    pub(crate) set: Vec<(String, String)>,

    /// Repetitions of every cell: N uses the seeds 1 to N, N-M the seeds N to M [default: the suite's or the scenario's]
    #[arg(long, value_name = "N|N-M", allow_hyphen_values = true, value_parser = seeds)]
    pub(crate) seeds: Option<Seeds>,

    /// The output format; csv and json have a row for each metric of each mechanism in each cell
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    pub(crate) format: OutputFormat,

    /// Write an HTML report with a heat map of cells and mechanisms
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) threads: Threads,
}
