//! The commands that need the simulator: the laboratory and diagnosis.

mod advise;
#[cfg_attr(not(feature = "parquet"), path = "laboratory/no_artifact.rs")]
mod artifact;
mod compare;
mod examine;
#[cfg(emulation)]
mod live;
mod output;
mod pairs;
mod rank;
#[cfg(feature = "parquet")]
mod repeat;
mod reproduce;
mod run;
#[cfg(feature = "parquet")]
mod search;
mod sensitivity;
#[cfg(feature = "parquet")]
mod sweep;
mod trace;

pub(super) use compare::compare;

use crate::Failure;
use crate::arguments::{Arguments, Laboratory};

/// Runs a command of the laboratory.
pub(super) fn dispatch(arguments: &Arguments, command: &Laboratory) -> Result<(), Failure> {
    match command {
        Laboratory::Run(run) => run::run(arguments, run),
        Laboratory::Rank(rank) => rank::rank(arguments, rank),
        Laboratory::Reproduce(reproduce) => reproduce::reproduce(arguments, reproduce),
        #[cfg(feature = "parquet")]
        Laboratory::Search(options) => search::search(arguments, options),
        Laboratory::Trace { mechanism } => trace::trace(mechanism),
        Laboratory::Advise(options) => advise::advise(arguments, options),
        Laboratory::Examine(options) => examine::conduct(arguments, options),
    }
}
