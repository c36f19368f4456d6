//! The command `coapace` with the built-in mechanisms.

use std::process::ExitCode;

fn main() -> ExitCode {
    coapace::main_with(&[])
}
