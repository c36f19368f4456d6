//! `coapace sweep`.

use std::path::PathBuf;

use clap::Args;
use coapace_dataset::sweep::Shard;

use super::run::Experiment;

pub(super) const EXAMPLES_SWEEP: &str = "The directory has Parquet files with a row for each run, and keeps what was done: the same command goes on after an
interruption, and a larger one adds to it. See docs/sweeps.md.

Examples:
  Two mechanisms over a grid of nine conditions, 40 seeds each:
    coapace sweep nb-iot --set clients=10,50,100 --set buffer=2500,14100,1410000 -m default -m cocoa --seeds 40 --to results
  Half of the runs on each of two machines that share a directory:
    coapace sweep nb-iot … --to results --shard 1/2
    coapace sweep nb-iot … --to results --shard 2/2";

#[derive(Debug, Args)]
pub(crate) struct Sweep {
    #[command(flatten)]
    pub(crate) experiment: Experiment,

    /// The directory of the dataset. Runs that it has are not made again
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,

    /// Make one share of the runs: 2/8 is the second of eight. Each process takes another, in the same directory or
    /// in one of its own whose files are copied together later
    #[arg(long, value_name = "I/N", allow_hyphen_values = true)]
    pub(crate) shard: Option<Shard>,
}
