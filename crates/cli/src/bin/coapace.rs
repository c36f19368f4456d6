//! The command `coapace`, with the mechanisms that are built in.

use std::process::ExitCode;

fn main() -> ExitCode {
    coapace::main_with(&[])
}
