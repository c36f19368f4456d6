//! Captures of an emulation.

use std::io::{self, Write};
use std::time::SystemTime;

use coapace_run::{accounting, hop_names};
use coapace_scenario::Scenario;
use coapace_sim::{Pcapng, Record, Span, Tap};

/// Writes the packets of an emulation as pcapng with the time of day. The interface `sent` has them before the
/// bottleneck and `delivered` behind it; `discarded` has the packets dropped in between, with the reason.
///
/// In an emulation between UDP sockets, the server has the address 10.0.0.1 or fd00::1 and port 5683, and the nth source
/// 10.0.0.1 + n or fd00::1 + n, as in captures of a simulation. IP packets of a tunnel are written as they are.
#[derive(Debug)]
pub struct Capture<W> {
    file: Pcapng<W>,
    /// The time of day at which the emulation started, since 1970.
    start: Span,
}

impl<W: Write> Capture<W> {
    /// Writes the header of a capture. Give it a buffered writer, because it writes in small pieces.
    pub fn new(writer: W, scenario: &Scenario) -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            file: Pcapng::new(writer, accounting(scenario), 0..1, &hop_names(scenario)),
            start: Span::from_nanos(since.as_nanos() as u64),
        }
    }

    /// Flushes the writer and returns it.
    ///
    /// # Errors
    /// The first error of the writer. Nothing was written after it.
    pub fn finish(self) -> io::Result<W> {
        self.file.finish()
    }
}

impl<W: Write> Tap for Capture<W> {
    fn record(&mut self, record: &Record<'_>) {
        self.file.record(&Record { time: record.time + self.start, ..*record });
    }
}
