//! `coapace trace`.

use std::io;

use coapace_lab::replay;
use coapace_scenario::naming;

use crate::Failure;

pub(crate) fn trace(mechanism: &str) -> Result<(), Failure> {
    let mechanism = naming::parse_mechanism(mechanism).map_err(Failure::Usage)?;
    let out = io::BufWriter::new(io::stdout().lock());
    replay::replay(&mechanism, io::stdin().lock(), out)
        .map_err(|error| Failure::Input(format!("standard input: {error}")))
}
