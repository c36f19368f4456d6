//! A search for the parameters of a mechanism over scenarios that are drawn, not chosen.
//!
//! A [`Set`](evaluation::Set) is drawn from a seed. On each of its scenarios every published mechanism runs once; the least
//! costs are the [yardstick](evaluation::Yardstick). A mechanism is then [evaluated](evaluation::Set::evaluate) by the ratios of
//! its costs to the yardsticks. [`Halving`](halving::Halving) proposes parameters, and a [`Journal`](journal::Journal) keeps
//! what was measured.
//!
//! The scenarios of published papers are not part of any set, so they can tell whether what was found holds elsewhere.

pub mod costs;
pub mod evaluation;
pub mod generator;
pub mod halving;
pub mod journal;
pub mod space;
