//! The laboratory: scenarios, runs, metrics, published figures, reports.

pub mod bench;
pub mod coexistence;
pub mod contender;
pub mod experiment;
pub mod grid;
pub mod import;
pub mod mix;
pub mod naming;
mod nodes;
pub mod observed;
pub mod papers;
mod places;
pub mod replay;
pub mod report;
pub mod results;
pub mod run;
pub mod scenario;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
