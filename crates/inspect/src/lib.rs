//! Judges traffic that others made: stacks from outside, and captures of networks.

pub mod advice;
pub mod examination;
mod nearest;

pub use nearest::Nearest;
