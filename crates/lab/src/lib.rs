//! The laboratory: runs of scenarios, their metrics, and the published figures that they are compared with.
//!
//! * A *contender* is a mechanism, a mix of several, or CoAP over TCP. A *population* is the clients of a mix that have the
//!   same mechanism.
//! * A *knob* is a short name for settings of a scenario. A *condition* is a scenario with a value for each knob.
//! * An *experiment* is a list of [trials](experiment::Trial). A trial is a condition with one
//!   [contender](contender::Contender).
//! * A [run](run::run) is a trial with one seed. It makes a [`RunResult`](results::RunResult).
//! * A [cell](results::CellResult) is all runs of a trial.
//! * A *metric* is a quantity of a run or of a cell, such as the median flow completion time (FCT). A *figure* is its value.
//! * A *flow* is a series of messages that clients offer to a server. A *sink* is a server in a mesh or of a flow. A *mote* is
//!   a host with flows.
//! * A [film](results::Film) is what the nodes of a mesh did in a run, moment by moment. A [journey](results::Journey) is the
//!   way of one exchange through the mesh.
//! * The *standing* of a mechanism is how it fares when it shares a network with each of the others in turn; in a
//!   [ranking](rank), how it fares over many conditions.

pub mod bench;
pub mod capture;
pub mod coexistence;
pub mod contender;
pub mod directory;
pub mod experiment;
pub mod grid;
pub mod journal;
pub mod lists;
pub mod lock;
pub mod mix;
mod nodes;
pub mod papers;
pub mod rank;
pub mod replay;
pub mod results;
pub mod run;
pub mod search;
pub mod workers;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
