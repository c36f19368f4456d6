//! The commands, a file each.

mod advise;
mod artifact;
mod compare;
mod device;
mod directory;
mod discover;
#[cfg(target_os = "linux")]
mod emulate;
mod examine;
mod group;
mod list;
#[cfg(target_os = "linux")]
mod live;
mod load;
mod man;
mod observe;
mod output;
mod pairs;
mod ping;
mod printer;
mod rank;
mod relay;
mod repeat;
mod reproduce;
mod request;
mod resources;
mod run;
mod search;
mod sensitivity;
mod serve;
mod sweep;
mod trace;

use std::io::{self, Write};

use coapace_net::Code;

use crate::Failure;
use crate::arguments::{Arguments, Command};

/// Runs the command that the arguments name, which is `coapace` alone if they name none.
pub(crate) fn dispatch(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        None => compare::compare(arguments),
        Some(Command::Run(run)) => run::run(arguments, run),
        Some(Command::Rank(rank)) => rank::rank(arguments, rank),
        Some(Command::Reproduce(reproduce)) => reproduce::reproduce(arguments, reproduce),
        Some(Command::Search(options)) => search::search(arguments, options),
        Some(Command::Trace { mechanism }) => trace::trace(mechanism),
        Some(Command::List { what, name }) => list::list(*what, name.as_deref(), &mut io::stdout().lock()),
        Some(Command::Advise(options)) => advise::advise(arguments, options),
        Some(Command::Get(get)) => request::request(arguments, Code::GET, get),
        Some(Command::Put(put)) => request::request(arguments, Code::PUT, put),
        Some(Command::Post(post)) => request::request(arguments, Code::POST, post),
        Some(Command::Delete(delete)) => request::request(arguments, Code::DELETE, delete),
        Some(Command::Request(any)) => request::request(arguments, any.method, &any.request),
        Some(Command::Observe(observe)) => observe::observe(arguments, observe),
        Some(Command::Discover(discover)) => discover::discover(arguments, discover),
        Some(Command::Ping(ping)) => ping::ping(arguments, ping),
        Some(Command::Serve(serve)) => serve::serve(arguments, serve),
        Some(Command::Relay(relay)) => relay::relay(arguments, relay),
        #[cfg(target_os = "linux")]
        Some(Command::Emulate(emulate)) => emulate::emulate(arguments, emulate),
        Some(Command::Load(load)) => load::load(arguments, load),
        Some(Command::Examine(options)) => examine::conduct(arguments, options),
        Some(Command::Man { directory }) => man::man(directory),
        Some(Command::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Arguments::grammar(), "coapace", &mut script);
            Ok(io::stdout().lock().write_all(&script)?)
        }
    }
}
