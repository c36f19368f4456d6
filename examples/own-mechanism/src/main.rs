//! The command `coapace` with an additional mechanism.

mod twin;

use std::process::ExitCode;

use coapace_control::Entry;

fn main() -> ExitCode {
    coapace::main_with(const { &[Entry::own::<twin::Twin>()] })
}
