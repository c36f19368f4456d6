//! `coapace sweep`.

use std::path::PathBuf;

use clap::Args;
use coapace_dataset::sweep::Shard;

use super::{Seeds, key_value, seeds};

pub(super) const EXAMPLES_SWEEP: &str = "The directory has Parquet files with a row for each run, and keeps what was done: the same command goes on after an
interruption, and a larger one adds to it. See docs/sweeps.md.

Examples:
  Two mechanisms over a grid of nine conditions, 40 seeds each:
    coapace sweep nb-iot --set clients=10,50,100 --set buffer=2500,14100,1410000 -m default -m cocoa --seeds 40 --to results
  The same on two machines that share a directory:
    coapace sweep nb-iot … --to results --shard 1/2
    coapace sweep nb-iot … --to results --shard 2/2";

#[derive(Debug, Args)]
pub(crate) struct Sweep {
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
    #[arg(long, value_name = "N|N-M", value_parser = seeds)]
    pub(crate) seeds: Option<Seeds>,

    /// The directory of the dataset. What it has is not made again
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,

    /// Make one share of the runs: 2/8 is the second of eight. Each process takes another, in the same directory or
    /// in one of its own whose files are copied together later
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,
}
