//! The program that `evidence/peers/run` uses to load servers and clients: closed-loop clients, sources that make one request
//! each, a flood of malformed datagrams, and a responder and a client that do no more than the protocol demands.
//!
//! Every command prints one line of `name=value` pairs on standard output.

mod arguments;
mod bare;
mod client;
mod cpu;
mod flood;
mod load;
mod message;
mod sources;

use std::process::ExitCode;

use arguments::Arguments;

/// A description of the failure that ends the program.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const HELP: &str = "\
peer-load COMMAND --server ADDRESS:PORT --path PATH --payload TEXT [OPTION VALUE]...

  respond   answers confirmable GETs with the payload, without any state, until it is ended
  get       for every number N on standard input: makes N requests, one after the other, prints how many were answered
  load      --clients N --seconds S --settle S --timeout S --first-address A.B.C.D --pid PID
            N closed-loop clients; the processor time of PID per request answered
  sources   --count N --timeout S --first-address A.B.C.D
            N sources, an address each, that make one request each
  flood     --rate N --datagrams N --seconds S --timeout S --first-address A.B.C.D --pid PID
            one closed-loop client, S seconds alone and then while malformed datagrams are sent";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("peer-load: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let command = words.next().unwrap_or_default();
    if matches!(command.as_str(), "" | "-h" | "--help") {
        println!("{HELP}");
        return Ok(());
    }
    let arguments = Arguments::parse(words)?;
    match command.as_str() {
        "respond" => bare::respond(&arguments),
        "get" => bare::get(&arguments),
        "load" => load::run(&arguments),
        "sources" => sources::run(&arguments),
        "flood" => flood::run(&arguments),
        _ => Err(format!("no command '{command}'\n{HELP}").into()),
    }
}
