//! `coapace trace`.

use std::io::{self, Write};

use coapace_lab::replay;
use coapace_scenario::naming;

use crate::Failure;

pub(crate) fn trace(mechanism: &str) -> Result<(), Failure> {
    let mechanism = naming::parse_mechanism(mechanism).map_err(Failure::Usage)?;
    let mut out = Output { out: io::stdout().lock(), failed: None };
    let replayed = replay::replay(&mechanism, io::stdin().lock(), &mut out);
    match out.failed {
        Some(error) => Err(error.into()),
        None => replayed.map_err(|error| Failure::Input(format!("standard input: {error}"))),
    }
}

/// An output that keeps its error, which is not that of a script.
struct Output<W> {
    out: W,
    failed: Option<io::Error>,
}

impl<W> Output<W> {
    fn kept<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let kind = error.kind();
            self.failed = Some(error);
            kind.into()
        })
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        self.kept(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.kept(flushed)
    }
}
