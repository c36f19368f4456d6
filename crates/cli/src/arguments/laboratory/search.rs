//! Arguments of `coapace search`.

use std::path::PathBuf;

use clap::Args;
use coapace_lab::search::networks::Networks;
use coapace_lab::search::space::Varied;
use coapace_lab::search::terms::SearchTerms;

use super::Threads;
use super::seeds::seed;

pub(super) const EXAMPLES_SEARCH: &str =
    "Without --vary, compares the mechanisms with the best published one on each scenario.

Examples:
  How near is FASOR to the best mechanism on 72 random networks?
    coapace search fasor fasor-token
  Which K and which dither would serve better?
    coapace search fasor-token --vary min_rto=10ms..1s --vary initial_k='1|2|4' --journal fasor.jsonl";

#[derive(Debug, Args)]
pub(crate) struct SearchArguments {
    /// A mechanism, as NAME or NAME:parameter=value,…; a mix is not allowed with --vary
    #[arg(required = true)]
    pub(crate) mechanism: Vec<String>,

    /// A parameter to vary: a list of values, or a range that is divided into eight equal ratios; repeatable
    #[arg(long, value_name = "PARAM=A|B|… or PARAM=LOW..HIGH", value_parser = Varied::parse)]
    pub(crate) vary: Vec<Varied>,

    /// The kind of random networks: mixed (links, and a few small meshes) or meshes (larger and harsher ones, with flows)
    #[arg(long, value_name = "KIND", value_parser = Networks::parse, default_value_t = Networks::default())]
    pub(crate) networks: Networks,

    /// The seed from which scenarios are drawn
    #[arg(long, value_name = "N", default_value_t = SearchTerms::GENERATOR_SEED, value_parser = seed)]
    pub(crate) generator_seed: u64,

    /// The number of random scenarios, 9 to 10,000; with mixed networks, half as many in addition show how a mechanism shares a
    /// link with `default`
    #[arg(long, value_name = "N", default_value_t = SearchTerms::SCENARIOS)]
    pub(crate) scenarios: u32,

    /// The number of brackets of successive halving (Hyperband), each of about 40 evaluations
    #[arg(long, value_name = "N", default_value_t = SearchTerms::BRACKETS)]
    pub(crate) brackets: u32,

    /// The seed of the search among parameters
    #[arg(long, value_name = "N", default_value_t = SearchTerms::SEED, value_parser = seed)]
    pub(crate) seed: u64,

    /// Store measurements in this file, and continue after the measurements that are in it
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,

    /// Print a line for each scenario
    #[arg(long)]
    pub(crate) each: bool,

    #[command(flatten)]
    pub(crate) threads: Threads,
}
