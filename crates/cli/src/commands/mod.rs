//! The commands, a file each.

mod device;
mod directory;
mod discover;
#[cfg(emulation)]
mod emulate;
mod group;
#[cfg(feature = "lab")]
mod laboratory;
mod list;
mod load;
mod man;
mod observe;
mod ping;
mod playground;
mod printer;
#[cfg(feature = "tls")]
mod relay;
mod request;
mod resources;
mod scenario_file;
mod serve;

use std::io::{self, Write};

use coapace_net::Code;

use crate::Failure;
use crate::arguments::{Arguments, Command};

/// Runs the command that the arguments name; without one, the comparison of all mechanisms.
pub(crate) fn dispatch(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        #[cfg(feature = "lab")]
        // A new user who types only `coapace` sees a result instead of an error.
        None => laboratory::compare(arguments),
        // Without the laboratory there is nothing to compare.
        #[cfg(not(feature = "lab"))]
        None => Ok(Arguments::grammar().print_help()?),
        #[cfg(feature = "lab")]
        Some(Command::Laboratory(command)) => laboratory::dispatch(arguments, command),
        Some(Command::List { what, name, toml, schema }) => {
            list::list(*what, name.as_deref(), *toml, *schema, &mut io::stdout().lock())
        }
        Some(Command::New { name, from }) => scenario_file::new(name, from.as_deref()),
        Some(Command::Check { files }) => scenario_file::check(files, &mut io::stdout().lock()),
        Some(Command::Get(get)) => request::request(arguments, Code::GET, get),
        Some(Command::Put(put)) => request::request(arguments, Code::PUT, put),
        Some(Command::Post(post)) => request::request(arguments, Code::POST, post),
        Some(Command::Delete(delete)) => request::request(arguments, Code::DELETE, delete),
        Some(Command::Request(any)) => request::request(arguments, any.method, &any.request),
        Some(Command::Observe(observe)) => observe::observe(arguments, observe),
        Some(Command::Discover(discover)) => discover::discover(arguments, discover),
        Some(Command::Ping(ping)) => ping::ping(arguments, ping),
        Some(Command::Playground(options)) => playground::playground(arguments, options),
        Some(Command::Serve(serve)) => serve::serve(arguments, serve),
        #[cfg(feature = "tls")]
        Some(Command::Relay(relay)) => relay::relay(arguments, relay),
        #[cfg(emulation)]
        Some(Command::Emulate(emulate)) => emulate::emulate(arguments, emulate),
        Some(Command::Load(load)) => load::load(arguments, load),
        Some(Command::Man { directory }) => man::man(directory),
        // The script is made in memory: clap panics if it cannot write, as into a closed pipe.
        Some(Command::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Arguments::grammar(), "coapace", &mut script);
            Ok(io::stdout().lock().write_all(&script)?)
        }
    }
}
