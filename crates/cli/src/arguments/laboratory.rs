//! The commands that need the simulator.

mod advise;
mod examine;
mod figures;
#[cfg(emulation)]
mod live;
mod rank;
mod reproduce;
mod run;
#[cfg(feature = "parquet")]
mod search;
mod seeds;

use clap::Subcommand;

pub(crate) use advise::{Advise, CaptureSide};
pub(crate) use examine::{Examine, Verdicts};
pub(crate) use figures::FigureArguments;
#[cfg(emulation)]
pub(crate) use live::LiveOptions;
pub(crate) use rank::Rank;
pub(crate) use reproduce::Reproduce;
pub(crate) use run::RunArguments;
#[cfg(feature = "parquet")]
pub(crate) use search::SearchArguments;
#[cfg(emulation)]
pub(crate) use seeds::seed;
pub(crate) use seeds::{Seeds, seeds};

use super::{OutputFormat, Threads, key_value};

/// Commands of the laboratory and of diagnosis.
#[derive(Debug, Subcommand)]
pub(crate) enum Laboratory {
    /// Run a scenario with one or more mechanisms
    #[command(after_help = run::EXAMPLES_RUN)]
    Run(RunArguments),
    /// Recommend a mechanism for many conditions
    #[command(after_help = rank::EXAMPLES_RANK)]
    Rank(Rank),
    /// Repeat the experiments of a paper and compare the results
    #[command(after_help = reproduce::EXAMPLES_REPRODUCE)]
    Reproduce(Reproduce),
    /// Search for parameters of a mechanism on random networks
    #[cfg(feature = "parquet")]
    #[command(after_help = search::EXAMPLES_SEARCH)]
    Search(SearchArguments),
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
    /// Infer a network from a capture, and recommend a mechanism for it
    ///
    /// Reports what a capture of CoAP shows of its network, and what each mechanism would have done there.
    #[command(after_help = advise::EXAMPLES_ADVISE)]
    Advise(Advise),
    /// Judge any CoAP client or server by the RFCs
    #[command(after_help = examine::EXAMPLES_EXAMINE)]
    Examine(Examine),
}

impl Laboratory {
    /// Returns the number of threads given on the command line.
    pub(super) fn jobs(&self) -> Option<u16> {
        match self {
            Self::Run(run) => run.threads.jobs,
            Self::Rank(rank) => rank.threads.jobs,
            Self::Reproduce(reproduce) => reproduce.threads.jobs,
            #[cfg(feature = "parquet")]
            Self::Search(search) => search.threads.jobs,
            _ => None,
        }
    }
}
