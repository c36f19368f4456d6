//! `coapace trace`.

use std::io;

use coapace_lab::replay::{Failed, replay};
use coapace_scenario::naming;

use crate::Failure;

pub(crate) fn trace(mechanism: &str) -> Result<(), Failure> {
    let mechanism = naming::parse_mechanism(mechanism).map_err(Failure::Usage)?;
    replay(&mechanism, io::stdin().lock(), io::stdout().lock()).map_err(|failed| match failed {
        Failed::Script(problem) => Failure::Input(format!("standard input: {problem}")),
        Failed::Output(error) => error.into(),
    })
}
