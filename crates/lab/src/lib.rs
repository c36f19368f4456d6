//! The laboratory: many [runs](coapace_run) of scenarios, their metrics, and the published values that they are compared with.
//!
//! * A *knob* is a short name for settings of a scenario. A *condition* is a scenario with a value for each knob.
//! * An *experiment* is a list of [trials](experiment::Trial). A trial is a condition with one
//!   [contender](coapace_run::contender::Contender).
//! * A [cell](results::CellResult) is all runs of a trial.
//! * A *metric* is a quantity of a run or of a cell, such as the median flow completion time (FCT).
//! * The *standing* of a mechanism is its results when it shares a network with each of the others in turn; in a
//!   [ranking](rank), its results over many conditions.

pub mod coexistence;
pub mod directory;
pub mod experiment;
pub mod grid;
pub mod journal;
pub mod lists;
pub mod lock;
pub mod number;
pub mod output;
pub mod papers;
pub mod rank;
pub mod replay;
pub mod results;
pub mod search;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
