//! What each command does.

mod bench;
mod coexist;
mod compare;
mod list;
mod output;
mod reproduce;
mod run;
mod trace;

pub(crate) use bench::bench;
pub(crate) use coexist::coexist;
pub(crate) use compare::compare;
pub(crate) use list::list;
pub(crate) use reproduce::reproduce;
pub(crate) use run::run;
pub(crate) use trace::trace;
