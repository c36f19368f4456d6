//! The laboratory: runs of scenarios, their metrics, and what papers published of them.
//!
//! * An experiment is a list of [trials](experiment::Trial): a scenario with one [contender](contender::Contender), which is
//!   a mechanism, a mix of several, or TCP.
//! * A [run](run::run) is a trial with one seed. It makes a [`RunResult`](results::RunResult).
//! * A [cell](results::CellResult) is all runs of a trial: one scenario with one value for each of its knobs, and one contender.
//! * A [film](results::Film) is what the nodes of a mesh did in a run, moment by moment.

pub mod bench;
pub mod capture;
pub mod coexistence;
pub mod contender;
pub mod experiment;
pub mod grid;
pub mod mix;
mod nodes;
pub mod papers;
pub mod replay;
pub mod results;
pub mod run;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
