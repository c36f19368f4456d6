//! Reading of tables of keys, each declared once with its kind. This module names no key of a scenario.

pub(crate) mod amount;
pub(crate) mod document;
pub(crate) mod error;
pub(crate) mod kind;
pub(crate) mod measure;
pub(crate) mod preset;
pub(crate) mod scalar;
pub(crate) mod table;
pub(crate) mod units;
pub(crate) mod unknown;
pub(crate) mod words;
mod writing;
