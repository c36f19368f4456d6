//! The command `coapace` with two additional mechanisms.

mod smooth;
mod twin;

use std::process::ExitCode;

use coapace_control::Entry;

fn main() -> ExitCode {
    coapace::main_with(const { &[Entry::own::<twin::Twin>(), Entry::own::<smooth::Smooth>()] })
}
