//! Declarations of keys and tables, and of the kinds of their values, from which files are read and described. This
//! module names no key of a scenario.

pub(crate) mod amount;
pub(crate) mod document;
pub(crate) mod error;
pub(crate) mod json;
pub(crate) mod kind;
pub(crate) mod measure;
pub(crate) mod preset;
pub(crate) mod scalar;
pub(crate) mod table;
pub(crate) mod units;
pub(crate) mod unknown;
pub(crate) mod words;
mod writing;
