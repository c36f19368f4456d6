//! A search for parameters over scenarios that are drawn, not chosen.

pub mod costs;
pub mod evaluation;
pub mod generator;
