//! The commands, a file each.

mod bench;
mod coexist;
mod compare;
mod device;
mod directory;
mod discover;
mod interrupt;
mod list;
mod load;
mod observe;
mod output;
mod ping;
mod printer;
mod reproduce;
mod request;
mod resources;
mod run;
mod serve;
mod trace;

pub(crate) use bench::bench;
pub(crate) use coexist::coexist;
pub(crate) use compare::compare;
pub(crate) use discover::discover;
pub(crate) use list::list;
pub(crate) use load::load;
pub(crate) use observe::observe;
pub(crate) use ping::ping;
pub(crate) use reproduce::reproduce;
pub(crate) use request::request;
pub(crate) use run::run;
pub(crate) use serve::serve;
pub(crate) use trace::trace;
