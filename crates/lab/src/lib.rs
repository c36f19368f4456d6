//! The laboratory: scenarios, runs, metrics, published figures, reports.

pub mod bench;
pub mod coexistence;
pub mod contender;
pub mod experiment;
pub mod grid;
pub mod mix;
mod nodes;
pub mod observed;
pub mod papers;
pub mod replay;
pub mod results;
pub mod run;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
